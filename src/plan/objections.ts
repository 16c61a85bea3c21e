import type { KindName, ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { BlockCode } from '../core/operator-questions.ts';
import type { Blocked } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import type { Found } from './strangers.ts';

/** Which key each became that the file has renamed, be it long ago. */
export type MovedKeys = Readonly<Record<ResourceKey, ResourceKey>>;

/** What guards need beside the drafts. */
export interface GuardInput {
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly openIntents: readonly Intent[];
  readonly world: World;
  /** What nobody has vouched for. */
  readonly strangers: Found;
  /** None where left out. */
  readonly movedKeys?: MovedKeys | undefined;
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
export type Purchase = Pick<GuardInput, 'world' | 'strangers'>;

export type Objection = Omit<Blocked, 'key' | 'code'> & { readonly code: BlockCode };

/** What is the same for every draft of a plan. */
export interface Facts {
  /** The stranger that an entry may stand for. */
  readonly matches: ReadonlyMap<ResourceKey, string>;
  /** Keys of the file's entries, by the kind and id that they stand for. */
  readonly named: ReadonlyMap<string, ResourceKey>;
}

/** Says why an operation is held back although it could be done. */
export type Guard = (draft: Draft, input: GuardInput, facts: Facts) => Objection | undefined;
