import { z } from 'zod';
import { serverObject } from '../core/claims.ts';
import type { SentWrite } from '../core/evidence.ts';
import { given, member } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import type { Preimage } from '../core/preimage.ts';
import { command, edit } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import { isIpv4 } from '../core/text.ts';
import {
  believedPool,
  diffPool,
  formerAddress,
  holderOf,
  type IpEntry,
  isGivenUp,
  isKept,
  ownAddress,
  uncheckedPool,
  unseenPool,
} from './address-pool.ts';
import { priceOfAddress } from './prices.ts';
import {
  blocking,
  cutShortIps,
  diffExistence,
  done,
  doneIf,
  fromNothing,
  integerIdIn,
  lostOf,
  notDone,
  recordedIds,
  toNothing,
  unchanged,
  unclear,
  whoseItIs,
  withIdentityOpen,
} from './verdicts.ts';

interface IpObserved {
  readonly id: string | undefined;
  readonly live: Ip | undefined;
}

export const ipSchema = z.strictObject({
  server_type_id: z
    .int()
    .min(1)
    .optional()
    .describe('The address comes from the pool of this server type. Default: the pool of the project.'),
});

/**
 * A public address, billed from its allocation on, attached or not.
 *
 * An address that a server got at its creation is an address too: its key is
 * `servers.NAME.public_ipv4`, it is created with the server and released after the server.
 */
export const ip: ResourceKind<IpEntry, IpObserved, Preimage> = {
  name: 'ip',
  entry: {
    schema: ipSchema,
    section: {
      description: 'Public addresses by a name of your choice; billed while they exist, attached or not.',
      example: { web: {} },
      names: {
        pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
        text: 'up to 63 letters, digits, underscores, dots or hyphens, the first a letter or digit',
      },
    },
    /** An address that comes with the server is a resource of its own, because it may outlive the server. */
    children: (field) =>
      typeof field === 'object' && field !== null && ('new' in field || 'reuse' in field)
        ? [{ suffix: 'public_ipv4', value: {}, path: [] }]
        : [],
    likeness: () => '',
  },
  billing: {
    billed: true,
    recordedPrice: (_binding, prices) => priceOfAddress(prices),
    priceNow: (_subject, observed, world) =>
      observed?.live === undefined ? undefined : priceOfAddress(world),
  },
  timing: { deadlineMs: 10 * 60_000, urgency: 5 },

  /** A list alone never proves absence. @assumption A8 */
  async observe(read, subjects) {
    const byId = new Map((await read.ips()).map((each) => [String(each.id), each]));
    const seen = subjects.map(async ({ key, binding, desired }) => {
      const id = binding?.id ?? desired?.id;
      const live = id === undefined ? undefined : (byId.get(id) ?? (await read.findIp(Number(id))));
      return [key, { id: live && String(live.id), live }] as const;
    });
    return new Map(await Promise.all(seen));
  },

  diff(subject, observed, world) {
    const { desired, binding } = subject;
    const live = observed?.live;
    const found = live && { id: String(live.id), identity: { address: live.address } };
    const shared = diffExistence(subject, 'address', found, []);
    if (shared?.verdict.verdict === 'adopt' && live !== undefined)
      return { ...shared, warnings: uncheckedPool(subject, live) };
    if (shared !== undefined) return shared;
    if (subject.parent !== undefined) return diffOfServer(subject, live, world);
    if (desired === undefined) return live ? diffLeaving(subject, live, world) : unchanged;

    // A released address whose id belongs to another address by now is gone.
    const isReleased = binding === undefined && desired.held !== undefined;
    if (live !== undefined && !isReleased) return diffPool(subject, desired.value, live);
    const changes = fromNothing({ server_type_id: desired.value.server_type_id });
    const lost =
      binding === undefined
        ? lostOf(subject, 'address')
        : { lost: `the project no longer has address ${binding.identity.address}` };
    return { verdict: { verdict: 'create', changes, ...lost }, price: priceOfAddress(world) };
  },

  writes: {
    request: ({ subject, operation }) => {
      if (operation.verb === 'delete') return { name: 'release_ip', path: { id: Number(operation.target) } };
      const type = subject.desired?.value.server_type_id;
      return { name: 'allocate_ip', path: {}, body: type === undefined ? {} : { server_type_id: type } };
    },

    stale: () => ({ lists: ['ips', 'findIp'] }),

    preimage: async ({ operation, subject }, read) =>
      operation.verb === 'delete'
        ? { addresses: [subject.binding?.identity.address ?? []].flat() }
        : { ips: (await read.ips()).map(({ id }) => id) },

    accept: ({ data }) => {
      const address = member(data, 'address');
      return { ...given({ id: integerIdIn(data) }), ...(isIpv4(address) ? { facts: { address } } : {}) };
    },

    async evidence(intent, read, known) {
      if (intent.verb === 'delete') {
        const id = Number(intent.request.path.id);
        const [address] = intent.preimage.addresses ?? [];
        // The id may belong to another address by now. @assumption A17
        const isIt = (live: Ip) => live.id === id && (address ?? live.address) === live.address;
        const found = [(await read.findIp(id)) ?? [], await read.ips()].flat();
        return doneIf(!found.some(isIt), id);
      }
      const made = intent.answer?.id;
      if (made !== undefined) {
        const live = await read.findIp(Number(made));
        if (live === undefined) return { verdict: 'not_done', gone: true };
        return isAnother(intent, live) ? notDone : { ...done(live.id), facts: { address: live.address } };
      }
      const before = recordedIds(intent.preimage.ips);
      // An attached address was created with its server: an allocated address is free.
      const ips = await read.ips();
      const managed = known('ip');
      const fresh = ips.filter(
        ({ id, server_id }) => server_id === null && !before.has(String(id)) && !managed.has(String(id)),
      );
      const [one, another] = fresh;
      if (one === undefined) return (await cutShortIps(ips, before, managed, read)) ?? notDone;
      if (another === undefined) {
        const { id, address } = one;
        return { verdict: 'done', id: String(id), certain: false, called: address, facts: { address } };
      }
      return unclear(
        `${fresh.length} new addresses exist: ${fresh.map(({ address }) => address).join(', ')}`,
        fresh,
      );
    },
  },

  bind({ subject, id, request, facts, world }) {
    const seen = world.observed.get(subject.key) as IpObserved | undefined;
    // A list may lack an address that its own read shows. @assumption A8
    const live = seen?.id === id ? seen.live : world.ip(id);
    const address = facts?.address ?? live?.address;
    return {
      identity: address === undefined ? {} : { address },
      applied: request === undefined ? believedPool(subject.desired?.value) : (request.body ?? null),
      keep: false,
    };
  },

  unseen: { fields: unseenPool, believe: ({ desired }) => believedPool(desired?.value) },

  order: {
    /**
     * The task that deletes the server detaches the address; and while the server
     * that the address was created with exists, the address must not be deleted alone. @source API §3.2 @assumption A33
     */
    goneBefore({ key, parent, binding }, verb, world) {
      if (verb !== 'delete') return [];
      const holder = holderOf(key, world);
      const own = parent === undefined ? undefined : world.subjects.get(parent);
      const stands =
        own?.binding !== undefined && own.binding.id === binding?.parentId && isSeen(own.key, world);
      return [...new Set([...(holder === undefined ? [] : [holder]), ...(stands ? [own.key] : [])])];
    },
  },
};

