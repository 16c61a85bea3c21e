import { sumDecimals } from '../core/decimal.ts';
import { type Blocked, deletionsOf } from '../core/plan.ts';
import { outside, run, setting } from '../core/remedy.ts';
import { capitalised } from '../core/text.ts';
import { type Draft, isDeletion, operationsOf } from './draft.ts';
import { expiredEntry } from './expiry.ts';
import { asBlocked } from './guarded.ts';
import { impactOf } from './guards.ts';
import type { Coded, GuardInput } from './objections.ts';
import { mostOf } from './totals.ts';

type Objections = ReadonlyMap<Draft, Blocked>;
type Cap = 'max_deletions' | 'max_monthly_increase';
type Capped = readonly (readonly [Draft, Coded])[];

/**
 * The objections to the drafts, with the caps. A cap counts only the drafts that would be carried out without the cap.
 * `goingWith` gives these drafts for the objections so far. If a cap is exceeded, every draft that it counts is
 * blocked.
 */
export function withCaps(
  left: readonly Draft[],
  objections: Objections,
  input: GuardInput,
  goingWith: (objections: Objections, cap: Cap) => readonly Draft[],
): Objections {
  const held = new Map(objections);
  const hold = (capped: Capped) => {
    for (const [draft, objection] of capped) held.set(draft, asBlocked(draft, objection));
  };
  // The order and the dependencies are computed only if a cap may be exceeded.
  if (maxDeletions(left, input).length > 0) hold(maxDeletions(goingWith(held, 'max_deletions'), input));
  if (input.world.settings.max_monthly_increase !== null)
    hold(maxIncrease(goingWith(held, 'max_monthly_increase'), input));
  return held;
}

function maxDeletions(going: readonly Draft[], { world, destroy, deletedBefore }: GuardInput): Capped {
  const limit = world.settings.max_deletions;
  const leaving = going.filter(isDeletion);
  const counted = deletionsOf({ operations: leaving.flatMap(operationsOf) });
  const deletions = counted + deletedBefore;
  if (deletions <= limit) return [];
  const expires = leaving.some(({ subject }) => expiredEntry(subject, world)) ? ', or change `expires`' : '';
  const undo = `undo the edits of the spec that delete these resources${expires}`;
  const undoing = outside(undo, { when: 'to keep them' });
  const alongside =
    leaving.length > counted ? ' (without addresses that are deleted with their servers)' : '';
  const counts = deletions === 1 ? '1 deletion' : `${deletions} deletions`;
  const verb = deletions === 1 ? 'is' : 'are';
  return leaving.map((draft) => [
    draft,
    {
      code: 'max_deletions',
      reason: `${counts} in one run${alongside} ${verb} more than settings.max_deletions (${limit}). ${capitalised(impactOf(draft, world))}`,
      remedies: destroy
        ? [run('destroy', ['--max-deletions', deletions])]
        : [undoing, setting('max_deletions', deletions, 'if all these deletions are intended')],
    },
  ]);
}

function maxIncrease(going: readonly Draft[], { world, increasedBefore = '0' }: GuardInput): Capped {
  const limit = world.settings.max_monthly_increase;
  const increase = Number(sumDecimals([increasedBefore, ...going.map(mostOf)]));
  if (limit === null || increase <= limit) return [];
  const adding = going.filter((draft) => Number(mostOf(draft)) > 0);
  return adding.map((draft) => [
    draft,
    {
      code: 'max_monthly_increase',
      reason: `the known prices add ${increase.toFixed(2)} a month, more than settings.max_monthly_increase (${limit})`,
      remedies: [setting('max_monthly_increase', Math.ceil(increase), 'if this increase is intended')],
    },
  ]);
}
