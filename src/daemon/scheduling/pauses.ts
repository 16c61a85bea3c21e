import type { Repeating } from '../../engine/deps.ts';
import type { ReconciliationMemory } from '../project/memory.ts';

type Pause = Repeating['pauses'] extends Map<string, infer Value> ? Value : never;

/** Time until a write that a 402, 403 or 401 has paused is tried again. */
const probeMs = 30 * 60_000;

/** A class of writes that is paused, in the form that users see. */
export interface ShownPause extends Pause {
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
 * free ──402──▶ paused ──30 min, project Active──▶ free (the next write is the probe)
 *                 └──project was not Active, and is now──▶ free
 * ```
 */
export class Pauses extends Map<string, Pause> {
  readonly #since = new Map<string, number>();
  readonly #now: () => number;
  #status: string | undefined;

  constructor(now: () => number) {
    super();
    this.#now = now;
  }

  override set(scope: string, pause: Pause): this {
    this.#since.set(scope, this.#now());
    return super.set(scope, pause);
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
  pauses(code: string): boolean {
    return [...this.values()].some((pause) => pause.code === code);
  }

  remember(): ReconciliationMemory['pauses'] {
    const held = [...this].map(([scope, pause]) => ({ ...pause, scope, since: this.#since.get(scope) ?? 0 }));
    return { status: this.#status ?? null, held };
  }

  recall({ status, held }: ReconciliationMemory['pauses']): void {
    this.#status = status ?? undefined;
    for (const { scope, since, ...pause } of held) {
      super.set(scope, pause);
      this.#since.set(scope, since);
    }
  }

  list(): readonly ShownPause[] {
    return [...this].map(([scope, pause]) => {
      const since = this.#since.get(scope) ?? 0;
      const asleep = scope === 'spending' && this.#status !== undefined && this.#status !== 'Active';
      return { ...pause, scope, since, probeAt: asleep ? null : since + probeMs };
    });
  }
}
