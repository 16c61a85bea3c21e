import type { ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { BlockCode } from '../core/operator-questions.ts';
import type { Blocked } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
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
  /** Wall time in ms. */
  readonly now: number;
}

/** The facts by which a purchase is judged. */
export type Purchase = Pick<GuardInput, 'world' | 'register'>;

export type Objection = Omit<Blocked, 'key' | 'code'> & { readonly code: BlockCode };

/** The facts that are the same for every draft of a plan. */
export interface Facts {
  /** The unmanaged object that an entry may describe. */
  readonly matches: ReadonlyMap<ResourceKey, string>;
  /** Keys of the file's entries, by the kind and id that they are bound to or name. */
  readonly named: ReadonlyMap<string, ResourceKey>;
}

/** Gives the reason to block an operation that is possible. */
export type Guard = (draft: Draft, input: GuardInput, facts: Facts) => Objection | undefined;
