import type { MonthCost } from '../core/plan.ts';
import { counted } from '../core/text.ts';

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