/** The id in the answer may belong to another user's address by now. @assumption A17 */
function isAnother({ answer }: SentWrite, live: Ip): boolean {
  const namedAddress = answer?.facts.address;
  return namedAddress !== undefined && namedAddress !== live.address;
}

/** An address that was created with a server of this spec: it is released after its server is deleted. */
function diffOfServer(subject: Subject<IpEntry>, live: Ip | undefined, world: World): Diff {
  const { binding, parent } = subject;
  if (binding === undefined) return diffUnbound(subject, world);
  if (live === undefined) {
    const reason = `the project no longer has address ${binding.identity.address}`;
    return { verdict: { verdict: 'release', gone: true, reason } };
  }
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  if (server?.desired?.managed === false) return staysWith(live, `${parent} is no longer managed`);
  if (server?.binding !== undefined && server.binding.id !== binding.parentId) {
    const why = `it was created with server ${binding.parentId}, and ${parent} is server ${server.binding.id} now`;
    return diffExchanged(server, live, world) ?? staysWith(live, why);
  }
  const stays = server?.desired !== undefined && server.binding?.id === binding.parentId;
  // A server that is gone is created again, with a new address, unless `id:` binds it or drift is only reported.
  const isMade = server?.desired?.id === undefined && world.settings.drift === 'correct';
  const remade = stays && isMade && !isSeen(server.key, world);
  if (stays && !remade)
    return (
      (String(live.server_id) === binding.parentId ? undefined : diffExchanged(server, live, world)) ??
      diffBesideServer(subject, live)
    );
  // The new server takes it.
  if (parent !== undefined && formerAddress(parent, world) !== undefined) return unchanged;
  if (!isKept(subject, server, world)) return diffLeaving(subject, live, world);
  const asks = server?.desired?.value.public_ipv4 !== undefined;
  const another = asks ? ', and the new server gets another one' : '';
  const reason = `keep_ip: ${live.address} stays with the project${another}`;
  return {
    verdict: { verdict: 'release', gone: false, reason },
    leftBilled: [`${live.address} stays billed: keep_ip`],
  };
}

