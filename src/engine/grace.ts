import { takeApart } from '../core/keys.ts';
import { endsExposure, type Operation } from '../core/plan.ts';
import type { Run } from './run.ts';

/** How long a firewall may take once the run is to stop, in ms; its conflicts and back-off included. */
const graceMs = 60_000;

/**
 * Whether the operation goes out although the run is to stop: a server that this run has bought is exposed until its
 * firewall is there.
 */
export function hasGrace(run: Run, operation: Operation): boolean {
  const { parent } = takeApart(operation.key);
  return endsExposure(operation) && parent !== undefined && run.openSince.has(parent);
}

/** The same run for an operation that has grace: it stops only once the grace has passed, or at a halt. */
export class Grace {
  readonly run: Run;
  readonly #ended = new AbortController();

  /** `onOver`: the grace has passed, and whoever waits has to notice. */
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
    this.run = Object.create(run, { stop: { value: stop, enumerable: true } });
  }

  end(): void {
    this.#ended.abort();
  }
}
