import { sumDecimals } from '../core/decimal.ts';
import { canonicalJson } from '../core/json.ts';
import { deletionsOf } from '../core/plan.ts';
import { type Edit, type Remedy, type RemedyStep, setting } from '../core/remedy.ts';
import { type Draft, operationsOf } from './draft.ts';
import { mostOf } from './money.ts';
import type { GuardInput } from './objections.ts';

/**
 * One remedy with the steps of all these remedies: after it, none of the objections remains. Edits of one place become
 * one edit. The final commands of the first remedy remain the last steps.
 */
export function inOne(first: Remedy, others: readonly Remedy[]): Remedy {
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
export function capsBeyond(
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
