import { takeApart } from '../../core/keys.ts';
import { endsExposure, type Operation } from '../../core/plan.ts';
import { joined, type Run } from '../run.ts';

/** The highest time for a firewall after the run is asked to stop, in ms. Conflicts and back-off are included. */
const graceMs = 60_000;

/**
 * Whether the operation is sent although the run is asked to stop: a server that this run has bought is exposed until
 * its firewall exists.
 */
export function hasGrace(run: Run, operation: Operation): boolean {
  const { parent } = takeApart(operation.key);
  return endsExposure(operation) && parent !== undefined && run.exposedSince(parent) !== undefined;
}

/** The same run for an operation with grace. The run stops only after the grace, or at a halt. */
export class Grace {
  readonly run: Run;
  readonly #ended = new AbortController();

  /** `onOver` wakes the waiting workers when the grace is over. */
  constructor(run: Run, onOver: () => void) {
    const over = new AbortController();
    const begin = () =>
      void run.deps.clock.sleep(graceMs, AbortSignal.any([this.#ended.signal, run.halt])).then(
        () => {
          over.abort(new Error('the firewall took too long'));
          onOver();
        },
        () => undefined,
      );
    if (run.stop.aborted) begin();
    else run.stop.addEventListener('abort', begin, { once: true, signal: this.#ended.signal });
    const stop = AbortSignal.any([run.halt, over.signal]);
    this.run = joined(run, { stop });
  }

  end(): void {
    this.#ended.abort();
  }
}
