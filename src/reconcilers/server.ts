import { z } from 'zod';
import type { Json } from '../core/json.ts';
import { childKey, topLevelKey } from '../core/keys.ts';
import type { Accepted, Diff, EntryIssue, ResourceKind, Subject, World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import type { ReadPort } from '../core/ports.ts';
import type { Ip, NetworkInterface, ServerId } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';
import { blocked, diffExistence, fromNothing, idIn, member, recordedIds, toNothing } from './existence.ts';
import { addressOf, addressProblem, claimSequence, sentAddress } from './server-address.ts';
import { diffFields, priceApplied, resolveBody } from './server-body.ts';

/** A server, with what lives in its entry beside the resources of their own. */
export interface ServerEntry {
  readonly name: string;
  readonly server_type?: string | number | undefined;
  readonly image?: string | undefined;
  readonly cores?: number | undefined;
  readonly memory_mb?: number | undefined;
  readonly disk_gb?: number | undefined;
  readonly plan_id?: number | undefined;
  readonly gpu_package?: string | readonly string[] | undefined;
  readonly ssh_keys?: readonly number[] | undefined;
  readonly public_ipv4?: PublicIpv4 | undefined;
  readonly gpus?: number | undefined;
  readonly disk_type?: string | undefined;
  readonly replace?: 'never' | 'allowed' | undefined;
  readonly keep_ip?: boolean | undefined;
}

export type PublicIpv4 = { readonly new: true } | { readonly reuse: true } | { readonly ip: string };

/**
 * There is no documented read of a server: it lives while its cards answer 200 or an
 * address is attached to it, and is gone when both say so.
 */
interface ServerObserved {
  readonly id: string | undefined;
  readonly cards: readonly NetworkInterface[] | undefined;
  readonly addresses: readonly Ip[];
  /** Read only where the server is about to go. */
  readonly backups: number;
}

const size = z.int().min(1).optional();

const schema = z.strictObject({
  name: z.string().trim().min(1).optional().describe('Name in the API; the key where left out.'),
  server_type: z
    .union([z.string().trim().min(1), z.int().min(1)])
    .optional()
    .describe('Id or name.'),
  image: z.string().trim().min(1).optional().describe("Id or name, from the type's images."),
  cores: size.describe('Slider types.'),
  memory_mb: size.describe('Slider types, MB.'),
  disk_gb: size.describe('Slider types, GB.'),
  plan_id: size.describe('Plan types.'),
  gpu_package: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe('Packaged graphics-card types: a key, or a list in order of preference.'),
  ssh_keys: z.array(z.int().min(1)).optional().describe("Ids of the account's SSH keys."),
  public_ipv4: z
    .union([
      z.strictObject({ new: z.literal(true) }),
      z.strictObject({ reuse: z.literal(true) }),
      z.strictObject({ ip: z.string().min(1) }),
    ])
    .optional()
    .describe('{new: true}, {reuse: true}, or {ip: NAME} of an entry under ips. None where left out.'),
  gpus: size.describe('Number of graphics cards; refused on packaged types.'),
  disk_type: z.string().min(1).optional().describe('Refused on packaged graphics-card types.'),
  replace: z.enum(['never', 'allowed']).optional().meta({
    description: 'Whether a server that cannot be changed in place may be deleted and created anew.',
    default: 'never',
  }),
  keep_ip: z.boolean().optional().meta({
    description: 'Keep an address taken by {new: true} when the server goes; it stays billed.',
    default: false,
  }),
});

export const server: ResourceKind<ServerEntry, ServerObserved> = {
  name: 'server',
  placement: { in: 'servers' },
  schema,
  neededToCreate: ['server_type', 'image'],
  billed: true,
  deadlineMs: 30 * 60_000,
  urgency: 4,

  check: checkSizing,

  references: (entry) =>
    entry.public_ipv4 !== undefined && 'ip' in entry.public_ipv4
      ? [{ path: ['public_ipv4', 'ip'], key: topLevelKey('ips', entry.public_ipv4.ip) }]
      : [],

  async observe(read, subjects) {
    const known = subjects.filter(({ binding, desired }) => (binding?.id ?? desired?.id) !== undefined);
    if (known.length === 0) return new Map();
    const ips = await read.ips();
    return new Map(
      await Promise.all(
        known.map(async (subject) => [subject.key, await observeOne(subject, ips, read)] as const),
      ),
    );
  },

  diff(subject, observed, world) {
    const live = isAlive(observed) ? observed : undefined;
    const shared = diffExistence(
      subject,
      'server',
      live && { id: live.id ?? '', identity: identityOf(subject, live) },
    );
    if (shared !== undefined) return shared;
    const { desired, binding } = subject;
    if (desired === undefined) {
      return live === undefined ? { verdict: { verdict: 'unchanged' } } : diffLeaving(subject, live, world);
    }
    if (live === undefined) return diffCreate(subject, desired.value, world);
    return diffLive(subject, desired.value, live, world, binding?.applied ?? null);
  },

  sequence: claimSequence,

  write({ subject, operation, world, exhausted }) {
    if (operation.verb === 'delete') return { name: 'delete_server', path: { id: Number(operation.target) } };
    const entry = subject.desired?.value;
    const resolved = entry && resolveBody(entry, world, exhausted);
    if (entry === undefined || resolved === undefined) throw new Error(`${subject.key} is not in the file`);
    if ('problem' in resolved)
      throw new Error(`${subject.key} cannot be created: ${resolved.problem.reason}`);
    const address = sentAddress(entry, world);
    const body = { ...resolved.body, ...(address === undefined ? {} : { public_ipv4: address }) };
    return { name: 'create_server', path: {}, body: body as Json };
  },

  async preimage({ operation }, read) {
    const [ips, networks] = [await read.ips(), await read.networks()];
    const target = Number(operation.target);
    const leaving = operation.verb === 'delete' ? await read.findBackups(target as ServerId) : undefined;
    return {
      ips: ips.map(({ id }) => id),
      servers: ips.flatMap(({ server_id }) => (server_id === null ? [] : [server_id])),
      networks: networks.map(({ id, server_count }) => [id, server_count]),
      ...(operation.verb === 'delete'
        ? {
            addresses: ips.filter(({ server_id }) => server_id === target).map(({ address }) => address),
            backups: (leaving ?? []).map(({ id }) => id),
          }
        : {}),
    };
  },

  accept(answer): Accepted {
    const id = idIn(answer.data) ?? (member(answer.data, 'server_id') as number | undefined)?.toString();
    const billable = member(answer.data, 'billable_ips');
    return {
      ...(id === undefined ? {} : { id }),
      ...(Array.isArray(billable) ? { facts: { billable_ips: billable as Json[] } } : {}),
    };
  },

  evidence: (intent, read, known) =>
    intent.verb === 'delete' ? evidenceOfDeletion(intent, read) : evidenceOfCreation(intent, read, known),

  bind({ subject, request, facts }) {
    const entry = subject.desired?.value;
    const [first] = (member(facts, 'addresses') ?? []) as readonly { readonly address: string }[];
    return {
      identity: first === undefined ? {} : { ipv4: first.address },
      applied: { entry: { ...entry } as Json, body: request?.body ?? null },
      keep: false,
    };
  },

  /** The addresses that the server took and that no entry of the file names. */
  companions({ subject, id, preimage, facts, at }) {
    const before = recordedIds(preimage, 'ips');
    const taken = (member(facts, 'addresses') ?? []) as readonly {
      readonly id: number;
      readonly address: string;
    }[];
    return taken
      .filter((each) => !before.has(String(each.id)))
      .slice(0, 1)
      .map((each) => ({
        key: childKey(subject.key, 'public_ipv4'),
        kind: 'ip' as const,
        id: String(each.id),
        parentId: id,
        identity: { address: each.address },
        applied: null,
        protect: false,
        keep: subject.desired?.value.keep_ip ?? false,
        boundAt: at,
      }));
  },
};

/** Exactly one of the three sizing modes, and nothing that packaged types refuse. @source API §4 */
function checkSizing(entry: ServerEntry): readonly EntryIssue[] {
  const sliders = (['cores', 'memory_mb', 'disk_gb'] as const).filter((field) => entry[field] !== undefined);
  const modes = [
    ...(sliders.length > 0 ? [sliders.join(', ')] : []),
    ...(entry.plan_id === undefined ? [] : ['plan_id']),
    ...(entry.gpu_package === undefined ? [] : ['gpu_package']),
  ];
  const refused =
    entry.gpu_package === undefined
      ? []
      : (['gpus', 'disk_type'] as const).filter((field) => entry[field] !== undefined);
  return [
    ...(modes.length > 1
      ? [
          {
            path: [modes.length > 1 && sliders.length > 0 ? (sliders[0] as string) : 'plan_id'],
            message: `${modes.join(' and ')} exclude each other: a server is sized by cores, memory_mb and disk_gb, or by plan_id, or by gpu_package`,
          },
        ]
      : []),
    ...(modes.length === 0 && entry.server_type !== undefined
      ? [
          {
            path: [],
            message: 'the server has no size: give cores, memory_mb and disk_gb, or plan_id, or gpu_package',
          },
        ]
      : []),
    ...refused.map((field) => ({
      path: [field],
      message: `${field} is refused on packaged graphics-card types`,
    })),
  ];
}

async function observeOne(
  { binding, desired }: Subject<ServerEntry>,
  ips: readonly Ip[],
  read: ReadPort,
): Promise<ServerObserved> {
  const id = Number(binding?.id ?? desired?.id) as ServerId;
  const cards = await read.findNetworkInterfaces(id);
  const addresses = ips.filter(({ server_id }) => server_id === id);
  const backups =
    desired === undefined && cards !== undefined ? ((await read.findBackups(id)) ?? []).length : 0;
  const alive = cards !== undefined || addresses.length > 0;
  return { id: alive ? String(id) : undefined, cards, addresses, backups };
}

function isAlive(observed: ServerObserved | undefined): observed is ServerObserved {
  return observed !== undefined && observed.id !== undefined;
}

/** An address it had and lost says nothing; another one in its place does. */
function identityOf(
  { binding }: Subject<ServerEntry>,
  live: ServerObserved,
): Readonly<Record<string, string>> {
  const bound = binding?.identity.ipv4;
  if (bound === undefined) return {};
  const addresses = live.addresses.map(({ address }) => address);
  return { ipv4: addresses.length === 0 || addresses.includes(bound) ? bound : (addresses[0] ?? bound) };
}

function diffCreate(subject: Subject<ServerEntry>, entry: ServerEntry, world: World): Diff {
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved)
    return blocked('create', resolved.problem.code, resolved.problem.reason, resolved.problem.resolve);
  const address = addressProblem(subject.key, entry, world);
  if (address !== undefined) return blocked('create', address.code, address.reason, address.resolve);
  const changes = fromNothing({ ...resolved.body, public_ipv4: addressOf(entry) });
  return {
    verdict: {
      verdict: 'create',
      changes,
      ...(subject.binding === undefined
        ? {}
        : { lost: `server ${subject.binding.id} does not exist any more` }),
    },
    warnings: resolved.warnings.map((message) => ({
      code: 'gpu_package_not_sold',
      key: subject.key,
      message,
    })),
    price: resolved.price,
  };
}

