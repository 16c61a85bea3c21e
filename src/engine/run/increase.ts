import type { ResourceKey } from '../../core/keys.ts';
import { type OperationId, operationId, type Plan } from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import { draftOne } from '../../plan/draft.ts';
import { halves, pricedParts } from '../../plan/money.ts';
import type { Run } from '../run.ts';

/** The amount that an operation adds to the monthly bill. `max_monthly_increase` counts all rounds of a run. */
export interface Increase {
  readonly key: ResourceKey;
  /** Decimal text. */
  readonly most: string;
  /** The file left a choice, and the bought product may be cheaper. */
  readonly chosen: boolean;
}

/** The change of the monthly bill by each operation, calculated before the operation. */
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

/** The increases of operations that are done or may be done. */
export function takenEffect(
  run: Run,
  results: readonly OperationResult[],
  increases: ReadonlyMap<OperationId, readonly Increase[]>,
): readonly Increase[] {
  return results
    .filter((result) => hasEffect(run, result))
    .flatMap(({ verb, key }) => increases.get(operationId(verb, key)) ?? []);
}

/** A bought resource shows its price once a read shows the resource. Decimal text. */
export function amountOf({ world, deps }: Run, { key, most, chosen }: Increase): string {
  const subject = world.subjects.get(key);
  if (!chosen || subject?.binding === undefined) return most;
  const price = deps.kinds.get(subject.kind)?.billing.priceNow?.(subject, world.observed.get(key), world);
  return price !== undefined && 'known' in price ? price.known : most;
}

/** A resource that failed, or whose creation is unconfirmed, may be billed too. */
function hasEffect(run: Run, { key, verb, outcome, code }: OperationResult): boolean {
  if (outcome === 'done') return true;
  return (
    verb === 'create' && (code === 'tainted' || (run.intents.get(key)?.phase ?? 'waiting') !== 'waiting')
  );
}
