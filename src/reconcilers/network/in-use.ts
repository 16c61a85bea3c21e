import type { ResourceKey } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change } from '../../core/plan.ts';
import { edit, outside } from '../../core/remedy.ts';
import type { Network } from '../../core/resources.ts';
import { restoring } from '../../core/restoring.ts';
import { asNewNames } from '../unique-names.ts';
import { blocking, toNothing } from '../verdicts.ts';

/**
 * A network that has left the spec is deleted once no server is in it.
 *
 * @param isAlike whether an entry may be the new one of the network
 */
export function diffLeaving(
  { key, kind }: Subject,
  live: Network,
  world: World,
  isAlike: Parameters<typeof asNewNames>[2],
): Diff {
  // @assumption A26
  if (live.is_default) {
    const reason = 'vdcsync never deletes the default network';
    return { verdict: { verdict: 'release', gone: false, reason } };
  }
  const inside = world.serversIn(String(live.id));
  const own = inside.filter(
    (key) =>
      world.subjects.get(key)?.desired !== undefined &&
      interfacesLeaving(key, String(live.id), world) === undefined,
  );
  const staying = (live.server_count ?? 0) - (inside.length - own.length);
  if (staying > 0) {
    const renamed = asNewNames({ key, kind }, world, isAlike);
    const reason = `${staying === 1 ? '1 server stays' : `${staying} servers stay`} on the network: ${namesOf(own, staying)}`;
    return blocking('delete', 'network_in_use', reason, [
      outside('remove the servers from the network, or delete them'),
      // Two entries of one subnet would be no valid spec.
      ...(renamed.length === 0 ? [edit(key, { entry: 'restore' })] : renamed),
    ]);
  }
  return { verdict: { verdict: 'delete', changes: toNothing({ name: live.name, cidr: live.cidr }) } };
}

/** The servers in the network block its replacement. */
export function obstacleOf(subject: Subject, live: Network, changes: readonly Change[], world: World) {
  const servers = live.server_count ?? 0;
  if (servers === 0) return {};
  const change = changes.map(({ path, from, to }) => `${path} from ${from} to ${to}`).join(' and ');
  return {
    obstacle: {
      code: 'network_in_use',
      reason: `a change of ${change} deletes the network and creates a new one, but ${servers === 1 ? '1 server is' : `${servers} servers are`} on it: ${namesOf(world.serversIn(String(live.id)), servers)}`,
      remedies: [outside('remove the servers from the network'), restoring(changes, subject.key)],
    },
  } as const;
}

/** The managed servers of so many. */
function namesOf(managed: readonly ResourceKey[], count: number): string {
  const others = Math.max(0, count - managed.length);
  return [...managed, ...(others === 0 ? [] : [`${others} that this spec does not manage`])].join(', ');
}

/** The network interfaces whose removal takes the server out of the network; `undefined` if another one remains. */
export function interfacesLeaving(
  server: ResourceKey,
  id: string,
  world: World,
): readonly ResourceKey[] | undefined {
  if (world.subjects.get(server)?.desired?.managed !== true) return undefined;
  if (world.profile.operations.remove_network_interface === undefined) return undefined;
  const seen = world.observed.get(server);
  const inside = (seen?.interfaces ?? []).filter((each) => String(each.network_id) === id && !each.public);
  const keys = world.childrenOf(server).flatMap(({ key, kind, desired, binding }) => {
    const bound = inside.some((each) => each.id === binding?.id);
    return kind === 'network_interface' && desired === undefined && bound ? [key] : [];
  });
  return keys.length > 0 && keys.length === inside.length ? keys : undefined;
}