function diffLive(
  subject: Subject<ServerEntry>,
  entry: ServerEntry,
  live: ServerObserved,
  world: World,
  applied: Json,
): Diff {
  const warnings = [...surplusCards(subject, live, world), ...misattached(subject, entry, live, world)];
  const { changes, notes } = diffFields(entry, applied, world);
  warnings.push(...notes.map((message) => ({ code: 'catalogue_changed', key: subject.key, message })));
  if (!subject.desired?.managed || changes.length === 0)
    return { verdict: { verdict: 'unchanged' }, warnings };
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved) {
    return {
      ...blocked('update', resolved.problem.code, resolved.problem.reason, resolved.problem.resolve),
      warnings,
    };
  }
  const reason = `${changes.map(({ path }) => path).join(', ')} cannot be changed in place`;
  return {
    verdict: { verdict: 'replace', changes, reason, allowed: entry.replace === 'allowed' },
    warnings,
  };
}

function diffLeaving(subject: Subject<ServerEntry>, live: ServerObserved, world: World): Diff {
  const body = member(subject.binding?.applied, 'body');
  const addresses = live.addresses.map(({ address }) => address).join(', ');
  const backups = `${live.backups} ${live.backups === 1 ? 'backup' : 'backups'}`;
  return {
    verdict: {
      verdict: 'delete',
      changes: toNothing({ name: member(body, 'name'), addresses: addresses === '' ? undefined : addresses }),
    },
    leftBilled: live.backups === 0 ? [] : [`${backups} of ${subject.key}: deleting one is not documented`],
    price: priceApplied(body, world),
  };
}

