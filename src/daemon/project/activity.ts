import { given } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { OperationResult, ProgressEvent } from '../../core/progress.ts';
import type { RunningOperation } from '../../view/facts.ts';
import type { DaemonLogger } from '../ports.ts';

/** Follows the progress events of reconciliations: the operations in flight, and the time of the last progress. */
export class Activity {
  readonly #log: DaemonLogger;
  readonly #inFlight = new Map<ResourceKey, RunningOperation>();
  /** The last reported reason why a key is blocked. Each reconciliation finds the same reason again. */
  readonly #reported = new Map<ResourceKey, string>();
  #movedAt = 0;

  constructor(log: DaemonLogger) {
    this.#log = log;
  }

  /** Call this at the end of a reconciliation. Unfinished operations are in the state, and no longer here. */
  settle(): void {
    this.#inFlight.clear();
  }

  list(): readonly RunningOperation[] {
    return [...this.#inFlight.values()];
  }

  /** Whether operations are in flight, and all of them wait for the API or for a moment. */
  isWaiting(): boolean {
    const steps = [...this.#inFlight.values()].map(({ step }) => step);
    return steps.length > 0 && steps.every((step) => step === 'task' || step === 'waiting');
  }

  /**
   * Whether all operations in flight have only waited since `time`. Then cutting the reconciliation short loses
   * nothing.
   */
  isQuietSince(time: number): boolean {
    if (this.#movedAt > time) return false;
    return [...this.#inFlight.values()].every(({ step }) => step !== 'sent' && step !== 'queued');
  }

  /** Returns whether the event is new. An event that repeats the words of an earlier reconciliation is not new. */
  take(event: ProgressEvent): boolean {
    if (event.type === 'ended' && this.#isOld(event.result)) {
      this.#inFlight.delete(event.result.key);
      return false;
    }
    this.#follow(event);
    return true;
  }

  #isOld({ key, outcome, verb, code }: OperationResult): boolean {
    const how = `${verb} ${code ?? ''}`;
    if (outcome !== 'blocked') this.#reported.delete(key);
    else if (this.#reported.get(key) === how) return true;
    else this.#reported.set(key, how);
    return false;
  }

  #follow(event: ProgressEvent): void {
    switch (event.type) {
      case 'planned':
        this.#movedAt = event.at;
        return;
      case 'started': {
        const { key, verb, id } = event.operation;
        this.#movedAt = event.at;
        this.#inFlight.set(key, { key, verb, step: 'queued', detail: '', since: event.at });
        // An operation that was blocked at its last attempt is tried again in each reconciliation.
        this.#log[this.#reported.has(key) ? 'debug' : 'info'](
          { key, verb, operationId: id },
          'operation started',
        );
        return;
      }
      case 'progress': {
        const { key, verb, step, detail, at, untilMs, deadlineMs } = event;
        const before = this.#inFlight.get(key);
        if (before?.step !== step) this.#movedAt = at;
        this.#inFlight.set(key, {
          ...{ key, verb, step, detail, since: before?.since ?? at },
          ...given({ until: untilMs, deadline: deadlineMs }),
        });
        this.#log.debug({ key, verb, phase: step, detail }, 'operation progress');
        return;
      }
      case 'ended':
        this.#movedAt = event.at;
        this.#inFlight.delete(event.result.key);
        this.#logEnd(event.result);
        return;
      case 'warning':
        // Logged with the warnings of the plan, each once.
        return;
    }
  }

  #logEnd(result: OperationResult): void {
    const { key, verb, outcome, durationMs, requestId, code, detail } = result;
    const fields = {
      key,
      verb,
      outcome,
      durationMs: Math.round(durationMs),
      requestId,
      code,
      reason: detail,
    };
    if (outcome === 'done' || outcome === 'unresolved') this.#log.info(fields, 'operation ended');
    else this.#log.warn(fields, 'operation ended');
  }
}
