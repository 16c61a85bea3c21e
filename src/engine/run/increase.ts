import { negated } from '../../core/decimal.ts';
import { type ResourceKey, retiredFrom, takeApart } from '../../core/keys.ts';
import type { Price } from '../../core/kind.ts';
import type { OperationResult } from '../../core/progress.ts';
import { pricesNow, sumOf } from '../../plan/totals.ts';
import type { Run } from '../run.ts';

/** The monthly prices of the project's managed resources, by key. */
export type Prices = ReadonlyMap<ResourceKey, Price>;

export function pricesOf({ world, kindOf }: Run): Prices {
  return pricesNow(
    world,
    [...world.subjects.values()].map((subject) => ({ subject, kind: kindOf(subject.kind) })),
  );
}

/**
 * The amount that the writes of this run have added to the monthly bill, as decimal text: `max_monthly_increase`
 * counts all rounds of a run. An adoption adds nothing, because the resource was billed before.
 */
export function increaseSince(before: Prices, now: Prices, results: readonly OperationResult[]): string {
  const written = new Set(results.flatMap(({ key, verb }) => (verb === 'adopt' ? [] : [key])));
  const isWritten = (key: ResourceKey) =>
    written.has(key) || written.has(takeApart(key).parent ?? key) || written.has(retiredFrom(key) ?? key);
  return sumOf([
    ...[...now].flatMap(([key, price]) => (isWritten(key) ? [price] : [])),
    ...[...before].flatMap(([key, price]) => (isWritten(key) ? [lessened(price)] : [])),
  ]);
}

function lessened(price: Price): Price {
  return 'known' in price ? { known: negated(price.known) } : price;
}
