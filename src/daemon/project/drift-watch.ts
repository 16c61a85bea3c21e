import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Operation, Plan } from '../../core/plan.ts';
import type { ReconciliationMemory } from './memory.ts';

/**
 * Finds drift in plans. Drift is an operation that is marked as drift, and every difference after the project was equal
 * to the same spec. While plans contain a drift, it is reported once, after the decision whether the plan is applied.
 */
export class DriftWatch {
  /**
   * The digest of the spec that the project was last equal to, except for waiting operations. Absent after a write: a
   * write for another spec leaves a difference that is no drift.
   */
  #settledDigest: string | undefined;
  /** The keys that were blocked at that time. Their later operations are no drift. */
  #waiting: ReadonlySet<string> = new Set();
  /** Drift in the newest plan that is not reported yet. */
  #undecided: readonly Operation[] = [];
  /** Operations that were reported as drift, and that every later plan contained. */
  #drifted: ReadonlySet<string> = new Set();

  /** @param digest of the spec of the plan */
  see({ operations }: Plan, digest: string | undefined): void {
    const before = this.#drifted;
    const isKnown = (operation: Operation) => before.has(contentOf(operation));
    this.#drifted = new Set(operations.filter(isKnown).map(contentOf));
    const isSettled = digest !== undefined && digest === this.#settledDigest;
    // An entry that has expired is deleted although the file is the same.
    const expires = ({ verb, position, replacement }: Operation) =>
      verb === 'delete' && position === undefined && replacement === undefined;
    const hasMoved = (each: Operation) =>
      each.cause === 'drift' || (isSettled && !this.#waiting.has(each.key) && !expires(each));
    // A backup is due because of its age, so it is no sign of a change outside vdcsync.
    this.#undecided = operations.filter(
      (each) => !factsOf(each.kind).repeats && hasMoved(each) && !isKnown(each),
    );
  }

  isUndecided(key: ResourceKey): boolean {
    return this.#undecided.some((each) => each.key === key);
  }

  /** The drift of the newest plan, which is reported now. */
  take(): readonly Operation[] {
    const moved = this.#undecided;
    if (moved.length === 0) return moved;
    this.#undecided = [];
    this.#settledDigest = undefined;
    this.#drifted = new Set([...this.#drifted, ...moved.map(contentOf)]);
    return moved;
  }

  /** A write of vdcsync has changed the project. */
  unsettle(): void {
    this.#settledDigest = undefined;
  }

  /** At the end of a reconciliation. */
  close({ operations, blocked }: Plan, digest: string): void {
    if (operations.length > 0) return;
    this.#settledDigest = digest;
    this.#waiting = new Set(blocked.map(({ key }) => key));
  }

  remember(): Pick<ReconciliationMemory['history'], 'settledDigest' | 'waiting' | 'drifted'> {
    const waiting = [...this.#waiting];
    return { settledDigest: this.#settledDigest ?? null, waiting, drifted: [...this.#drifted] };
  }

  recall({ settledDigest, waiting, drifted }: ReturnType<DriftWatch['remember']>): void {
    this.#settledDigest = settledDigest ?? undefined;
    this.#waiting = new Set(waiting);
    this.#drifted = new Set(drifted);
  }
}

/** The identity of a drift: two operations with the same content are the same drift. */
function contentOf({ id, changes }: Operation): string {
  return `${id} ${JSON.stringify(changes)}`;
}
