import { isWaiting, type OperationId, operationId, type Plan, type Warning } from '../../core/plan.ts';
import { type Remedy, resolveText } from '../../core/remedy.ts';
import type { DaemonLogger } from '../ports.ts';

/** Codes that are settled together with another operation, or that have a log line of their own. */
const elsewhere: ReadonlySet<string> = new Set([
  ...['dependency_blocked', 'moved_in_flight', 'suspended', 'check_refused'],
  ...['drift', 'in_flight'],
]);

/** Logs the warnings and blocked operations of plans. Logs each of them once, until it ends. */
export class PlanReports {
  readonly #log: DaemonLogger;
  readonly #flags: () => string;
  /** Warnings by code and key: of the last whole reconciliation, and of the current one so far. */
  #warnedBefore: ReadonlySet<string> = new Set();
  #warnedNow = new Set<string>();
  /** By code and operation, the operation. */
  #asked: ReadonlyMap<string, OperationId> = new Map();

  /** @param flags with which a command means the project */
  constructor(log: DaemonLogger, flags: () => string) {
    this.#log = log;
    this.#flags = flags;
  }

  /**
   * Takes the warnings of the plan before anything is carried out, those of the engine while it is, and those of the
   * plan that is left at the end. Some belong to one of the three alone, so a warning is over only after a whole
   * reconciliation without it.
   */
  warn(warnings: readonly Warning[], message = 'plan warning'): void {
    for (const { key, code, message: reason, remedies = [] } of warnings) {
      const name = `${code} ${key}`;
      if (elsewhere.has(code) || this.#warnedNow.has(name)) continue;
      this.#warnedNow.add(name);
      if (this.#warnedBefore.has(name)) continue;
      this.#log.warn({ ...(key === null ? {} : { key }), code, reason, ...this.#resolve(remedies) }, message);
    }
  }

  #resolve(remedies: readonly Remedy[]): { readonly resolve?: string } {
    return remedies.length === 0 ? {} : { resolve: resolveText(remedies, this.#flags()) };
  }

  /** Call this at the end of a whole reconciliation. */
  end(): void {
    this.#warnedBefore = this.#warnedNow;
    this.#warnedNow = new Set();
  }

  /**
   * Logs the operations that need a manual decision. Call this with the plan at the end of a
   * reconciliation: operations that were blocked earlier may be done by then.
   */
  ask({ blocked, operations }: Plan): void {
    // A blocked operation that is paused for a while is an ordinary operation in the meantime. When it is tried again
    // and blocked again, it is not logged again.
    const left = new Set(operations.map(({ verb, key }) => operationId(verb, key)));
    const asked = new Map([...this.#asked].filter(([, operation]) => left.has(operation)));
    for (const each of blocked) {
      const { key, verb, code, reason, remedies } = each;
      if (elsewhere.has(code) || isWaiting(each)) continue;
      const id = operationId(verb, key);
      if (!this.#asked.has(`${code} ${id}`)) {
        this.#log.warn({ key, verb, code, reason, ...this.#resolve(remedies) }, 'manual decision needed');
      }
      asked.set(`${code} ${id}`, id);
    }
    this.#asked = asked;
  }
}
