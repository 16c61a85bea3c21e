import type { ResourceKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import { described, type Found, ignoring, isNone } from './strangers.ts';

export function inFlightWarning(intent: Intent): Warning[] {
  if (intent.phase === 'blocked') return [];
  const message = `${intent.verb} was sent before and is not settled yet (${intent.phase}); apply settles it first`;
  return [{ code: 'in_flight', key: intent.key, message }];
}

export function movedWarning({
  from,
  to,
}: {
  readonly from: ResourceKey;
  readonly to: ResourceKey;
}): Warning {
  return {
    code: 'moved',
    key: to,
    message: `was ${from}; its binding moves with it, and nothing is written`,
  };
}

/** What nobody knows of stays billed unseen, and may be this file's. */
export function unknownToUs(world: World, strangers: Found): Warning[] {
  if (isNone(strangers) || world.settings.unmanaged === 'ignore') return [];
  const what = described(strangers);
  const message = {
    new: `the local state is new, and the project has what neither it nor the file names: ${what}`,
    settled: `the project has what neither the state nor the file names, and what was not there before: ${what}; vdcsync adopt KEY ID what is this file's, or ${ignoring(strangers)}`,
    unknown: `the project has ${what}; the state is an older version's, so apply takes that as somebody else's`,
  }[strangers.since];
  return [{ code: 'unmanaged_resources', key: null, message }];
}

/** The rest is not forgotten: the next plan without a selection shows it. */
export function leftOut(count: number): Warning[] {
  if (count === 0) return [];
  const message = `${count} ${count === 1 ? 'change is' : 'changes are'} left out by --target or --exclude`;
  return [{ code: 'left_out', key: null, message }];
}

/** @source API §1.6 */
export function notActive({ project }: World): Warning[] {
  if (project.status === 'Active') return [];
  const message = `the project is ${project.status}: what adds spending is refused until it is Active`;
  return [{ code: 'project_not_active', key: null, message }];
}
