import { negated, sumDecimals } from '../core/decimal.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, Price } from '../core/kind.ts';
import type { Draft } from './draft.ts';

/** The change of the monthly bill by the drafts, by known prices. */
export function knownDelta(drafts: readonly Draft[]): string {
  return sumDecimals(drafts.flatMap(pricedParts).flatMap(({ diff }) => priceChange(diff) ?? []));
}

/** A draft, and the resource that is created together with it, as a creation of its own. */
export function pricedParts({ subject, diff }: Pick<Draft, 'subject' | 'diff'>) {
  const { verdict, alongside } = diff;
  const own = { key: subject.key, diff };
  const makes = verdict.verdict === 'create' || verdict.verdict === 'replace';
  if (alongside === undefined || !makes) return [own];
  const { key, price } = alongside;
  return [own, { key, diff: { verdict: { verdict: 'create', changes: [] }, price } satisfies Diff }];
}

/** The highest amount that the drafts may add to the monthly bill, for every choice that the file leaves open. */
export function mostDelta(drafts: readonly Draft[]): string {
  return sumDecimals(drafts.flatMap((draft) => mostChange(draft) ?? []));
}

/** The highest change of the monthly bill by each half of the difference; zero if a price is unknown. */
export function halves(diff: Diff): Readonly<Record<'create' | 'update' | 'delete', string>> {
  if (unknownPrice(atMost(diff)) !== undefined) return { create: '0', update: '0', delete: '0' };
  const { comes, goes } = pricesOf(atMost(diff));
  const known = (price: Price | undefined) => (price !== undefined && 'known' in price ? price.known : '0');
  const [create, gone] = [known(comes), negated(known(goes))];
  return { create, update: sumDecimals([create, gone]), delete: gone };
}

/** The highest amount that the draft may add to the monthly bill, for every choice that the file leaves open. */
export function mostChange(draft: Draft): string | undefined {
  const amounts = pricedParts(draft).flatMap(({ diff }) => priceChange(atMost(diff)) ?? []);
  return amounts.length === 0 ? undefined : sumDecimals(amounts);
}

function atMost(diff: Diff): Diff {
  return diff.dearest === undefined ? diff : { ...diff, price: diff.dearest };
}

/** Decimal text, or `undefined` if nothing is bought or deleted, or a price is unknown. */
export function priceChange(diff: Diff): string | undefined {
  if (unknownPrice(diff) !== undefined) return undefined;
  const { comes, goes } = pricesOf(diff);
  const amounts = [
    ...(comes !== undefined && 'known' in comes ? [comes.known] : []),
    ...(goes !== undefined && 'known' in goes ? [negated(goes.known)] : []),
  ];
  return amounts.length === 0 ? undefined : sumDecimals(amounts);
}

/** The reason why the change of the bill is unknown. @assumption A39 */
export function unknownPrice(diff: Diff): string | undefined {
  const { comes, goes } = pricesOf(diff);
  return [comes, goes].flatMap((price) =>
    price !== undefined && 'unknown' in price ? [price.unknown] : [],
  )[0];
}

/** Keys of the resources that the drafts would buy, or make dearer, at an unknown price. */
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
