import { isLeft, type Plan } from '../../core/plan.ts';
import type { Condition } from '../project/condition.ts';

/** Something that an operator may want to be told of, once. */
export type Notice =
  | {
      readonly project: number;
      readonly event: 'condition';
      readonly condition: Condition;
      readonly detail: string;
      /** The commands or edits that settle it. */
      readonly resolve: readonly string[];
    }
  | {
      /** 0 where nobody knows yet whose spec it is, and for the source of many projects or a change of theirs. */
      readonly project: number;
      readonly event: 'drift' | 'capacity_found' | 'spec_broken' | 'spec_valid' | 'source' | 'rollout';
      readonly detail: string;
    };

/** What belongs into a notice beside the condition's own word. */
export function told(
  condition: Condition,
  plan: Plan | undefined,
  error: unknown,
): { readonly detail: string; readonly resolve: readonly string[] } {
  const blocked = plan?.blocked ?? [];
  switch (condition) {
    case 'blocked':
    case 'held':
    case 'suspended':
      return {
        detail: blocked.map(({ key, reason }) => `${key}: ${reason}`).join('\n'),
        resolve: [...new Set(blocked.flatMap(({ resolve }) => resolve.split(' | ')))],
      };
    case 'drifting':
      return { detail: differences(plan).join('\n'), resolve: [] };
    case 'converging':
      return { detail: plannedIn(plan).join('\n'), resolve: [] };
    case 'converged':
    case 'starting':
      return { detail: '', resolve: [] };
    case 'unauthorized':
      return { detail: textOf(error), resolve: [newToken] };
    case 'fenced':
    case 'unreachable':
    case 'failing':
      return { detail: textOf(error), resolve: [] };
  }
}

/** What is not as the file says, whichever of the two has moved: a line each, what is left so first. */
export function differences(plan: Plan | undefined): readonly string[] {
  const left = (plan?.warnings ?? []).filter(isLeft);
  return [...left.map(({ key, message }) => `${key}: ${message}`), ...plannedIn(plan)];
}

function plannedIn(plan: Plan | undefined): readonly string[] {
  return (plan?.operations ?? []).map(({ verb, key }) => `${verb} ${key}`);
}

const newToken =
  'put a valid token into the file that `VDC_TOKEN_FILE` or the spec names: vdcsync reads it at once. A new `VDC_TOKEN` needs a restart.';

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
