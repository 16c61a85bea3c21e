import type { PriceSource } from '../../core/catalogue.ts';
import { money, prorated, sumDecimals } from '../../core/decimal.ts';
import { nounOf, type ResourceKey } from '../../core/keys.ts';
import type { Price, ResourceKind } from '../../core/kind.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { MonthCost } from '../../core/plan.ts';
import type { Month } from '../../core/time.ts';
import type { Billable, BilledSpan, BilledTime, Bounds } from './billed-time.ts';

/** The cost of one live object in a month. Amounts are decimal text. */
export interface BillItem {
  readonly key: ResourceKey;
  readonly kind: KindName;
  readonly id: string;
  readonly from: number;
  readonly until: number;
  readonly began: BilledSpan['began'];
  readonly ended: NonNullable<BilledSpan['end']>['how'] | null;
  /** The monthly price at the end of the span, or of the month. */
  readonly monthly: string | null;
  /** With a moment that is known within bounds, the longest time. */
  readonly cost: string;
  readonly cost_at_least: string;
  /** The reason why a part has no price. That part is not in `cost`. */
  readonly unpriced: string | null;
  /** The reason why the live object may have another price. */
  readonly assumed: string | null;
}

export interface MonthlyBill {
  readonly month: Month;
  /** The end of the month, or the present. */
  readonly until: number;
  readonly currency: string | null;
  readonly items: readonly BillItem[];
  readonly unconfirmed: readonly ResourceKey[];
  readonly cost: string;
  readonly cost_at_least: string;
  /** The monthly price of everything that is billed at `until`. */
  readonly run_rate: string;
  /** The cost of the whole month, if nothing changes. */
  readonly forecast: string;
}

/** @assumption A74 */
export function monthlyBill(
  { spans, unconfirmed }: BilledTime,
  month: Month,
  present: number,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  prices: PriceSource,
): MonthlyBill {
  const now = Math.ceil(present);
  const until = Math.max(month.from, Math.min(month.to, now));
  const servers = new Map(
    spans.flatMap(({ versions }) =>
      versions.flatMap(({ binding }) =>
        factsOf(binding.kind).container ? [[binding.id, binding] as const] : [],
      ),
    ),
  );
  /** `undefined` for a kind that is not billed. */
  const priced = (bound: Billable): Price | undefined => {
    const { billed, recordedPrice } = kinds.get(bound.kind)?.billing ?? {};
    if (billed !== true) return undefined;
    const server = servers.get(bound.parentId ?? '');
    const unknown = `the price of a ${nounOf(bound.kind)} is not shown`;
    return recordedPrice?.(bound, prices, server) ?? { unknown };
  };
  /** A flat price is for all backups of a server: until then the earlier ones are billed. */
  const flatUntil = new Map<string, number>();
  const items = spans.flatMap((span) => {
    const first = span.versions[0]?.binding;
    const price = first && priced(first);
    if (first === undefined || price === undefined) return [];
    const shared = factsOf(first.kind).staysBilled && 'known' in price ? first.parentId : undefined;
    const pieces = piecesOf(span, now, priced, flatUntil.get(shared ?? '') ?? 0);
    if (shared !== undefined)
      flatUntil.set(shared, Math.max(flatUntil.get(shared) ?? 0, pieces.at(-1)?.to ?? 0));
    return itemOf(span, within(pieces, month.from, until), month, until);
  });
  const running = items.flatMap(({ until: to, ended, monthly }) =>
    ended === null && to === until && monthly !== null ? [monthly] : [],
  );
  const cost = sumDecimals(items.map((item) => item.cost));
  return {
    ...{ month, until, currency: prices.profile.prices?.currency ?? null, items, unconfirmed, cost },
    cost_at_least: sumDecimals(items.map((item) => item.cost_at_least)),
    run_rate: money(sumDecimals(running)),
    forecast: sumDecimals([
      cost,
      ...running.map((price) => prorated([[price, month.to - until]], month.to - month.from)),
    ]),
  };
}

