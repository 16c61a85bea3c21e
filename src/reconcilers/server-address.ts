import type { ResourceKey } from '../core/keys.ts';
import { topLevelKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import type { Operation, OperationId } from '../core/plan.ts';
import type { ServerEntry } from './server.ts';
import type { Problem } from './server-body.ts';

/**
 * How a server comes by its public address.
 *
 * `{ip: NAME}` has no documented form of its own: `{reuse: true}` takes *a* free address,
 * so it takes the named one exactly where that is the only free one. Hence the checks
 * and the order here. The profile's `named_address` makes all of it needless.
 *
 * @source API §4 POST /servers body
 */
export function sentAddress(entry: ServerEntry, world: World): unknown {
  const wanted = entry.public_ipv4;
  if (wanted === undefined || !('ip' in wanted)) return wanted;
  const template = world.profile.operations.named_address?.body;
  if (template === undefined) return { reuse: true };
  return fill(template, Number(world.idOf(topLevelKey('ips', wanted.ip))));
}

/** The address in a word, for plans and comparison. */
export function addressOf(entry: ServerEntry): string | undefined {
  const wanted = entry.public_ipv4;
  if (wanted === undefined) return undefined;
  if ('ip' in wanted) return `ips.${wanted.ip}`;
  return 'new' in wanted ? 'new' : 'reuse';
}

/** Why `{ip: NAME}` cannot be had now. */
export function addressProblem(key: ResourceKey, entry: ServerEntry, world: World): Problem | undefined {
  const wanted = entry.public_ipv4;
  if (wanted === undefined || !('ip' in wanted)) return undefined;
  const ipKey = topLevelKey('ips', wanted.ip);
  const id = world.idOf(ipKey);
  const live = world.ips.find((each) => String(each.id) === id);
  const holder = live?.server_id ?? null;
  if (holder !== null && String(holder) !== world.subjects.get(key)?.binding?.id) {
    return {
      code: 'address_in_use',
      reason: `${ipKey} (${live?.address}) is attached to server ${holder}`,
      resolve: 'name another address, or delete that server first',
    };
  }
  if (world.profile.operations.named_address !== undefined) return undefined;
  const others = world.ips.filter((each) => each.server_id === null && String(each.id) !== id);
  if (others.length === 0) return undefined;
  return {
    code: 'address_not_the_only_free_one',
    reason: `the API only offers to take a free address, and ${others.map(({ address }) => address).join(', ')} ${others.length === 1 ? 'is' : 'are'} free beside ${ipKey}`,
    resolve: 'release or attach the others, use {reuse: true}, or enable named_address in the API profile',
  };
}

/**
 * Servers that claim a named address go one after the other, each address allocated
 * only when the claim before it is settled; addresses that nobody claims, and servers
 * that take any free one, come last.
 */
export function claimSequence(
  operations: readonly Operation[],
  world: World,
): ReadonlyMap<OperationId, readonly OperationId[]> {
  if (world.profile.operations.named_address !== undefined) return new Map();
  const creates = operations.filter(({ verb }) => verb === 'create');
  const entryOf = (key: ResourceKey) => world.subjects.get(key)?.desired?.value as ServerEntry | undefined;
  const claims = creates.flatMap(({ id, kind, key }) => {
    const wanted = kind === 'server' ? entryOf(key)?.public_ipv4 : undefined;
    return wanted !== undefined && 'ip' in wanted ? [{ id, ip: topLevelKey('ips', wanted.ip) }] : [];
  });
  const edges = new Map<OperationId, readonly OperationId[]>();
  const claimOf = new Map(claims.map(({ ip }, at) => [ip, at]));
  const before = (at: number) => claims.slice(Math.max(0, at - 1), at).map(({ id }) => id);
  for (const [at, { id }] of claims.entries()) edges.set(id, before(at));
  for (const { id, kind, key } of creates) {
    const wanted = kind === 'server' ? entryOf(key)?.public_ipv4 : undefined;
    if (wanted !== undefined && 'reuse' in wanted) edges.set(id, before(claims.length));
    if (kind === 'ip') edges.set(id, before(claimOf.get(key) ?? claims.length));
  }
  return edges;
}

/** A body template with `{ip_id}` filled in; alone in a string it becomes a number. */
function fill(template: unknown, ipId: number): unknown {
  if (template === '{ip_id}') return ipId;
  if (typeof template === 'string') return template.replaceAll('{ip_id}', String(ipId));
  if (Array.isArray(template)) return template.map((each) => fill(each, ipId));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fill(value, ipId)]));
}
