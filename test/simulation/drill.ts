import { type FaultAction, type FaultRule, faultRule } from '../../src/emulator/faults.ts';
import { writeFaults } from '../../src/simulation/fault-kinds.ts';
import type { Disturbance, Incident, SpecModel, Story } from '../../src/simulation/story.ts';
import { operationsWith, writes } from './operations.ts';
import { profiledSubjects, subjects } from './subjects.ts';

const minute = 60_000;
const hour = 60 * minute;
type Write = keyof typeof writes;

type Drill = Pick<Story, 'specs' | 'faults' | 'incidents' | 'pausesMs'> &
  Partial<Pick<Story, 'state' | 'readings' | 'profile'>>;

/** The server first, so that the state that is put back knows it. */
const partByPart: readonly SpecModel[] = (subjects.parts ?? []).flatMap((spec) => {
  const { web } = spec.servers;
  if (web === undefined) return [spec];
  const { network_interfaces: _cards, firewall: _firewall, backup: _backup, ...bare } = web;
  return [{ ...spec, servers: { web: bare } }, spec];
});

/**
 * One story for each thing that can go wrong with each write, so that every row of the
 * outcome table is met in a few hundred seeds and not by luck.
 */
const drillsOf = (write: Write): readonly Drill[] => [
  ...Object.entries(writeFaults).map(([what, action]) =>
    drill(
      write,
      [faultRule({ path: writes[write].name, nth: 1 }, action)],
      [],
      what === 'no capacity' ? 'gpu' : undefined,
    ),
  ),
  ...[`beginIntent ${write}:before`, `${writes[write].path}:before`, `${writes[write].path}:after`].map(
    (boundary) => drill(write, [], [crash(boundary)]),
  ),
  {
    // Sent and never answered. The run checks the outcome only when the key is too old.
    ...drill(
      write,
      [faultRule({ path: writes[write].name, nth: 1 }, { do: 'reset' })],
      [crash(`${writes[write].path}:after`)],
    ),
    pausesMs: [25 * hour],
  },
  ...(['same', 'member'] as const).map((token) =>
    drill(write, [], [{ at: { boundary: '*', nth: 1 }, what: { do: 'second', token } }, crash('*', 2)]),
  ),
  {
    // An older copy of the state: the write is begun again under the same key, and replayed.
    ...drill(
      write,
      [],
      [{ at: { boundary: `${writes[write].path}:after`, nth: 1 }, what: { do: 'restore_state', back: 0 } }],
    ),
    ...(writes[write].subject === 'parts' ? { specs: partByPart } : {}),
    state: 'sqlite',
  } as const,
  // The token's source gives another project's token, before anything and between the record and the send.
  ...['*', 'beginIntent:before', 'beginIntent:after'].map((boundary) =>
    drill(write, [], [{ at: { boundary, nth: 1 }, what: { do: 'token', to: 'foreign', runs: 2 } }]),
  ),
  drill(write, [], [{ at: { boundary: 'closeIntent:after', nth: 1 }, what: { do: 'lose_state' } }]),
  drill(write, [], [{ at: { boundary: `${writes[write].path}:after`, nth: 1 }, what: { do: 'lose_state' } }]),
];

const loseNetwork: Disturbance = { do: 'remove', sort: 'network', place: 0 };

