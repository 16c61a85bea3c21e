import type { ResourceKey } from '../core/keys.ts';
import { type OperationId, operationId, type Plan } from '../core/plan.ts';
import type { OperationResult } from '../core/progress.ts';
import { draftOne } from '../plan/draft.ts';
import { halves, pricedParts } from '../plan/money.ts';
import type { Run } from './run.ts';

/** What an operation adds to the monthly bill: `max_monthly_increase` counts over all rounds of a run. */
export interface Increase {
  readonly key: ResourceKey;
  /** Decimal text. */
  readonly most: string;
  /** The file left a choice, and what was bought may be cheaper. */
  readonly chosen: boolean;
}

/** What each operation changes of the monthly bill, as things are before it. */
export function increasesOf(
  run: Run,
  { operations }: Plan,
  due: ReadonlySet<OperationId>,
): ReadonlyMap<OperationId, readonly Increase[]> {
  return new Map(
    operations.flatMap(({ id, key, verb }) => {
      const subject = run.world.subjects.get(key);
      if (subject === undefined || !due.has(id) || verb === 'adopt') return [];
      const parts = pricedParts(draftOne(run.deps.kinds, run.world, subject)).map(({ diff }) => {
        const chosen = verb === 'create' && diff.dearest !== undefined;
        return { key, most: halves(diff)[verb], chosen };
      });
      return [[id, parts] as const];
    }),
  );
}

/** Those of what was done, or may have been. */
export function takenEffect(
  run: Run,
  results: readonly OperationResult[],
  increases: ReadonlyMap<OperationId, readonly Increase[]>,
): readonly Increase[] {
  return results
    .filter((result) => hasEffect(run, result))
    .flatMap(({ verb, key }) => increases.get(operationId(verb, key)) ?? []);
}

/** What was bought tells its price once it is seen. Decimal text. */
export function amountOf({ world, deps }: Run, { key, most, chosen }: Increase): string {
  const subject = world.subjects.get(key);
  if (!chosen || subject?.binding === undefined) return most;
  const price = deps.kinds.get(subject.kind)?.priceNow?.(subject, world.observed.get(key), world);
  return price !== undefined && 'known' in price ? price.known : most;
}

/** Also what is of no use, or not known to have been made, may be billed. */
function hasEffect(run: Run, { key, verb, outcome, code }: OperationResult): boolean {
  if (outcome === 'done') return true;
  return (
    verb === 'create' && (code === 'tainted' || (run.intents.get(key)?.phase ?? 'waiting') !== 'waiting')
  );
}
