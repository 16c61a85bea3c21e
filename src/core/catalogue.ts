import type { ApiProfile } from './profile.ts';
import type { ImageEntry, ServerType, ServerTypePricing } from './resources.ts';

/** Types, prices and images on sale. A reconciliation reads them once, and only those that the spec needs. */
export interface Catalogue {
  readonly types: readonly ServerType[];
  readonly pricing: ReadonlyMap<number, ServerTypePricing>;
  readonly images: ReadonlyMap<number, readonly ImageEntry[]>;
}

/** The prices that are known: of the catalogue, and of the price list in the profile. */
export interface PriceSource {
  readonly catalogue: Pick<Catalogue, 'types' | 'pricing'>;
  readonly profile: Pick<ApiProfile, 'prices'>;
}

/** The last applied fields of a resource, as its binding records them. */
export interface AppliedValues {
  readonly applied: unknown;
}
