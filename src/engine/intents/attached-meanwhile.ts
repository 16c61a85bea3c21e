import type { World } from '../../core/kind.ts';
import type { NetworkId, ServerId } from '../../core/resources.ts';
import type { Run } from '../run.ts';

/**
 * The network that counts more servers than when the plan was made, without the servers of this file: only this count
 * shows a server without a public address. Each creation in flight may explain one more server. @source API §2
 */
export async function attachedMeanwhile(run: Run, world: World): Promise<string | undefined> {
  const planned = run.plannedWorld();
  if (world.listsServers() || planned === undefined) return undefined;
  const rises = await risesSince(run, planned, world);
  const underWay = [...run.intents.values()].filter(
    ({ verb, kind }) => verb === 'create' && (kind === 'server' || kind === 'network_interface'),
  ).length;
  return rises.find(({ rise }) => rise > underWay)?.name;
}

async function risesSince(run: Run, before: World, now: World) {
  const then = new Map(before.networks.map(({ id, server_count }) => [id, server_count]));
  const counts = now.networks.flatMap(({ id, name, server_count }) => {
    const earlier = then.get(id) ?? 0;
    return server_count === null ? [] : [{ id, name, rise: server_count - earlier }];
  });
  if (!counts.some(({ rise }) => rise > 0)) return [];
  const own = await ownInterfaces(run, now);
  const ownBefore = (network: NetworkId) => before.serversIn(String(network)).length;
  return counts.map(({ id, name, rise }) => ({ name, rise: rise - own(id) + ownBefore(id) }));
}

/**
 * The network interfaces of this file's servers. They change only by writes, and each write makes the cache read them
 * again.
 */
async function ownInterfaces({ cache }: Run, world: World): Promise<(network: NetworkId) => number> {
  const ids = world.serverSubjects().flatMap(({ binding }) => binding?.id ?? []);
  const read = cache.since(0);
  const interfaces = await Promise.all(ids.map((id) => read.findNetworkInterfaces(Number(id) as ServerId)));
  return (network) =>
    interfaces.filter((each) => each?.some((one) => !one.public && one.network_id === network)).length;
}
