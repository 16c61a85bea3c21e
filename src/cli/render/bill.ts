import { costText, monthName } from '../../core/decimal.ts';
import { counted, printable } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import { type BillItem, gapsIn, type MonthlyBill } from '../../plan/bill/monthly-bill.ts';
import { time } from '../../view/facts.ts';
import { barsSvg } from '../../view/timeline.ts';
import type { Paint } from '../terminal.ts';
import { present } from './values.ts';

/** The parts of a bill that do not come from the journal. */
export interface BillContext {
  readonly projectId: number | null;
  /** When the state began, wall ms. */
  readonly knownSince: number;
  readonly hasPrices: boolean;
}

/** The bill as a table, its sums, and the parts that have no cost. */
export function billText(bill: MonthlyBill, about: BillContext, paint: Paint): string {
  const { month, until, currency, items } = bill;
  const sum = (amount: string) => (currency === null ? amount : `${amount} ${currency}`);
  const [name, isCurrent] = [monthName(month.name), until < month.to];
  const rows = items
    .filter((item) => !isFree(item))
    .map((item) => [
      ...[printable(item.key), item.id, moment(item.from).slice(0, 19), endOf(item, bill)],
      ...[item.monthly ?? '?', hasCost(item) ? costText(item) : '?'],
    ]);
  const forecast = [`Run rate: ${sum(bill.run_rate)} a month`, `Forecast for ${name}: ${sum(bill.forecast)}`];
  const total = paint('bold', `${isCurrent ? 'Cost so far' : 'Cost'}: ${sum(costText(bill))}`);
  const lines = present(
    paint('bold', `Bill for ${name} (UTC)${isCurrent ? `, until ${moment(until)}` : ''}`),
    rows.length === 0
      ? 'No resource of this state was billed in that month.'
      : ['', ...table([titles, ...rows])],
    // A sum of nothing would read as free.
    (rows.length === 0 || items.some(hasCost)) && present('', total, isCurrent && forecast),
    missing(bill, about),
  );
  return `${lines.join('\n')}\n`;
}

const titles = ['RESOURCE', 'ID', 'FROM', 'UNTIL', 'A MONTH', 'COST'];

/** The parts of the month, and the resources, that have no cost in the bill. */
function missing(bill: MonthlyBill, { knownSince, hasPrices }: BillContext): readonly string[] {
  const { unpriced, assumed, older, released } = gapsIn(bill);
  const reasons = unpriced.map(
    ({ key, id, unpriced: reason }) => `  ${printable(key)} (${id}): ${printable(reason ?? '')}`,
  );
  const them = reasons.length === 1 ? 'it' : 'them';
  const unconfirmed = bill.unconfirmed.map((key) => ({ key }));
  return present(
    reasons.length > 0 && [
      '',
      `No price for ${counted(reasons.length, 'resource')}. The cost does not include ${them}:`,
      ...reasons,
      `  → ${hasPrices ? '' : 'Add prices with --prices FILE, such as examples/prices.yaml. '}${listed}`,
    ],
    named('Adopted: the price is by the values of the entry, which are not confirmed', assumed),
    named('Older than its binding, so the cost before the first moment is not known', older),
    named('Released: it is still billed, and the cost after the last moment is not known', released),
    knownSince > bill.month.from && [
      '',
      `The state began at ${moment(knownSince)}: the cost before that moment is not known.`,
    ],
    named('Not included, because the creation is unconfirmed (vdcsync status)', unconfirmed),
  );
}

const listed =
  'A price list has prices of addresses, network interfaces, and servers without a graphics card package. The prices of these packages come from the catalogue of the API, which --offline does not read.';

function named(text: string, items: readonly Pick<BillItem, 'key'>[]): readonly string[] {
  return items.length === 0 ? [] : ['', `${text}: ${items.map(({ key }) => printable(key)).join(', ')}`];
}

/** Without a price it is never counted as zero. */
function hasCost({ cost, unpriced }: BillItem): boolean {
  return unpriced === null || Number(cost) > 0;
}

function isFree({ cost, monthly, unpriced }: BillItem): boolean {
  return unpriced === null && cost === '0.00' && Number(monthly) === 0;
}

function endOf({ until: to, ended }: BillItem, { month, until }: MonthlyBill): string {
  if (ended !== null) return `${moment(to).slice(0, 19)} ${ended}`;
  return until < month.to ? 'now' : 'end of month';
}

/** Aligned columns; amounts are in the last two. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = titles.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const pad = (text: string, at: number) =>
    at < titles.length - 2 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0);
  return rows.map((row) => row.map(pad).join('  '));
}

export function billJson(bill: MonthlyBill, { projectId, knownSince }: BillContext) {
  const { month, until, currency, items, unconfirmed, cost, cost_at_least, run_rate, forecast } = bill;
  return {
    format_version: 1,
    project_id: projectId,
    ...{ month: month.name, from: time(month.from), until: time(until), known_since: time(knownSince) },
    ...{ currency, cost, cost_at_least, run_rate, forecast },
    items: items.map(itemJson),
    unconfirmed,
  };
}

function itemJson(item: BillItem) {
  return { ...item, from: time(item.from), until: time(item.until) };
}

/** By RFC 4180, with the fields of the JSON. */
export function billCsv({ items, month, currency }: MonthlyBill): string {
  const lines = items.map((item) =>
    [month.name, currency, ...Object.values(itemJson(item))].map(field).join(','),
  );
  return [csvHead, ...lines].map((line) => `${line}\r\n`).join('');
}

const csvHead =
  'month,currency,key,kind,id,from,until,began,ended,monthly,cost,cost_at_least,unpriced,assumed';

function field(text: string | null): string {
  return /[",\r\n]/.test(text ?? '') ? `"${text?.replaceAll('"', '""')}"` : (text ?? '');
}

/** The billed time of each resource in the month. */
export function billSvg(bill: MonthlyBill): string {
  const { month, items, currency } = bill;
  const bars = items
    .filter((item) => !isFree(item))
    .map((item) => {
      const span = { startMs: item.from - month.from, endMs: item.until - month.from };
      const label = `${item.key} ${item.unpriced === null ? costText(item) : 'without a price'}`;
      return { ...span, id: label, outcome: 'done', waits: item.unpriced === null ? [] : [span] };
    });
  const days = [1, 6, 11, 16, 21, 26].map((day) => `${month.name}-${String(day).padStart(2, '0')}`);
  return barsSvg(
    bars,
    `Bill for ${monthName(month.name)}: ${costText(bill)}${currency === null ? '' : ` ${currency}`}`,
    {
      ticks: (end) =>
        days.map((day) => [Date.parse(day) - month.from, day] as const).filter(([ms]) => ms <= end),
      legend: [
        ['works', 'billed'],
        ['waits', 'without a price'],
      ],
      said: ({ id, startMs, endMs }) =>
        `${id}: ${moment(month.from + startMs)} to ${moment(month.from + endMs)}`,
    },
  );
}