/** Removing a card is undocumented, so one too many can only be told. */
function surplusCards(subject: Subject<ServerEntry>, live: ServerObserved, world: World): Warning[] {
  const declared = [...world.subjects.values()].filter(
    ({ kind, parent, desired }) =>
      kind === 'network_interface' && parent === subject.key && desired !== undefined,
  );
  if (declared.length === 0) return [];
  const wanted = new Set(
    declared.map(({ desired }) => world.idOf((desired?.value as { readonly network: never }).network)),
  );
  return (live.cards ?? [])
    .filter((card) => !card.public && card.network_id !== null && !wanted.has(String(card.network_id)))
    .map((card) => ({
      code: 'surplus_network_interface',
      key: subject.key,
      message: `card ${card.id} is in network ${card.network_id}, which the file does not name; removing a card is not documented`,
    }));
}

/** A server that should hold an address of the file, and does not. */
function misattached(
  subject: Subject<ServerEntry>,
  entry: ServerEntry,
  live: ServerObserved,
  world: World,
): Warning[] {
  if (entry.public_ipv4 === undefined || !('ip' in entry.public_ipv4)) return [];
  const id = world.idOf(topLevelKey('ips', entry.public_ipv4.ip));
  if (id === undefined || live.addresses.some((each) => String(each.id) === id)) return [];
  const message = `the server does not hold ips.${entry.public_ipv4.ip}; attaching an address to a server that exists is not documented`;
  return [{ code: 'address_not_as_declared', key: subject.key, message }];
}