/** Includes a server that a failed write left. */
function isSeen(server: ResourceKey, { observed }: World): boolean {
  return observed.get(server)?.id !== undefined;
}

/** Its server has been released, and no operator has asked for the deletion of the address. */
function staysWith({ address }: Ip, why: string): Diff {
  const reason = `address ${address} is released: ${why}`;
  return {
    verdict: { verdict: 'release', gone: false, reason },
    leftBilled: [`${address} stays billed: ${why}`],
  };
}

function diffUnbound({ parent, desired }: Subject<IpEntry>, world: World): Diff {
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  const own = desired && server && ownAddress(server, world);
  if (own === undefined) return unchanged;
  const reason = `server ${own.server_id} was created with ${own.address}`;
  return { verdict: { verdict: 'adopt', target: String(own.id), reason } };
}

/** Its server has another address now, which belongs to the key from now on. */
function diffExchanged(server: Subject | undefined, live: Ip, world: World): Diff | undefined {
  const own = server && ownAddress(server, world);
  if (server === undefined || own === undefined || own.id === live.id) return undefined;
  const end = live.server_id === null ? 'is detached' : `belongs to server ${live.server_id}`;
  const reason = `server ${own.server_id} has ${own.address} now, and ${live.address} ${end}`;
  return {
    verdict: { verdict: 'adopt', target: String(own.id), reason },
    leftBilled: [`${live.address} stays billed: ${server.key} has ${own.address} now`],
  };
}

function diffBesideServer(subject: Subject<IpEntry>, live: Ip): Diff {
  if (subject.desired !== undefined && String(live.server_id) === subject.binding?.parentId) return unchanged;
  const message =
    subject.desired === undefined
      ? `the server has address ${live.address}, which the spec does not declare. The address is billed. The API does not document how to detach it: detach it in the client area`
      : `address ${live.address} is billed, and no longer attached to its server`;
  return { ...unchanged, warnings: [{ code: 'address_not_as_declared', key: subject.key, message }] };
}

function diffLeaving(subject: Subject<IpEntry>, live: Ip, world: World): Diff {
  // A binding without an address cannot distinguish this address from an unmanaged one. @assumption A17
  if (subject.binding?.identity.address === undefined) return unknownAddress(subject, live);
  const server = live.server_id === null ? undefined : String(live.server_id);
  const holder = server === undefined ? undefined : world.keyOf(serverObject(server));
  const given = holder !== undefined && isGivenUp(subject, world.subjects.get(holder));
  // Another key has the server by now: its id was used again. @assumption A17
  const isOwn = server === subject.binding?.parentId && (holder === undefined || holder === subject.parent);
  if (server !== undefined && !given && !isOwn) {
    // A server of the spec was created with this address, because the API attaches any free address.
    const taker = holder === undefined ? undefined : world.subjects.get(holder);
    if (subject.parent !== undefined && taker?.desired !== undefined) {
      // The key of that server adopts it.
      if (ownAddress(taker, world)?.id === live.id) return unchanged;
      const reason = `address ${live.address} is attached to ${holder} now`;
      return { verdict: { verdict: 'release', gone: false, reason } };
    }
    const user = holder ?? `server ${server}, which this spec does not manage`;
    return blocking('delete', 'ip_in_use', `${live.address} is attached to ${user}`, [
      ...((subject.desired ?? subject.parent) === undefined ? [edit(subject.key, { entry: 'restore' })] : []),
      command('apply', [], { when: 'once the address is detached' }),
      command('forget', [subject.key], { when: 'to keep it, no longer managed and still billed' }),
    ]);
  }
  const changes = toNothing({ address: live.address });
  return { verdict: { verdict: 'delete', changes }, freed: priceOfAddress(world) };
}

function unknownAddress(subject: Subject, { id, address }: Ip): Diff {
  const reason = `the state has only the id ${id} of this address, and that is ${address} now: the id may belong to another address now`;
  return withIdentityOpen(blocking('delete', 'identity_changed', reason, whoseItIs(subject, String(id))));
}
