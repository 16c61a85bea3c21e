import type { Opening } from '../core/calendar.ts';
import type { BlockCode } from '../core/codes.ts';
import type { WindowVerb } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { ResourceKind, Subject, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Blocked } from '../core/plan.ts';
import type { Remedy } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import type { Prices } from './totals.ts';
import type { Register } from './unmanaged.ts';

/** The facts that guards need in addition to the drafts. */
export interface GuardInput {
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly openIntents: readonly Intent[];
  readonly world: World;
  readonly register: Register;
  /** `destroy`: every managed resource may be deleted, regardless of `prune`. */
  readonly destroy: boolean;
  /** Deletions that this run has carried out already. */
  readonly deletedBefore: number;
  /** The highest amount that this run has added to the monthly bill already; zero if left out. */
  readonly increasedBefore?: string | undefined;
  /** The monthly prices of the deleted resources that no creation has replaced yet. */
  readonly freedBefore?: Prices | undefined;
  /** Before a write: the highest amount that the plan has counted for a key, as decimal text. */
  readonly plannedMost?: (key: ResourceKey) => string | undefined;
  /** The keys whose operation completes an earlier write. `true`: the API still knows the keys of that time. */
  readonly begun?: ReadonlyMap<ResourceKey, boolean> | undefined;
  /** Renames that are not possible yet. */
  readonly waitingMoves?: readonly WaitingRename[];
  /** Wall time in ms. */
  readonly now: number;
}

/** A rename that is not possible yet. `keys`: the entries that wait for it. */
export interface WaitingRename {
  /** Its key is the new key: if that is bound to a resource, the rename waits until the binding has ended. */
  readonly blocked: Blocked & { readonly code: BlockCode };
  readonly keys: ReadonlySet<ResourceKey>;
}

/**
 * The verb is that of the draft. `code`: left out where it is that of the guard. `permit`: the remedy that permits the
 * operation; the others give it up.
 */
export type Objection = Pick<Blocked, 'reason' | 'remedies' | 'starts_at'> & {
  readonly code?: BlockCode;
  readonly permit?: Remedy;
};

/** An objection with its code. */
export type Coded = Objection & Pick<Blocked, 'code'>;

/** The facts that are the same for every draft of a plan, each computed at its first use. */
export interface PlanFacts {
  /** The unmanaged object that an entry may describe. */
  readonly matches: () => ReadonlyMap<ResourceKey, string>;
  /** The entries whose `moved` names a key without a binding. */
  readonly movedFromUnknown: () => readonly Subject[];
  readonly openingFor: (verb: WindowVerb) => Opening;
}

/**
 * A reason to block an operation that is possible. A guard is asked when the plan is made, and again before each write
 * with fresh reads.
 */
export interface Guard {
  /** `undefined`: the kind gives the code. */
  readonly code: BlockCode | undefined;
  readonly check: (draft: Draft, input: GuardInput, facts: PlanFacts) => Objection | undefined;
}