/** Drills that need more than one write, or more than one fault. */
const further: readonly Drill[] = [
  ...(['allocate_ip', 'create_network', 'create_server', 'add_iso'] as const).map((write) =>
    drill(
      write,
      [
        faultRule({ path: writes[write].name, nth: 1 }, { do: 'reset' }),
        faultRule({ path: writes[write].name, nth: 1 }, { do: 'answer', status: 429, retryAfter: 20 }),
      ],
      [],
    ),
  ),
  // The state is lost, and by then the service has forgotten the keys.
  ...(['allocate_ip', 'create_server'] as const).map((write) => ({
    ...drill(write, [], [happens('closeIntent:after', 1, { do: 'lose_state' })]),
    pausesMs: [25 * hour],
  })),
  // The effect of one refusal on the next write.
  {
    specs: subjects.many ?? [],
    faults: [faultRule({ path: 'allocate_ip', nth: 1 }, writeFaults['403'] as FaultAction)],
    incidents: [],
    pausesMs: [minute],
  },
  // More than a minute's worth of writes, and the same with a new process in the middle.
  { specs: subjects.many ?? [], faults: [], incidents: [], pausesMs: [1_000] },
  { specs: subjects.many ?? [], faults: [], incidents: [crash('write:after', 15)], pausesMs: [1_000] },
  // Another user allocates an address while an answer is lost, and the spec does not set `exclusive`.
  {
    specs: (subjects.ip ?? []).map((spec) => ({ ...spec, settings: { ...spec.settings, exclusive: false } })),
    faults: [faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset' })],
    incidents: [
      { at: { boundary: 'POST /ips:after', nth: 1 }, what: { do: 'mutate', mutation: { do: 'add_ip' } } },
    ],
    pausesMs: [minute],
  },
  {
    specs: subjects.many ?? [],
    faults: [],
    incidents: [happens('write:after', 15, { do: 'stop' })],
    pausesMs: [1_000],
  },
  // A list is cut off after the default network once, while its networks are bound, or while a deletion is unconfirmed.
  ...[2, 3, 4, 5, 6, 8].flatMap((nth) => {
    const cut = faultRule({ path: 'list_networks', nth }, { do: 'truncate_list', keep: 1 });
    const lost = faultRule({ path: 'delete_network', nth: 1 }, { do: 'reset' });
    return [
      drill('create_network', [cut], []),
      drill('delete_network', [lost, cut], []),
      drill(
        'delete_network',
        [lost, faultRule({ path: 'list_networks', nth: nth + 5 }, { do: 'truncate_list', keep: 0 })],
        [],
      ),
    ];
  }),
  // The id of a deleted network is given to the next network, and then the first network leaves the spec.
  {
    specs: [['one'], ['one', 'two'], ['two']].map(networksOnly),
    faults: [],
    incidents: [happens('closeIntent:after', 1, { do: 'remove', sort: 'network', place: 0 })],
    readings: { reuseIds: true },
    pausesMs: [minute],
  },
  // The deletion of a replacement fails in each round, in a run that changes by another user keep busy.
  ...(['404', 'task fails'] as const).map((what) => ({
    specs: ['ubuntu-24.04', 'debian-13'].map(besideNetwork),
    faults: [faultRule({ path: 'delete_server', nth: 1, times: 12 }, writeFaults[what] as FaultAction)],
    incidents: [
      happens(`${writes.delete_server.path}:after`, 1, loseNetwork),
      ...Array.from({ length: 12 }, (_, at) => happens('closeIntent:after', 3 + at, loseNetwork)),
    ],
    pausesMs: [minute],
  })),
  // No clock of the API to go by, and the machine's own a day ahead.
  {
    specs: (subjects.parts ?? []).slice(0, 1),
    faults: [],
    incidents: [happens('write:after', 1, { do: 'set_clock', ms: 25 * hour })],
    readings: { dateHeader: false },
    pausesMs: [minute],
  },
];
/** The leftover of a failed task that no list shows: only the leftover's own record prevents a second purchase. */
const leftUnseen = drill(
  'create_server',
  [faultRule({ path: 'create_server', nth: 1 }, writeFaults['task fails, all there'] as FaultAction)],
  [],
  'bare server',
);
const documented: readonly Drill[] = [
  ...operationsWith(({ profile }) => !profile).flatMap(drillsOf),
  ...Array.from({ length: 4 }, () => further).flat(),
  ...further.slice(0, -1),
  leftUnseen,
];
const opened: readonly Drill[] = operationsWith(({ profile }) => profile).flatMap(drillsOf);

/** Spreads the writes over the numbers; a prime that is no factor of how many there are. */
const stride = 167;

/** The numbers of the drills repeat after this count. */
export const drillCount = documented.length + opened.length;

/** The drill of a number: first those of documented operations, then those of operations that a profile enables. */
export function drillOf(number: number): Drill {
  const place = (number - 1) % drillCount;
  const [list, at] = place < documented.length ? [documented, place + 1] : [opened, place];
  return list[(at * stride) % list.length] as Drill;
}

function drill(
  write: Write,
  faults: readonly FaultRule[],
  incidents: readonly Incident[],
  subject: string = writes[write].subject,
): Drill {
  const specs = subjects[subject] ?? profiledSubjects[subject] ?? [];
  // A second backup is due the day after.
  const pausesMs = subject === 'backups' ? [25 * hour] : [minute, 10 * minute];
  return { specs, faults, incidents, pausesMs, ...(subject in profiledSubjects ? { profile: true } : {}) };
}

function crash(boundary: string, nth = 1): Incident {
  return happens(boundary, nth, { do: 'crash' });
}

function happens(boundary: string, nth: number, what: Disturbance): Incident {
  return { at: { boundary, nth }, what };
}

/** Specs with networks only. A lost network is only reported, so that its id is free for another network. */
function networksOnly(names: readonly string[]): SpecModel {
  const [like] = subjects.network ?? [];
  const networks = names.map((name, at) => [name, { cidr: `10.${20 + at}.0.0/24` }]);
  return {
    settings: { ...like?.settings, drift: 'report' },
    networks: Object.fromEntries(networks),
    ips: {},
    isos: {},
    servers: {},
  };
}

/** A server that an edit of its image replaces, and a network that has nothing to do with it. */
function besideNetwork(image: string): SpecModel {
  const [like] = subjects.network ?? [];
  const [server] = subjects['bare server'] ?? [];
  const web = { ...server?.servers.web, image, replace: 'allowed' };
  return { ...(like as SpecModel), servers: { web } };
}
