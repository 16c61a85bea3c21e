import { money, negated, sumDecimals } from '../core/decimal.ts';
import { isEntry } from '../core/desired.ts';
import { type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { Diff, Price, World } from '../core/kind.ts';
import type { Blocked, Cost, Effort, MonthCost, Operation, Plan, Summary } from '../core/plan.ts';
import type { OperationResult } from '../core/progress.ts';
import type { Draft } from './draft.ts';

/**
 * The plan with these blocked operations. Each resource counts once, so a blocked key has no operations in the
 * summary.
 */
export function withBlocked(plan: Plan, blocked: readonly Blocked[]): Plan {
  const keys = new Set(blocked.map(({ key }) => key));
  const left = plan.operations.filter(({ key }) => !keys.has(key));
  return { ...plan, blocked, summary: { ...plan.summary, ...counts(left), blocked: keys.size } };
}

/** Both halves of a replacement count as one. An operation that an earlier run has sent is not counted again. */
function counts(all: readonly Operation[]) {
  const operations = all.filter(({ open }) => open !== true);
  const plain = (verb: string) =>
    operations.filter((each) => each.verb === verb && each.replacement === undefined).length;
  return {
    create: plain('create'),
    update: plain('update'),
    replace: operations.filter(({ verb, replacement }) => verb === 'create' && replacement !== undefined)
      .length,
    delete: plain('delete'),
    adopt: plain('adopt'),
  };
}

interface Counted {
  readonly drafts: readonly Draft[];
  readonly operations: readonly Operation[];
  readonly blocked: readonly Blocked[];
  /** Keys with a planned or blocked operation, also outside the selection. */
  readonly concerned: ReadonlySet<ResourceKey>;
  /** Keys with an open write of an earlier run. */
  readonly inProgress: number;
}

export function summarise(
  { operations, blocked, drafts, concerned, inProgress }: Counted,
  { observed }: World,
): Summary {
  const unseen = drafts.filter(
    ({ subject, kind }) =>
      observed.has(subject.key) && (kind.unseen?.fields(subject, observed.get(subject.key)) ?? []).length > 0,
  ).length;
  return {
    ...(unseen === 0 ? {} : { unseen }),
    ...(inProgress === 0 ? {} : { in_progress: inProgress }),
    ...counts(operations),
    blocked: new Set(blocked.map(({ key }) => key)).size,
    unchanged: drafts.filter(
      ({ subject: { key, desired } }) => desired !== undefined && isEntry(desired) && !concerned.has(key),
    ).length,
  };
}

/** `all`: the drafts of all resources that are billed now; `drafts`: the drafts that are carried out. */
export function costOf(
  world: World,
  all: readonly Draft[],
  drafts: readonly Draft[],
  {
    month,
    freedBefore = new Map(),
  }: { readonly month?: MonthCost | undefined; readonly freedBefore?: Prices | undefined },
): Cost {
  const changes = drafts.flatMap(priceChanges);
  const delta = sumOf(changes.map(({ change }) => change));
  const most = sumOf(changes.map((each) => each.most));
  const freed = freedFor(drafts, freedBefore);
  const now = pricesNow(world, all);
  const before = sumOf([...now.values()]);
  return {
    monthly: {
      currency: world.profile.prices?.currency ?? null,
      known_before: money(before),
      known_after: money(sumDecimals([before, delta])),
      unknown: [...now].flatMap(([key, price]) => ('unknown' in price ? [key] : [])),
    },
    ...(month === undefined ? {} : { month }),
    known_monthly_delta: money(delta),
    ...(Number(most) === Number(delta) ? {} : { known_monthly_most: money(most) }),
    ...(Number(freed) === 0 ? {} : { known_monthly_freed: money(freed) }),
    unknown: changes.flatMap(({ key, change }) => ('unknown' in change ? [`${key}: ${change.unknown}`] : [])),
    unpriced: changes.flatMap(({ key, isUnknownPurchase }) => (isUnknownPurchase ? [key] : [])),
    left_billed: drafts.flatMap(({ diff }) => diff.leftBilled ?? []),
  };
}

/** The monthly prices of the project's managed resources, by key. */
export type Prices = ReadonlyMap<ResourceKey, Price>;

/** The present monthly prices of the resources that exist and are billed. */
export function pricesNow(world: World, resources: readonly Pick<Draft, 'kind' | 'subject'>[]): Prices {
  return new Map(
    resources.flatMap(({ kind, subject }) => {
      const price = kind.billing.priceNow?.(subject, world.observed.get(subject.key), world);
      return price === undefined ? [] : [[subject.key, price] as const];
    }),
  );
}

/**
 * The least effort of carrying the plan out: one refresh before and one after,
 * and for each operation a poll or a check; a deletion is checked against more lists.
 */
export function effortOf(operations: readonly Operation[], world: World): Effort {
  const { limits } = world.profile;
  const writes = operations.filter(({ verb, open }) => verb !== 'adopt' && open !== true);
  if (writes.length === 0) return { writes: 0, reads: 0, seconds_at_least: 0 };
  const servers = world.serverSubjects().length;
  const deletions = writes.filter(({ verb }) => verb === 'delete').length;
  const reads =
    2 * readsOf.collections + readsOf.server * servers + writes.length + readsOf.deletion * deletions;
  const windows = Math.max(Math.ceil(writes.length / limits.writes), Math.ceil(reads / limits.reads)) - 1;
  return { writes: writes.length, reads, seconds_at_least: (windows * limits.windowMs) / 1000 };
}

const readsOf = { collections: 3, server: 2, deletion: 1 };

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

/**
 * The highest amount that these drafts add to the monthly bill, as decimal text. The creation that completes a replacement
 * adds the difference from the price of the deleted resource.
 */
export function increaseOf(drafts: readonly Draft[], freedBefore: Prices = new Map()): string {
  return sumDecimals([...drafts.map(mostOf), negated(freedFor(drafts, freedBefore))]);
}

function freedFor(drafts: readonly Draft[], freedBefore: Prices): string {
  return sumOf(drafts.flatMap(({ subject }) => freedBefore.get(subject.key) ?? []));
}

/** The sum of the known prices, as decimal text. */
function sumOf(prices: readonly Price[]): string {
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

/**
 * The amount that the writes of this run have added to the monthly bill, as decimal text: `max_monthly_increase`
 * counts all rounds of a run. An adoption adds nothing, because the resource was billed before.
 *
 * @param freed the resources whose deletion counts with the creation that follows it
 */
export function increaseSince(
  before: Prices,
  now: Prices,
  results: readonly OperationResult[],
  freed: Prices,
): string {
  const written = new Set(results.flatMap(({ key, verb }) => (verb === 'adopt' ? [] : [key])));
  const isWritten = (key: ResourceKey) =>
    written.has(key) || written.has(takeApart(key).parent ?? key) || written.has(retiredFrom(key) ?? key);
  return sumOf([
    ...[...now].flatMap(([key, price]) => (isWritten(key) ? [price] : [])),
    ...[...before].flatMap(([key, price]) => (isWritten(key) && !freed.has(key) ? [lessened(price)] : [])),
  ]);
}

function lessened(price: Price): Price {
  return 'known' in price ? { known: negated(price.known) } : price;
}