async function evidenceOfCreation(intent: Intent, read: ReadPort, known: ReadonlySet<string>) {
  const ips = await read.ips();
  const addressesOf = (id: string) =>
    ips
      .filter((each) => String(each.server_id) === id)
      .map((each) => ({ id: each.id, address: each.address }));
  if (intent.resourceId !== undefined) {
    const cards = await read.findNetworkInterfaces(Number(intent.resourceId) as ServerId);
    const addresses = addressesOf(intent.resourceId);
    if (cards === undefined && addresses.length === 0)
      return { verdict: 'not_done', strays: strayAddresses(intent, ips, known) } as const;
    return { verdict: 'done', id: intent.resourceId, certain: true, facts: { addresses } } as const;
  }
  const before = recordedIds(intent.preimage, 'servers');
  const strangers = [
    ...new Set(ips.flatMap(({ server_id }) => (server_id === null ? [] : [String(server_id)]))),
  ].filter((id) => !before.has(id) && !known.has(id));
  const [one, another] = strangers;
  if (another !== undefined) {
    const reason = `${strangers.length} servers have come since: ${strangers.join(', ')}`;
    return { verdict: 'unclear', reason, candidates: strangers } as const;
  }
  if (one !== undefined) {
    return { verdict: 'done', id: one, certain: false, facts: { addresses: addressesOf(one) } } as const;
  }
  if (member(intent.request.body, 'public_ipv4') !== undefined) return { verdict: 'not_done' } as const;
  const reason = 'a server without a public address leaves no trace in the documented reads';
  return { verdict: 'unclear', reason, candidates: [] } as const;
}

/** Addresses that came with a creation that failed, or at the same time. @assumption A40 */
function strayAddresses(intent: Intent, ips: readonly Ip[], known: ReadonlySet<string>): readonly string[] {
  const before = recordedIds(intent.preimage, 'ips');
  return ips
    .filter(({ id, server_id }) => server_id === null && !before.has(String(id)) && !known.has(String(id)))
    .map(({ address }) => address);
}

async function evidenceOfDeletion(intent: Intent, read: ReadPort) {
  const id = Number(intent.request.path.id) as ServerId;
  if ((await read.findNetworkInterfaces(id)) !== undefined) return { verdict: 'not_done' } as const;
  const attached = (await read.ips()).some(({ server_id }) => server_id === id);
  return attached
    ? ({ verdict: 'not_done' } as const)
    : ({ verdict: 'done', id: String(id), certain: true } as const);
}
