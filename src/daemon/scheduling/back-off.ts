import { backOff, type Random } from '../../core/clock.ts';
import type { Desired } from '../../core/desired.ts';
import { digestOf } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Operation } from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import type { BackOff } from '../../view/facts.ts';
import type { ReconciliationMemory } from '../project/memory.ts';

const retry = { firstMs: 60_000, mostMs: 6 * 3_600_000 } as const;

/**
 * Back-off by key: a failed operation is tried again after 1, 2, 4, … minutes, at most six hours, while all other
 * operations continue. Without the back-off, a server whose creation always fails would be created, and possibly
 * billed for a moment, at every interval.
 */
export class KeyBackOff {
  readonly #entries = new Map<ResourceKey, ReconciliationMemory['backOff'][number]>();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Takes in the results of a reconciliation. A write that the circuit breaker paused is no failure of its key. */
  learn(
    results: readonly OperationResult[],
    desired: Desired,
    isPaused: (code: string) => boolean,
    now: number,
  ): void {
    for (const { key, outcome, code = outcome, detail = '' } of results) {
      if (outcome === 'done') this.#entries.delete(key);
      if (outcome !== 'failed' && outcome !== 'blocked') continue;
      if (code === 'overtaken' || isPaused(code)) continue;
      const failures = (this.#entries.get(key)?.failures ?? 0) + 1;
      const until = now + backOff(retry, failures - 1, this.#random.next());
      this.#entries.set(key, { key, failures, until, code, reason: detail, basis: basisOf(desired, key) });
    }
  }

  /** Forgets keys whose entry has changed, so that a correction is tried at once. */
  follow(desired: Desired): void {
    for (const [key, { basis }] of this.#entries) {
      if (basisOf(desired, key) !== basis) this.#entries.delete(key);
    }
  }

  isPaused(operation: Operation, now: number): boolean {
    return (this.#entries.get(operation.key)?.until ?? 0) > now;
  }

  /** When the next key may be tried again. */
  next(now: number): number | undefined {
    const later = this.list(now).map(({ until }) => until);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  list(now: number): readonly BackOff[] {
    return [...this.#entries.values()]
      .filter(({ until }) => until > now)
      .map(({ basis: _, ...shown }) => shown);
  }

  remember(): ReconciliationMemory['backOff'] {
    return [...this.#entries.values()];
  }

  /** Replaces the current entries. */
  recall(entries: ReconciliationMemory['backOff']): void {
    this.#entries.clear();
    for (const entry of entries) this.#entries.set(entry.key, entry);
  }
}

function basisOf(desired: Desired, key: ResourceKey): string {
  return digestOf(desired.resources.find((each) => each.key === key)?.value ?? null);
}