/** A time with one price. `least`: nothing or the lower price, while a moment is known only within bounds. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly least: Price;
  readonly most: Price;
}

const free: Price = { known: '0' };

function piecesOf(
  { versions, end }: BilledSpan,
  now: number,
  priced: (bound: Billable) => Price | undefined,
  notBefore: number,
): readonly Piece[] {
  const edges: readonly (Bounds & { readonly price: Price })[] = [
    ...versions.map(({ since, binding }) => ({ ...since, price: priced(binding) ?? free })),
    { ...(end?.at ?? { earliest: now, latest: now }), price: free },
  ];
  const pieces: Piece[] = [];
  let [before, at] = [free, notBefore];
  const add = (to: number, least: Price, most: Price) => {
    if (to > at) pieces.push({ from: at, to, least, most });
    at = Math.max(at, to);
  };
  for (const [place, { price, ...bounds }] of edges.entries()) {
    const [earliest, latest] = [Math.floor(bounds.earliest), Math.ceil(bounds.latest)];
    if (place === 0) at = Math.max(at, earliest);
    else add(earliest, before, before);
    const [low, high] = inOrder(before, price);
    add(latest, low, high);
    before = price;
  }
  // A binding may change although the object is gone already.
  const sure = Math.floor(end?.at.earliest ?? now);
  const unsure = within(pieces, sure, Infinity).map((piece) => ({ ...piece, least: free }));
  return [...within(pieces, 0, sure), ...unsure];
}

/** The lower price first. An unknown price is the higher one. */
function inOrder(one: Price, other: Price): readonly [Price, Price] {
  const isHigher = 'unknown' in one || ('known' in other && Number(one.known) > Number(other.known));
  return isHigher ? [other, one] : [one, other];
}

function within(pieces: readonly Piece[], from: number, to: number): readonly Piece[] {
  return pieces
    .map((piece) => ({ ...piece, from: Math.max(piece.from, from), to: Math.min(piece.to, to) }))
    .filter((piece) => piece.from < piece.to);
}

function itemOf(
  { key, began, versions, end }: BilledSpan,
  pieces: readonly Piece[],
  month: Month,
  until: number,
): readonly BillItem[] {
  const [first, last] = [pieces[0], pieces.at(-1)];
  const bound = versions.at(-1)?.binding;
  if (first === undefined || last === undefined || bound === undefined) return [];
  const sum = (which: 'least' | 'most') =>
    prorated(
      pieces.flatMap((piece) => {
        const price = piece[which];
        return 'known' in price ? [[price.known, piece.to - piece.from] as const] : [];
      }),
      month.to - month.from,
    );
  const unknown = pieces.map(({ most }) => most).find((price) => 'unknown' in price);
  const assumed = pieces.flatMap(({ most }) => ('known' in most ? (most.assumed ?? []) : []))[0];
  const isOver = end !== undefined && end.at.latest <= until;
  return [
    {
      ...{ key, kind: bound.kind, id: bound.id, from: first.from, until: last.to, began },
      ended: isOver ? end.how : null,
      monthly: 'known' in last.most ? money(last.most.known) : null,
      ...{ cost: sum('most'), cost_at_least: sum('least') },
      unpriced: unknown !== undefined && 'unknown' in unknown ? unknown.unknown : null,
      assumed: assumed ?? null,
    },
  ];
}

/** The items whose cost in the month is not fully known, by the reason. */
export function gapsIn({ items, month }: Pick<MonthlyBill, 'items' | 'month'>) {
  return {
    unpriced: items.filter((item) => item.unpriced !== null),
    assumed: items.filter((item) => item.assumed !== null),
    older: items.filter(({ began, from }) => began === 'known' && from > month.from),
    released: items.filter(({ ended }) => ended === 'released'),
  };
}

/** The part of a bill that a plan shows. */
export function monthCostOf(bill: MonthlyBill): MonthCost {
  const { month, cost, cost_at_least, run_rate, forecast, unconfirmed } = bill;
  const gaps = Object.values(gapsIn(bill)).flatMap((items) => items.map(({ key }) => key));
  return {
    ...{ name: month.name, cost, cost_at_least, run_rate, forecast },
    incomplete: [...new Set([...gaps, ...unconfirmed])],
  };
}
