import { serverObject } from '../../core/claims.ts';
import { type ResourceKey, topLevelKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { edit, outside, run, settleFirst } from '../../core/remedy.ts';
import type { BodyProblem } from './body.ts';
import type { ServerEntry } from './entry.ts';
import { permitted } from './existing.ts';

/**
 * The problem of a server that waits for an address which another server of the spec holds, while that server waits for
 * the address of this one, possibly through further servers. The API attaches free addresses only, and frees an address
 * only with its server, so one of the servers needs another address for a while. Its key has the remedy for all of them.
 *
 * @source API §3 rule 2, §4 POST /servers body
 */
export function exchangeProblem(key: ResourceKey, world: World): BodyProblem | undefined {
  const servers = circleOf(key, world);
  if (servers === undefined) return undefined;
  const [first = key, ...others] = [...servers].sort();
  const all = [first, ...others].join(' and ');
  if (key !== first) {
    const reason = `${all} exchange their addresses: see ${first}`;
    return { code: 'dependency_blocked', reason, remedies: () => settleFirst(first) };
  }
  const wanted = entryOf(key, world)?.public_ipv4;
  return {
    code: 'address_in_use',
    reason: `${all} exchange their addresses, and the API attaches only free addresses, to new servers`,
    remedies: () => [
      outside(`exchange the addresses of ${all} in the client area`, { when: 'to keep the servers' }),
      edit(first, {
        set: { public_ipv4: { new: true }, ...replaceable(first, world) },
        when: 'to replace the servers, and lose the data on their disks',
        next: [
          ...others.flatMap((each) => {
            const set = replaceable(each, world);
            return Object.keys(set).length === 0 ? [] : [edit(each, { set })];
          }),
          outside('run `vdcsync apply` until it converges'),
          edit(first, { set: { public_ipv4: wanted } }),
          run('apply'),
        ],
      }),
    ],
  };
}

/** The servers from this one on, each of which waits for the address of the next one, and the last for that of this one. */
function circleOf(key: ResourceKey, world: World): readonly ResourceKey[] | undefined {
  const servers = [key];
  for (;;) {
    const next = holderOfWanted(servers.at(-1) as ResourceKey, world);
    if (next === key) return servers.length > 1 ? servers : undefined;
    if (next === undefined || servers.includes(next)) return undefined;
    servers.push(next);
  }
}

function holderOfWanted(key: ResourceKey, world: World): ResourceKey | undefined {
  const wanted = entryOf(key, world)?.public_ipv4;
  if (wanted === undefined || !('ip' in wanted)) return undefined;
  const holder = world.ip(world.idOf(topLevelKey('ips', wanted.ip)) ?? '')?.server_id ?? null;
  return holder === null ? undefined : world.keyOf(serverObject(holder));
}

/** The fields that the entry of a server lacks to be replaced. */
function replaceable(key: ResourceKey, world: World): Readonly<Record<string, unknown>> {
  const entry = entryOf(key, world);
  return {
    ...(world.subjects.get(key)?.desired?.protect === true ? { protect: false } : {}),
    ...(entry !== undefined && permitted(entry) === undefined ? { replace: 'allowed' } : {}),
  };
}

function entryOf(key: ResourceKey, world: World): ServerEntry | undefined {
  return world.subjects.get(key)?.desired?.value as ServerEntry | undefined;
}
