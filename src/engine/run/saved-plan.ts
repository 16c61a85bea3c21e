import equal from 'fast-deep-equal';
import { PlanStaleError } from '../../core/errors.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Plan } from '../../core/plan.ts';
import { run } from '../../core/remedy.ts';

/** @throws PlanStaleError unless the plan is the one that was reviewed. */
export function refuseStale(plan: Plan, saved: Plan): void {
  // The digest covers the world, and the operator reviewed the list of operations. Both must be unchanged.
  if (plan.digest === saved.digest && equal(plan.operations, saved.operations)) return;
  const others = differing(plan.operations, saved.operations);
  const where =
    others.length === 0
      ? ''
      : `. Other operations result now for ${others.slice(0, 5).join(', ')}${others.length > 5 ? ' and more' : ''}`;
  throw new PlanStaleError(
    `The saved plan no longer fits: the project or the spec has changed since${where}.`,
    { remedies: [run('plan', ['--out', 'FILE'], { when: 'to save a new plan' })] },
  );
}

/** Keys whose operations differ from the reviewed plan. */
function differing(now: Plan['operations'], then: Plan['operations']): ResourceKey[] {
  const same = (one: Plan['operations'][number], others: Plan['operations']) =>
    others.some((other) => equal(one, other));
  const moved = [...now.filter((each) => !same(each, then)), ...then.filter((each) => !same(each, now))];
  return [...new Set(moved.map(({ key }) => key))];
}
