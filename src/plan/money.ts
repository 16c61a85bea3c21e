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

/** Adds decimal texts exactly: `sum(['0.10', '-0.2'])` is `-0.10`. At least two places are kept. */
export function sumDecimals(amounts: readonly string[]): string {
  const places = Math.max(2, ...amounts.map((amount) => amount.split('.')[1]?.length ?? 0));
  const total = amounts.reduce((sum, amount) => sum + scaled(amount, places), 0n);
  const digits = (total < 0n ? -total : total).toString().padStart(places + 1, '0');
  return `${total < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

function negated(amount: string): string {
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
}

function scaled(amount: string, places: number): bigint {
  const [whole = '0', fraction = ''] = amount.replace('-', '').split('.');
  const value = BigInt(whole + fraction.padEnd(places, '0'));
  return amount.startsWith('-') ? -value : value;
}
