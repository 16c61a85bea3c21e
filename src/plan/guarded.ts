import { sumDecimals } from '../core/decimal.ts';
import { canonicalJson } from '../core/json.ts';
import { type Blocked, deletionsOf, type Verb } from '../core/plan.ts';
import { type Edit, type Remedy, type RemedyStep, setting } from '../core/remedy.ts';
import { once } from '../core/turns.ts';
import { type Draft, isDeletion, operationsOf } from './draft.ts';
import { guards } from './guards.ts';
import { entriesFromUnknown } from './moved-from.ts';
import type { Coded, GuardInput, Objection, PlanFacts } from './objections.ts';
import { isPurchase } from './purchases.ts';
import { mostOf } from './totals.ts';
import { matches } from './unmanaged.ts';
import { openings } from './waits.ts';

/**
 * The objections to the drafts, except for the caps, which count the remaining drafts. The remedy that permits a draft
 * has all edits in one: those that further guards need, and the caps that all permitted drafts together need.
 */
export function objectionsTo(drafts: readonly Draft[], input: GuardInput): ReadonlyMap<Draft, Blocked> {
  const facts = guardFacts(drafts, input);
  const found = new Map(drafts.map((draft) => [draft, objectionsIn(draft, input, facts)] as const));
  const possible = drafts.filter((draft) => {
    const [first] = found.get(draft) ?? [];
    return first === undefined || first.permit !== undefined;
  });
  const caps = once(() => capsBeyond(possible, input));
  return new Map(
    [...found].flatMap(([draft, [first, ...others]]) => {
      if (first === undefined) return [];
      const { permit, ...objection } = withReasonOf(others[0], first);
      if (permit === undefined) return [[draft, asBlocked(draft, objection)] as const];
      const further = [...others.flatMap((each) => each.permit ?? []), ...(isDeletion(draft) ? caps() : [])];
      const remedies = [...objection.remedies, inOne(permit, further)];
      return [[draft, asBlocked(draft, { ...objection, remedies })] as const];
    }),
  );
}

/** An objection to all changes says nothing about the resource: the next objection does. */
function withReasonOf(next: Objection | undefined, first: Coded & Objection): Coded & Objection {
  if (next?.permit === undefined || first.remedies.length > 0) return first;
  return { ...first, reason: `${first.reason}. Also: ${next.reason}`, remedies: next.remedies };
}

/** The objections of all guards; of the first guard alone if its objection has no permit. */
function objectionsIn(draft: Draft, input: GuardInput, facts: PlanFacts): (Coded & Objection)[] {
  const found: (Coded & Objection)[] = [];
  for (const { code, check } of guards) {
    const objection = check(draft, input, facts);
    const known = objection?.code ?? code;
    if (objection !== undefined && known !== undefined) found.push({ ...objection, code: known });
    if (found[0] !== undefined && found[0].permit === undefined) break;
  }
  return found;
}

/** The verb is that of the operation that the draft asks for. A replacement is an update. */
export function asBlocked({ subject: { key }, diff: { verdict } }: Draft, objection: Coded): Blocked {
  const asked = verdict.verdict === 'blocked' ? verdict.verb : verdict.verdict;
  return { key, verb: isVerb(asked) ? asked : 'update', ...objection };
}

function isVerb(verdict: string): verdict is Verb {
  return verdict === 'create' || verdict === 'delete' || verdict === 'adopt';
}

function guardFacts(drafts: readonly Draft[], input: GuardInput): PlanFacts {
  const { register, world } = input;
  const buyers = () => drafts.flatMap(({ subject, diff }) => (isPurchase(subject, diff) ? [subject] : []));
  return {
    matches: once(() => matches(buyers(), register, world)),
    movedFromUnknown: once(() => entriesFromUnknown(world)),
    openingFor: openings(input),
  };
}

/**
 * One remedy with the steps of all these remedies: after it, none of the objections remains. Edits of one place become
 * one edit. The final commands of the first remedy remain the last steps.
 */
function inOne(first: Remedy, others: readonly Remedy[]): Remedy {
  const steps = stepsIn(first);
  const isLast = (at: number) => at > 0 && steps.slice(at).every(({ type }) => type === 'run');
  const end = steps.findIndex((_, at) => isLast(at));
  const [before, after] = end === -1 ? [steps, []] : [steps.slice(0, end), steps.slice(end)];
  const all = others.flatMap(stepsIn).reduce(withStep, before);
  const further = after.filter((step) => !all.some((each) => isSame(each, step)));
  const [start = first, ...next] = [...all, ...further];
  const { when } = first;
  return { ...start, ...(when === undefined ? {} : { when }), ...(next.length === 0 ? {} : { next }) };
}

function stepsIn({ when: _when, next = [], ...step }: Remedy): readonly RemedyStep[] {
  return [step, ...next];
}

function withStep(steps: readonly RemedyStep[], step: RemedyStep): readonly RemedyStep[] {
  if (steps.some((each) => isSame(each, step))) return steps;
  const at = steps.findIndex((each) => isMergeable(each) && isMergeable(step) && each.path === step.path);
  const same = steps[at];
  if (same === undefined || !isMergeable(same) || !isMergeable(step)) return [...steps, step];
  const remove = [...new Set([...(same.remove ?? []), ...(step.remove ?? [])])];
  const merged: Edit = {
    ...same,
    ...(same.set || step.set ? { set: { ...same.set, ...step.set } } : {}),
    ...(remove.length === 0 ? {} : { remove }),
  };
  return steps.with(at, merged);
}

function isMergeable(step: RemedyStep): step is Edit {
  return (
    step.type === 'edit' && step.entry === undefined && step.choose === undefined && step.at === undefined
  );
}

function isSame(one: RemedyStep, other: RemedyStep): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

/** The settings without which a cap would block the drafts as soon as all of them are permitted. */
function capsBeyond(
  permitted: readonly Draft[],
  { world, destroy, deletedBefore, increasedBefore = '0' }: GuardInput,
): readonly Remedy[] {
  const { max_deletions, max_monthly_increase: limit } = world.settings;
  const deletions = deletedBefore + deletionsOf({ operations: permitted.flatMap(operationsOf) });
  const increase = Math.ceil(Number(sumDecimals([increasedBefore, ...permitted.map(mostOf)])));
  return [
    ...(deletions > max_deletions && !destroy ? [setting('max_deletions', deletions)] : []),
    ...(limit !== null && increase > limit ? [setting('max_monthly_increase', increase)] : []),
  ];
}
