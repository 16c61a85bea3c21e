import { negated, sumDecimals } from '../core/decimal.ts';
import type { Diff, Price } from '../core/kind.ts';
import type { Draft } from './draft.ts';

/** What the drafts change of the monthly bill, as far as prices are known. */
export function knownDelta(drafts: readonly Draft[]): string {
  return sumDecimals(drafts.flatMap(({ diff }) => priceChange(diff) ?? []));
}

/** The most that the drafts may add to the monthly bill, whatever is chosen of what the file leaves open. */
export function mostDelta(drafts: readonly Draft[]): string {
  return knownDelta(drafts.map((draft) => ({ ...draft, diff: atMost(draft.diff) })));
}

/** What each half of the difference changes of the monthly bill, at most; nothing where that cannot be told. */
export function halves(diff: Diff): { readonly create: string; readonly delete: string } {
  if (unknownPrice(atMost(diff)) !== undefined) return { create: '0', delete: '0' };
  const { comes, goes } = pricesOf(atMost(diff));
  const known = (price: Price | undefined) => (price !== undefined && 'known' in price ? price.known : '0');
  return { create: known(comes), delete: negated(known(goes)) };
}

/** As `priceChange`, whatever is chosen of what the file leaves open. */
export function mostChange(diff: Diff): string | undefined {
  return priceChange(atMost(diff));
}

function atMost(diff: Diff): Diff {
  return diff.dearest === undefined ? diff : { ...diff, price: diff.dearest };
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
