import { type OperationId, operationId, type Plan } from '../../core/plan.ts';
import type { DaemonLogger } from '../ports.ts';

/** Settled with something else, or told in a line of its own. */
const elsewhere: ReadonlySet<string> = new Set([
  ...['dependency_blocked', 'moved_in_flight', 'suspended'],
  ...['drift', 'in_flight'],
]);

/** Logs what a plan has to say to a person, once for as long as it stays so. */
export class PlanNews {
  readonly #log: DaemonLogger;
  #warned: ReadonlySet<string> = new Set();
  /** By code and operation, the operation. */
  #asked: ReadonlyMap<string, OperationId> = new Map();

  constructor(log: DaemonLogger) {
    this.#log = log;
  }

  /** Before anything is carried out: a warning may be over when it is. */
  warn({ warnings }: Plan): void {
    const told = warnings.filter(({ code }) => !elsewhere.has(code));
    for (const { key, code, message } of told) {
      if (this.#warned.has(`${code} ${key}`)) continue;
      this.#log.warn({ ...(key === null ? {} : { key }), code, reason: message }, 'the plan warns');
    }
    this.#warned = new Set(told.map(({ key, code }) => `${code} ${key}`));
  }

  /** Of what is left at the end: before, some of it may yet be settled. */
  ask({ blocked, operations }: Plan): void {
    // What was blocked and is left alone for a while is an operation meanwhile, and no news when it is tried again.
    const left = new Set(operations.map(({ verb, key }) => operationId(verb, key)));
    const asked = new Map([...this.#asked].filter(([, operation]) => left.has(operation)));
    for (const { key, verb, code, reason, resolve } of blocked) {
      if (elsewhere.has(code)) continue;
      const id = operationId(verb, key);
      if (!this.#asked.has(`${code} ${id}`)) {
        this.#log.warn({ key, verb, code, reason, resolve }, 'a person is needed');
      }
      asked.set(`${code} ${id}`, id);
    }
    this.#asked = asked;
  }
}
