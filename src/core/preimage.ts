import type { Collection } from './kind-facts.ts';

/**
 * The reads before a write, which evidence is compared with. The lists of ids have one form for all kinds, because an
 * object that is on no list came after the write. A kind adds values of its own, and only that kind reads them.
 */
export type Preimage = {
  /** The ids in the list of a kind, by its map in the spec. */
  readonly [List in Collection]?: readonly (number | string)[];
} & {
  /** The ids of those with the identity of the entry. The API may give another object the id of a deleted one. @assumption A17 */
  readonly alike?: readonly (number | string)[];
  /** The ids of the backups of a server. */
  readonly backups?: readonly string[];
  /** The addresses of a server that is deleted, or the address that is. */
  readonly addresses?: readonly string[];
};
