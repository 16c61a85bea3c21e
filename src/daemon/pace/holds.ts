import type { Repeating } from '../../engine/deps.ts';
import type { PassMemory } from '../project/memory.ts';

type Hold = Repeating['holds'] extends Map<string, infer Value> ? Value : never;

/** Time until a write that a 402, 403 or 401 has paused is tried again. */
const probeMs = 30 * 60_000;

/** A class of writes that is paused, in the form that users see. */
export interface ShownHold extends Hold {
  readonly scope: string;
  /** Wall time in ms of the project's clock. */
  readonly since: number;
  /** When one write of the class may probe again; unknown while the project is not Active. */
  readonly probeAt: number | null;
}

/**
 * The refusal circuit breaker: refusals that outlive one reconciliation. `spending` is the class of writes that a 402
 * pauses. Once the project is Active, one write is sent as a probe. If the API refuses the probe too, the next probe
 * follows after another half an hour.
 *
 * ```
 * free ──402──▶ held ──30 min, project Active──▶ free (the next write is the probe)
 *                 └──project was not Active, and is now──▶ free
 * ```
 */
export class Holds extends Map<string, Hold> {
  readonly #since = new Map<string, number>();
  readonly #now: () => number;
  #status: string | undefined;

  constructor(now: () => number) {
    super();
    this.#now = now;
  }

  override set(scope: string, hold: Hold): this {
    this.#since.set(scope, this.#now());
    return super.set(scope, hold);
  }

  override delete(scope: string): boolean {
    this.#since.delete(scope);
    return super.delete(scope);
  }

  override clear(): void {
    this.#since.clear();
    super.clear();
  }

  /** Takes in the project's status from the last refresh, and ends the pauses that have lasted long enough. */
  review(status: string | undefined): void {
    const paid = this.#status !== undefined && this.#status !== 'Active' && status === 'Active';
    this.#status = status ?? this.#status;
    for (const [scope, since] of [...this.#since]) {
      const waited = this.#now() - since >= probeMs;
      const mayProbe = scope !== 'spending' || this.#status === undefined || this.#status === 'Active';
      if ((waited && mayProbe) || (scope === 'spending' && paid)) this.delete(scope);
    }
  }

  /** Whether a result's code comes from the circuit breaker. This code says nothing about the key of the result. */
  holds(code: string): boolean {
    return [...this.values()].some((hold) => hold.code === code);
  }

  remember(): PassMemory['holds'] {
    const held = [...this].map(([scope, hold]) => ({ ...hold, scope, since: this.#since.get(scope) ?? 0 }));
    return { status: this.#status ?? null, held };
  }

  recall({ status, held }: PassMemory['holds']): void {
    this.#status = status ?? undefined;
    for (const { scope, since, ...hold } of held) {
      super.set(scope, hold);
      this.#since.set(scope, since);
    }
  }

  list(): readonly ShownHold[] {
    return [...this].map(([scope, hold]) => {
      const since = this.#since.get(scope) ?? 0;
      const asleep = scope === 'spending' && this.#status !== undefined && this.#status !== 'Active';
      return { ...hold, scope, since, probeAt: asleep ? null : since + probeMs };
    });
  }
}
