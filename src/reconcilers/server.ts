import { namedAddress } from '../core/desired.ts';
import { digestOf, given, type Json, member } from '../core/json.ts';
import { childKey } from '../core/keys.ts';
import type { Accepted, Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import type { ReadPort } from '../core/ports.ts';
import type { Ip, Server, ServerId } from '../core/resources.ts';
import { isIpv4 } from '../core/text.ts';
import { grouped } from '../core/world.ts';
import { formerAddress } from './address-pool.ts';
import { addressSequence, releasedFirst, sentAddress, staleAfter, takesFree } from './server/address.ts';
import { isEdited, recordOf } from './server/applied-fields.ts';
import { priceApplied, resolveBody } from './server/body.ts';
import {
  addressLeft,
  backupsReleased,
  diffCreate,
  diffLeaving,
  diffLive,
  neededToCreate,
} from './server/diff.ts';
import { checkSizing, type ServerEntry, type ServerObserved, serverSchema, sliders } from './server/entry.ts';
import {
  evidenceOfCreation,
  evidenceOfDeletion,
  evidenceOfResize,
  type ServerBefore,
} from './server/evidence.ts';
import { permitted } from './server/existing.ts';
import { isSizeKnown, rebound, resizeRequest, withUnconfirmed } from './server/resize.ts';
import { unchecked, unreadFields } from './server/warnings.ts';
import { diffExistence, integerIdIn, recordedIds, unchanged } from './verdicts.ts';

export const server: ResourceKind<ServerEntry, ServerObserved, ServerBefore> = {
  name: 'server',
  entry: {
    schema: serverSchema,
    section: {
      description: 'Servers by name, with the resources inside them.',
      example: {
        'web-1': { server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 4, memory_mb: 8192, disk_gb: 80 },
      },
      names: {
        pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/,
        text: 'up to 63 letters, digits, underscores or hyphens, the first one a letter or digit. For another name, write `name:`',
      },
      oneOf: [...sliders, 'plan_id', 'gpu_package'],
      notWith: {
        plan_id: [...sliders, 'gpu_package'],
        gpu_package: [...sliders, 'plan_id', 'gpus', 'disk_type'],
      },
    },
    neededToCreate,
    check: checkSizing,
    references: (entry) => {
      const key = namedAddress(entry);
      return key === undefined ? [] : [{ path: ['public_ipv4', 'ip'], key, exclusive: true }];
    },
    /** The name may come from the key, and the address may be named by an entry whose key has changed as well. */
    likeness: ({ desired, binding }) => {
      const entry = desired?.value ?? recordOf(binding).entry;
      return digestOf({ ...entry, name: null, public_ipv4: null } as Json);
    },
  },
  billing: {
    billed: true,
    recordedPrice(binding, prices) {
      const price = priceApplied({ binding }, undefined, prices);
      return 'known' in price && !isSizeKnown(binding)
        ? { ...price, assumed: 'the price is by the values of its entry, which are not confirmed' }
        : price;
    },
    priceNow: (subject, observed, world) =>
      isAlive(observed) ? priceApplied(subject, observed.shown, world) : undefined,
  },
  timing: { deadlineMs: 30 * 60_000, showsWithinMs: 30 * 60_000, urgency: 4 },

  async observe(read, subjects) {
    const known = subjects.filter(({ binding, desired }) => (binding?.id ?? desired?.id) !== undefined);
    if (known.length === 0) return new Map();
    const ipsOf = grouped((await read.ips()).map((each) => [each.server_id, each]));
    const listed = new Map((await read.servers?.())?.map((each) => [each.id, each]));
    const seen = known.map(async (each) => [each.key, await observeOne(each, ipsOf, listed, read)] as const);
    return new Map(await Promise.all(seen));
  },

  diff(subject, observed, world) {
    const live = isAlive(observed) ? observed : undefined;
    const shared = existence(subject, live, world);
    const { desired } = subject;
    if (shared?.verdict.verdict === 'adopt' && live !== undefined && desired !== undefined)
      return { ...shared, warnings: unchecked(subject, live) };
    if (shared?.verdict.verdict === 'blocked' && live === undefined)
      return { ...shared, warnings: addressLeft(subject, world) };
    if (shared?.verdict.verdict === 'release' && !shared.verdict.gone)
      return { ...shared, leftBilled: backupsReleased(subject, world) };
    if (shared !== undefined) return shared;
    if (desired === undefined) return live === undefined ? unchanged : diffLeaving(subject, live, world);
    if (live === undefined) return diffCreate(subject, desired.value, world);
    return sureOfIdentity(subject, live, world, diffLive({ subject, entry: desired.value, live, world }));
  },

  writes: {
    request({ subject, operation, world, exhausted }) {
      if (operation.verb === 'update') return resizeRequest(subject, operation);
      if (operation.verb === 'delete')
        return { name: 'delete_server', path: { id: Number(operation.target) } };
      const entry = subject.desired?.value;
      const resolved = entry && resolveBody(entry, world, exhausted);
      if (entry === undefined || resolved === undefined) throw new Error(`${subject.key} is not in the spec`);
      if ('problem' in resolved)
        throw new Error(`${subject.key} cannot be created: ${resolved.problem.reason}`);
      const address = sentAddress(subject.key, entry, world);
      const body = { ...resolved.body, ...(address === undefined ? {} : { public_ipv4: address }) };
      return { name: 'create_server', path: {}, body: body as Json };
    },

    stale: staleAfter,

    async preimage({ operation, world }, read) {
      const [ips, networks] = [await read.ips(), await read.networks()];
      const listed = ((await read.servers?.()) ?? []).map(({ id }) => id);
      // No list shows a server without a public address.
      const bound = world.serverSubjects().flatMap(({ binding }) => (binding ? Number(binding.id) : []));
      const target = Number(operation.target);
      const leaving = operation.verb === 'delete' ? await read.findBackups(target as ServerId) : undefined;
      return {
        ips: ips.map(({ id }) => id),
        servers: [...new Set([...ips.flatMap(({ server_id }) => server_id ?? []), ...listed, ...bound])],
        server_counts: networks.map(({ id, server_count }) => [id, server_count]),
        ...(operation.verb === 'delete'
          ? {
              addresses: ips.filter(({ server_id }) => server_id === target).map(({ address }) => address),
              backups: (leaving ?? []).map(({ id }) => id),
            }
          : {}),
      };
    },

    /** `billable_ips` is recorded without a change. @assumption A18 */
    accept(answer): Accepted {
      const id = integerIdIn(answer.data) ?? integerIdIn({ id: member(answer.data, 'server_id') });
      const billable = member(answer.data, 'billable_ips');
      const address = member(answer.data, 'ipv4');
      return {
        ...given({ id }),
        facts: {
          ...(Array.isArray(billable) ? { billable_ips: billable as Json[] } : {}),
          ...(isIpv4(address) ? { address } : {}),
        },
      };
    },

    evidence(intent, read, known) {
      if (intent.verb === 'delete') return evidenceOfDeletion(intent, read);
      return intent.verb === 'update'
        ? evidenceOfResize(intent, read)
        : evidenceOfCreation(intent, read, known);
    },
  },

  bind({ subject, id, request, asked, facts, mayBeOlder, world }) {
    const entry = asked ?? subject.desired?.value;
    if (request?.name === 'resize_server') return rebound(subject, request, entry);
    const [first] = facts?.addresses ?? [];
    const seen = world.observed.get(subject.key) as ServerObserved | undefined;
    const interfaceAddress = seen?.id === id ? publicAddresses(seen)[0] : undefined;
    // If no list shows the server with its address yet, or any more, the address in the answer identifies the server.
    const ipv4 = first?.address ?? interfaceAddress ?? facts?.address;
    const shown =
      request === undefined ? world.servers?.find((each) => String(each.id) === id)?.name.trim() : undefined;
    return {
      identity: ipv4 !== undefined ? { ipv4 } : shown === undefined ? {} : { name: shown },
      applied: {
        entry: { ...entry } as Json,
        body: request?.body ?? null,
        ...(request !== undefined && mayBeOlder ? { mayBeOlder } : {}),
      },
      keep: false,
    };
  },

  creation: {
    takesFree: ({ key }, world) => takesFree(key, world),
    takesAgain: ({ key }, child, world) =>
      child === childKey(key, 'public_ipv4') && formerAddress(key, world) !== undefined,
    /**
     * The address that the server took, unless an entry names it. With `{reuse: true}` it is unknown
     * whether the address was allocated for this server, or another user freed it just before. If evidence and not the
     * answer gave the server's id, another state may also have bought the address for an entry since.
     */
    companions({ subject, id, request, asked, preimage, facts, named: answered, world, at }) {
      const wanted = subject.desired?.value ?? asked;
      const reuses = member(member(request.body, 'public_ipv4'), 'reuse') === true;
      const named = namedAddress(asked ?? wanted) !== undefined;
      const own = childKey(subject.key, 'public_ipv4');
      const former = world.subjects.get(own)?.binding?.id;
      const isFormer = ({ id: each }: { readonly id: unknown }) => String(each) === former;
      const takes = (facts?.addresses ?? []).some(isFormer);
      if (!takes && (named || (reuses && !(world.settings.exclusive && answered)))) return [];
      const before = recordedIds(preimage.ips);
      return (facts?.addresses ?? [])
        .filter((each) => (takes ? isFormer(each) : !before.has(String(each.id))))
        .slice(0, 1)
        .map((each) => ({
          key: own,
          kind: 'ip' as const,
          id: String(each.id),
          parentId: id,
          identity: { address: each.address },
          applied: null,
          protect: false,
          keep: wanted?.keep_ip ?? false,
          boundAt: at,
        }));
    },
  },

  order: {
    goneBefore: (subject, verb, world) => (verb === 'create' ? releasedFirst(subject, world) : []),
    sequence: addressSequence,
  },

  unseen: {
    fields: unreadFields,
    believe({ desired, binding }, fields) {
      const record = recordOf(binding);
      const said = Object.fromEntries(fields.map((field) => [field, member(desired?.value, field) ?? null]));
      const known = [...new Set([...(record.known ?? []), ...fields])];
      return { ...(record as object), entry: { ...(record.entry as object), ...said }, known } as Json;
    },
    doubt: withUnconfirmed,
  },

  preferences: {
    of: ({ gpu_package }) => [gpu_package ?? []].flat(),
    sent({ body }) {
      const sent = member(body, 'gpu_package');
      return typeof sent === 'string' ? sent : undefined;
    },
  },
};

async function observeOne(
  { binding, desired }: Subject<ServerEntry>,
  ipsOf: ReadonlyMap<number | null, readonly Ip[]>,
  listed: ReadonlyMap<ServerId, Server>,
  read: ReadPort,
): Promise<ServerObserved> {
  const id = Number(binding?.id ?? desired?.id) as ServerId;
  const interfaces = await read.findNetworkInterfaces(id);
  const addresses = ipsOf.get(id) ?? [];
  const leaves =
    desired === undefined || (permitted(desired.value) !== undefined && isEdited(desired, binding));
  const backups = leaves && interfaces !== undefined ? (await read.findBackups(id))?.length : undefined;
  const shown = (await read.findServer?.(id)) ?? listed.get(id);
  const alive = interfaces !== undefined || addresses.length > 0 || shown !== undefined;
  return { id: alive ? String(id) : undefined, interfaces: interfaces, addresses, shown, backups };
}

function isAlive(observed: ServerObserved | undefined): observed is ServerObserved {
  return observed !== undefined && observed.id !== undefined;
}

function existence(
  subject: Subject<ServerEntry>,
  live: ServerObserved | undefined,
  world: World,
  judgedAs = subject,
): Diff | undefined {
  if (live === undefined) return diffExistence(subject, 'server', undefined, neededToCreate);
  const { was, is } = identityOf(judgedAs, live, world);
  const { binding } = subject;
  const known = binding === undefined ? subject : { ...subject, binding: { ...binding, identity: was } };
  return diffExistence(known, 'server', { id: live.id ?? '', identity: is }, neededToCreate);
}

/**
 * The previous and the present identity of a server. While the server remains in the spec, a lost address is no sign of
 * another server, but a different address is. A server that had no address and leaves the spec must still have its name,
 * and no address except for those of this spec. @assumption A17
 */
function identityOf(
  { binding, desired }: Subject<ServerEntry>,
  live: ServerObserved,
  world: World,
): Readonly<Record<'was' | 'is', Readonly<Record<string, string>>>> {
  const was = binding?.identity ?? {};
  const bound = was.ipv4;
  const attached = live.addresses.map(({ address }) => address);
  const onInterfaces = publicAddresses(live).filter((each) => !attached.includes(each));
  if (bound !== undefined) {
    const stays =
      [...attached, ...onInterfaces].includes(bound) || (attached.length === 0 && desired !== undefined);
    const now = stays ? bound : (attached[0] ?? onInterfaces[0]);
    return { was: { ipv4: bound }, is: now === undefined ? {} : { ipv4: now } };
  }
  if (desired !== undefined || binding === undefined) return { was: {}, is: {} };
  const unbound = live.addresses.find(world.isUnbound)?.address ?? onInterfaces[0];
  const name = was.name ?? recordOf(binding).body?.name;
  const shown = live.shown?.name.trim();
  const named = typeof name === 'string' && shown !== undefined;
  return {
    was: { ipv4: 'none', ...(named ? { name: name.trim() } : {}) },
    is: { ipv4: unbound ?? 'none', ...(named ? { name: shown } : {}) },
  };
}

/** The addresses on its public network interfaces; a list of addresses may end early. @assumption A8 */
function publicAddresses({ interfaces = [] }: ServerObserved): readonly string[] {
  return interfaces.filter((each) => each.public).flatMap(({ addresses }) => addresses);
}

/** The identity of a server must be certain before a replacement deletes it, as before a deletion. */
function sureOfIdentity(subject: Subject<ServerEntry>, live: ServerObserved, world: World, diff: Diff): Diff {
  if (diff.verdict.verdict !== 'replace') return diff;
  const { desired: _desired, ...leaving } = subject;
  return existence(subject, live, world, leaving) ?? diff;
}
