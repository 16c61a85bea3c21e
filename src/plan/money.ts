import { negated, sumDecimals } from '../core/decimal.ts';
import type { Diff } from '../core/kind.ts';
import type { Draft } from './draft.ts';

/** What the drafts change of the monthly bill, as far as prices are known. */
export function knownDelta(drafts: readonly Draft[]): string {
  return sumDecimals(drafts.flatMap(({ diff }) => priceChange(diff) ?? []));
}

/** Decimal text, or `undefined` where nothing is bought or given up, or a price is not known. */
export function priceChange(diff: Diff): string | undefined {
  if (unknownPrice(diff) !== undefined) return undefined;
  const { comes, goes } = pricesOf(diff);
  const amounts = [
    ...(comes !== undefined && 'known' in comes ? [comes.known] : []),
    ...(goes !== undefined && 'known' in goes ? [negated(goes.known)] : []),
  ];
  return amounts.length === 0 ? undefined : sumDecimals(amounts);
}

/** Why the change of the bill cannot be told. @assumption A39 */
export function unknownPrice(diff: Diff): string | undefined {
  const { comes, goes } = pricesOf(diff);
  return [comes, goes].flatMap((price) =>
    price !== undefined && 'unknown' in price ? [price.unknown] : [],
  )[0];
}

function pricesOf({ verdict: { verdict }, price, freed }: Diff) {
  return {
    comes: verdict === 'create' || verdict === 'replace' ? price : undefined,
    goes: verdict === 'delete' || verdict === 'replace' ? freed : undefined,
  };
}
