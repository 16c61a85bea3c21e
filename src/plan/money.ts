import { negated, sumDecimals } from '../core/decimal.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, Price } from '../core/kind.ts';
import type { Draft } from './draft.ts';

/** The change of the monthly bill by one resource. */
export interface PriceChange {
  readonly key: ResourceKey;
  readonly change: Price;
  /** The highest possible change, where the spec leaves a choice. */
  readonly most: Price;
  /** The resource is bought, or made dearer, at an unknown price. @assumption A39 */
  readonly isUnknownPurchase: boolean;
}

/** The changes of the monthly bill by a draft: of its resource, and of a resource that is created together with it. */
export function priceChanges({ subject, diff }: Pick<Draft, 'subject' | 'diff'>): readonly PriceChange[] {
  const { verdict, alongside } = diff;
  const own = changeOf(subject.key, diff);
  const makes = verdict.verdict === 'create' || verdict.verdict === 'replace';
  if (alongside === undefined || !makes) return own;
  const { key, price } = alongside;
  return [...own, ...changeOf(key, { verdict: { verdict: 'create', changes: [] }, price })];
}

/** The highest amount that a draft may add to the monthly bill, as decimal text. */
export function mostOf(draft: Pick<Draft, 'subject' | 'diff'>): string {
  return sumOf(priceChanges(draft).map(({ most }) => most));
}

/** The sum of the known prices, as decimal text. */
export function sumOf(prices: readonly Price[]): string {
  return sumDecimals(prices.flatMap((price) => ('known' in price ? [price.known] : [])));
}

function changeOf(key: ResourceKey, diff: Diff): PriceChange[] {
  const { price, dearest = price, freed } = diff;
  const { verdict } = diff.verdict;
  const changes = verdict === 'replace' || verdict === 'update';
  const comes = changes || verdict === 'create';
  const goes = changes || verdict === 'delete' ? freed : undefined;
  const change = difference(comes ? price : undefined, goes);
  const most = difference(comes ? dearest : undefined, goes);
  if (change === undefined || most === undefined) return [];
  return [{ key, change, most, isUnknownPurchase: comes && price !== undefined && 'unknown' in price }];
}

/** An unknown part makes the whole change unknown. `undefined` if nothing is bought or deleted. */
function difference(comes: Price | undefined, goes: Price | undefined): Price | undefined {
  if (comes === undefined && goes === undefined) return undefined;
  if (comes !== undefined && 'unknown' in comes) return comes;
  if (goes !== undefined && 'unknown' in goes) return goes;
  return { known: sumDecimals([comes?.known ?? '0', negated(goes?.known ?? '0')]) };
}
