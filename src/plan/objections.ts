import type { KindName, ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { BlockCode } from '../core/operator-questions.ts';
import type { Blocked } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import type { Register } from './unmanaged.ts';

/** What guards need beside the drafts. */
export interface GuardInput {
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly openIntents: readonly Intent[];
  readonly world: World;
  readonly register: Register;
  /** `destroy`: everything managed may go, whatever `prune` says. */
  readonly destroy: boolean;
  /** Deletions that this run has carried out already. */
  readonly deletedBefore: number;
  /** What this run has added to the monthly bill already, at most; nothing where left out. */
  readonly increasedBefore?: string | undefined;
  /** Wall time in ms. */
  readonly now: number;
}

/** What a purchase is judged by. */
export type Purchase = Pick<GuardInput, 'world' | 'register'>;

export type Objection = Omit<Blocked, 'key' | 'code'> & { readonly code: BlockCode };

/** What is the same for every draft of a plan. */
export interface Facts {
  /** The unmanaged object that an entry may describe. */
  readonly matches: ReadonlyMap<ResourceKey, string>;
  /** Keys of the file's entries, by the kind and id that they stand for. */
  readonly named: ReadonlyMap<string, ResourceKey>;
}

/** Says why an operation is held back although it could be done. */
export type Guard = (draft: Draft, input: GuardInput, facts: Facts) => Objection | undefined;
