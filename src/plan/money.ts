import { negated, sumDecimals } from '../core/decimal.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, Price } from '../core/kind.ts';
import type { Draft } from './draft.ts';

/** What the drafts change of the monthly bill, as far as prices are known. */
export function knownDelta(drafts: readonly Draft[]): string {
  return sumDecimals(drafts.flatMap(pricedParts).flatMap(({ diff }) => priceChange(diff) ?? []));
}

/** A draft, and what comes with it as a creation of its own. */
export function pricedParts({ subject, diff }: Pick<Draft, 'subject' | 'diff'>) {
  const { verdict, alongside } = diff;
  const own = { key: subject.key, diff };
  const makes = verdict.verdict === 'create' || verdict.verdict === 'replace';
  if (alongside === undefined || !makes) return [own];
  const { key, price } = alongside;
  return [own, { key, diff: { verdict: { verdict: 'create', changes: [] }, price } satisfies Diff }];
}

/** The most that the drafts may add to the monthly bill, whatever is chosen of what the file leaves open. */
export function mostDelta(drafts: readonly Draft[]): string {
  return sumDecimals(drafts.flatMap((draft) => mostChange(draft) ?? []));
}

/** What each half of the difference changes of the monthly bill, at most; nothing where that cannot be told. */
export function halves(diff: Diff): Readonly<Record<'create' | 'update' | 'delete', string>> {
  if (unknownPrice(atMost(diff)) !== undefined) return { create: '0', update: '0', delete: '0' };
  const { comes, goes } = pricesOf(atMost(diff));
  const known = (price: Price | undefined) => (price !== undefined && 'known' in price ? price.known : '0');
  const [create, gone] = [known(comes), negated(known(goes))];
  return { create, update: sumDecimals([create, gone]), delete: gone };
}

/** What the draft may add to the monthly bill, whatever is chosen of what the file leaves open. */
export function mostChange(draft: Draft): string | undefined {
  const amounts = pricedParts(draft).flatMap(({ diff }) => priceChange(atMost(diff)) ?? []);
  return amounts.length === 0 ? undefined : sumDecimals(amounts);
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

/** Keys of what the drafts would buy, or make dearer, at a price that is not known. */
export function unknownPurchases(drafts: readonly Draft[]): readonly ResourceKey[] {
  return drafts.flatMap(pricedParts).flatMap(({ key, diff }) => {
    const { comes } = pricesOf(diff);
    return comes !== undefined && 'unknown' in comes ? [key] : [];
  });
}

function pricesOf({ verdict: { verdict }, price, freed }: Diff) {
  const both = verdict === 'replace' || verdict === 'update';
  return {
    comes: both || verdict === 'create' ? price : undefined,
    goes: both || verdict === 'delete' ? freed : undefined,
  };
}
