import type { ResourceKey } from '../../core/keys.ts';
import type { StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';

/** What ends with a resource that is gone: a server's cards and firewall, but not its address. */
export function released(run: Run, key: ResourceKey, reason: string): StateChange[] {
  const children = run.boundIn(key).filter((each) => !run.kindOf(each.kind).outlivesParent);
  return [
    { type: 'release', key, gone: true, reason },
    ...children.map(
      (child) => ({ type: 'release', key: child.key, gone: false, reason: 'went with its server' }) as const,
    ),
  ];
}

/** What ends with a resource that stays and is this file's no longer: all that is in it, its address too. */
export function letGo(
  run: Run,
  key: ResourceKey,
  reason: string,
): Extract<StateChange, { type: 'release' }>[] {
  return [key, ...run.boundIn(key).map((child) => child.key)].map((each) => ({
    type: 'release',
    key: each,
    gone: false,
    reason,
  }));
}
