import type { MonthCost } from './plan.ts';
import { counted } from './text.ts';

/** Money as decimal text, added and multiplied exactly: no price is ever a binary fraction. */

/** Adds: `sum(['0.10', '-0.2'])` is `-0.10`. At least two places are kept. */
export function sumDecimals(amounts: readonly string[]): string {
  const places = Math.max(2, ...amounts.map((amount) => amount.split('.')[1]?.length ?? 0));
  const total = amounts.reduce((sum, amount) => sum + scaled(amount, places), 0n);
  return written(total, places);
}

/** `amount × of ÷ by`, rounded to four places: `part('2.50', 8192, 1024)` is `20.0000`. */
export function part(amount: string, of: number, by = 1): string {
  const total = scaled(amount, 8) * BigInt(of);
  const wanted = total / BigInt(by) / 10n ** 3n;
  const rounded = (wanted + (wanted < 0n ? -5n : 5n)) / 10n;
  return written(rounded, 4);
}

/** The exact sum of `amount × of` over the parts, divided by `by` and rounded to cents: `prorated([['57.00', 1]], 2)` is `28.50`. */
export function prorated(parts: readonly (readonly [amount: string, of: number])[], by: number): string {
  const total = parts.reduce((sum, [amount, of]) => sum + scaled(amount, 8) * BigInt(of), 0n);
  const cent = BigInt(by) * 10n ** 6n;
  return written((2n * total + cent) / (2n * cent), 2);
}

/** The amount with the other sign. */
export function negated(amount: string): string {
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
}

/** Two places, or as many as are not zero. */
export function money(amount: string): string {
  return sumDecimals([amount]).replace(/(\.\d\d)(\d*?)0+$/, '$1$2');
}

function written(total: bigint, places: number): string {
  const digits = (total < 0n ? -total : total).toString().padStart(places + 1, '0');
  return `${total < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

function scaled(amount: string, places: number): bigint {
  const [whole = '0', fraction = ''] = amount.replace('-', '').split('.');
  const value = BigInt(whole + fraction.padEnd(places, '0').slice(0, places));
  return amount.startsWith('-') ? -value : value;
}

/** `2026-11` as `November 2026`. */
export function monthName(month: string): string {
  return new Date(month).toLocaleString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
}

/** The cost of a part of a month, with both bounds if they differ. */
export function costText({ cost, cost_at_least: least }: Pick<MonthCost, 'cost' | 'cost_at_least'>): string {
  return cost === least ? cost : `${least} to ${cost}`;
}

/** One line; nothing where nothing has a cost: a sum of nothing would read as free. */
export function monthLine(month: MonthCost | undefined, currency: string | null): readonly string[] {
  if (month === undefined || Number(month.cost) + Number(month.run_rate) === 0) return [];
  const { name, run_rate: rate, forecast, incomplete } = month;
  const unit = currency === null ? '' : ` ${currency}`;
  const missing =
    incomplete.length === 0
      ? ''
      : `; not fully known of ${counted(incomplete.length, 'resource')}: see vdcsync bill`;
  return [
    `In ${monthName(name)}: ${costText(month)}${unit} so far, run rate ${rate} a month, forecast ${forecast}${missing}`,
  ];
}
