import type { Repeating } from '../../engine/deps.ts';
import type { PassMemory } from '../project/memory.ts';

type Hold = Repeating['holds'] extends Map<string, infer Value> ? Value : never;

/** What a 402, 403 or 401 holds back is tried again no sooner. */
const probeMs = 30 * 60_000;

/** A class of writes that is held back, for people. */
export interface ShownHold extends Hold {
  readonly scope: string;
  /** Wall time in ms of the project's clock. */
  readonly since: number;
  /** When one write of the class may probe again; unknown while the project is not Active. */
  readonly probeAt: number | null;
}

/**
 * Refusals that outlive a pass. `spending` is what a 402 holds: once the project is Active
 * one write probes, and if that is refused too, the next one waits half an hour again.
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

  /** Takes in how the project stood at the last look, and lets go what has been held long enough. */
  review(status: string | undefined): void {
    const paid = this.#status !== undefined && this.#status !== 'Active' && status === 'Active';
    this.#status = status ?? this.#status;
    for (const [scope, since] of [...this.#since]) {
      const waited = this.#now() - since >= probeMs;
      const mayProbe = scope !== 'spending' || this.#status === undefined || this.#status === 'Active';
      if ((waited && mayProbe) || (scope === 'spending' && paid)) this.delete(scope);
    }
  }

  /** Whether a result's code is a hold's: then it says nothing about its key. */
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
