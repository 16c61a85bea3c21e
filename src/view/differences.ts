import type { ResourceKey } from '../core/keys.ts';
import { isLeft, type Plan } from '../core/plan.ts';

/** All differences between project and spec, a line each: first those that no operation corrects. */
export function differences(plan: Plan | undefined): readonly string[] {
  return [...leftIn(plan), ...plannedIn(plan)];
}

export function leftIn(plan: Plan | undefined): readonly string[] {
  return (plan?.warnings ?? []).filter(isLeft).map(({ key, message }) => `${key}: ${message}`);
}

export function plannedIn(plan: Plan | undefined): readonly string[] {
  return (plan?.operations ?? []).map(({ verb, key }) => `${verb} ${key}`);
}

/** The exposed servers by a plan. */
export function exposedServers(plan: Pick<Plan, 'warnings'> | undefined): readonly ResourceKey[] {
  return (plan?.warnings ?? []).flatMap(({ code, key }) => (code === 'exposed' && key !== null ? [key] : []));
}
