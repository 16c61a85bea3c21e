import { type FaultAction, type FaultRule, faultRule } from '../../src/emulator/faults.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { type Chance, chance } from '../../src/simulation/chance.ts';
import { readFaults, writeFaults } from '../../src/simulation/fault-kinds.ts';
import { withEntry } from '../../src/simulation/spec-file.ts';
import type { Disturbance, Entries, Incident, SpecModel, Story } from '../../src/simulation/story.ts';
import { withApproval } from './approval-stories.ts';
import { drillCount, drillOf } from './drill.ts';
import { withoutEntry } from './edited-file.ts';
import { generatedReadings, readingsApart, taskIdsOf } from './generated-readings.ts';
import { writeNames } from './operations.ts';
import { slowDrillCount, slowDrillOf, slowTasks, slowTasksShownLater } from './slow-drills.ts';
import { tokenStoryOf } from './token-drills.ts';

const minute = 60_000;
const hour = 60 * minute;

/** Draws the story of a seed. The specs are small: a bug that needs a large spec usually has a variant that needs a small one. */
export function generateStory(seed: number): Story {
  const events =
    seed % slowSeeds === 1
      ? generateSlowDrill(seed)
      : (tokenStoryOf(seed, () => generateReadings(chance(seed), false)) ??
        withApproval(generateEvents(seed)));
  const story = { ...generateSpeed(chance(seed ^ 0x51047), events), ...generateEnd(chance(seed ^ 0xe4d)) };
  return { ...story, readings: { ...taskIdsOf(chance(seed ^ 0x7a5c)), ...story.readings } };
}

/** One seed of so many plays a drill of slow work and late requests. */
const slowSeeds = 16;

/** Undisturbed in the first round. Later rounds add other readings to those of the drill. */
function generateSlowDrill(seed: number): Story {
  const number = Math.floor(seed / slowSeeds);
  const drill = slowDrillOf(number);
  const readings = number < slowDrillCount ? {} : generateReadings(chance(seed), false);
  return { seed, ...drill, readings: { ...readings, ...drill.readings } };
}

/**
 * How slow the service is, when it shows the resources it creates, and how it treats keys. These values are drawn separately,
 * so that the rest of an existing story does not change. The first round of drills does not get these values: each of
 * its drills tests another point.
 */
function generateSpeed(dice: Chance, story: Story): Story {
  const { seed } = story;
  const isFirstRound = seed % slowSeeds === 1 ? seed / slowSeeds < slowDrillCount : seed / 2 <= drillCount;
  if ((seed % 2 === 0 || seed % slowSeeds === 1) && isFirstRound) return story;
  const readings: Record<string, unknown> = {};
  const isMixed = dice.happens(0.5);
  for (const [name, values] of Object.entries(readingsApart)) {
    const value = dice.pick(values);
    if (dice.happens(0.35) && isMixed) readings[name] = value;
  }
  // Without a task, no answer shows when the work ends. So no client can wait for an effect that comes with its end.
  if (story.readings.omitTaskField === true)
    for (const name of ['addressAt', 'attachedAt', 'networkAt', 'failedTaskLeaves']) delete readings[name];
  const showsLater = readings.failedTaskLeaves === 'later' || story.faults.some(isShownLater);
  const isSlow = dice.happens(0.3);
  return {
    ...story,
    readings: { ...readings, ...story.readings },
    ...(isSlow ? { durations: showsLater ? slowTasksShownLater : slowTasks } : {}),
  };
}

function isShownLater({ then }: FaultRule): boolean {
  return then.do === 'task' && then.leaves === 'later';
}

/** The checks after the faults have stopped. They are drawn separately, so that the rest of an existing story does not change. */
function generateEnd(dice: Chance): Pick<Story, 'shown' | 'cut'> {
  const cut = { back: dice.mostlySmall(1, 100), afterMs: dice.pick([minute, 25 * hour]) };
  return { ...(dice.happens(0.4) ? { shown: true } : {}), ...(dice.happens(0.3) ? { cut } : {}) };
}

function generateEvents(seed: number): Story {
  const dice = chance(seed);
  if (seed % 2 === 0) {
    const drill = drillOf(seed / 2);
    // Undisturbed in the first round, so that each drill is certain to be met. Later rounds add random faults.
    const disturbed = seed / 2 > drillCount;
    const further = disturbed && dice.happens(0.5) ? generateIncidents(dice.fork(), 1).slice(0, 2) : [];
    const readings = { ...(disturbed ? generateReadings(dice.fork(), false) : {}), ...drill.readings };
    return { seed, state: 'memory', ...drill, readings, incidents: [...drill.incidents, ...further] };
  }
  const kind = dice.pick(['calm', 'faults', 'incidents', 'both', 'both', 'both', 'edits'] as const);
  const specs = generateSpecs(dice.fork(), dice.happens(0.5) ? 1 : dice.between(2, 3));
  const faults =
    kind === 'calm' || kind === 'incidents' || kind === 'edits' ? [] : generateFaults(dice.fork());
  const incidents = kind === 'calm' || kind === 'faults' ? [] : generateIncidents(dice.fork(), specs.length);
  return {
    seed,
    state: dice.happens(0.25) ? 'sqlite' : 'memory',
    readings: generateReadings(dice.fork(), kind === 'calm'),
    specs,
    faults,
    incidents: kind === 'edits' ? incidents.filter(({ what }) => what.do === 'edit') : incidents,
    pausesMs: Array.from({ length: 4 }, () =>
      dice.pick([minute, 3 * minute, 10 * minute, 90 * minute, 25 * hour]),
    ),
    ...(seed % 16 === 15
      ? { profile: true, specs: specs.map((spec) => withProfile(dice.fork(), spec)) }
      : {}),
  };
}

/** Adds some of the fields that only a profile enables. */
export function withProfile(dice: Chance, spec: SpecModel): SpecModel {
  const iso = Object.keys(spec.isos)[0] ?? null;
  const servers = Object.entries(spec.servers).map(([name, server]) => {
    const backup = server.backup as object | undefined;
    const more = {
      ...(dice.happens(0.6) ? { iso: dice.happens(0.7) ? iso : null } : {}),
      ...(backup === undefined ? {} : { backup: { ...backup, keep: dice.between(1, 2) } }),
      ...(dice.happens(0.3)
        ? { backup_policy: { enabled: true, days: ['mon'], hour: dice.between(1, 5), minute: 0, keep: 4 } }
        : {}),
    };
    return [name, { ...server, ...more }] as const;
  });
  const [taken] = Object.keys(spec.servers);
  const images = taken !== undefined && dice.happens(0.3) ? { golden: { server: taken } } : {};
  const disk = dice.happens(0.5) ? { disk_gb: 20 } : {};
  const sized = servers.map(([name, server]) =>
    'disk_gb' in server ? [name, { ...server, ...disk }] : [name, server],
  );
  return { ...spec, servers: Object.fromEntries(sized), server_images: images };
}

/** Half of them at their default, so that both sides of each meet both sides of the others. */
export function generateReadings(dice: Chance, calm: boolean): Partial<Readings> {
  const readings: Record<string, unknown> = {};
  for (const [name, values] of Object.entries(generatedReadings)) {
    if (!dice.happens(0.35)) continue;
    const value = dice.pick(values.slice(1));
    readings[name] = value === 'number' ? numberFor(name, dice) : value;
  }
  if (calm || dice.happens(0.8)) delete readings.pageSize;
  if (calm) delete readings.bodilessContentType;
  return readings as Partial<Readings>;
}

function numberFor(name: string, dice: Chance): number {
  switch (name) {
    case 'minutePhaseMs':
      return dice.between(1, 59_999);
    case 'staleReadsMs':
      return dice.pick([1_000, 10_000, 59_000]);
    case 'taskRetentionMs':
      return dice.pick([10_000, 5 * minute, hour]);
    default:
      return dice.between(1, 3);
  }
}

function generateSpecs(dice: Chance, count: number): readonly SpecModel[] {
  const specs = [generateSpec(dice)];
  while (specs.length < count) specs.push(editSpec(dice, specs.at(-1) as SpecModel));
  return specs;
}

export function generateSpec(dice: Chance): SpecModel {
  const networks: Record<string, Record<string, unknown>> = {};
  if (dice.happens(0.3)) networks.default = { managed: false };
  for (let at = 0; at < dice.pick([0, 1, 1, 2]); at++)
    networks[`net-${at}`] = { cidr: `10.${20 + at}.0.0/24` };
  const ips: Record<string, Record<string, unknown>> = {};
  for (let at = 0; at < dice.pick([0, 0, 1, 1, 2]); at++)
    ips[`ip-${at}`] = dice.happens(0.5) ? { server_type_id: 3 } : {};
  const isos: Record<string, Record<string, unknown>> = {};
  if (dice.happens(0.3)) isos.rescue = { url: `https://mirror.example.com/${dice.pick(['a', 'b'])}.iso` };
  const servers: Record<string, Record<string, unknown>> = {};
  const free = Object.keys(ips);
  for (let at = 0; at < dice.pick([0, 1, 1, 1, 2]); at++)
    servers[`srv-${at}`] = generateServer(dice, networks, free);
  return {
    settings: {
      prune: dice.happens(0.85),
      max_deletions: dice.pick([1, 2, 10]),
      exclusive: dice.happens(0.5),
      unmanaged: 'ask',
      drift: dice.happens(0.9) ? 'correct' : 'report',
    },
    networks,
    ips,
    isos,
    servers,
  };
}

function generateServer(
  dice: Chance,
  networks: Readonly<Record<string, unknown>>,
  freeIps: string[],
): Record<string, unknown> {
  const type = dice.pick(['sliders', 'sliders', 'plans', 'gpu'] as const);
  const size = {
    sliders: { server_type: 'sliders-1', cores: 2, memory_mb: 4096, disk_gb: 40 },
    plans: { server_type: 5, plan_id: 51 },
    gpu: { server_type: 'gpu-fixed', gpu_package: dice.pick([['l40s-2', 'l40s-1'], 'l40s-1']) },
  }[type];
  const address = dice.pick(['none', 'new', 'new', 'reuse', 'ip'] as const);
  const named = address === 'ip' && type !== 'gpu' ? freeIps.shift() : undefined;
  const ipv4 = { none: undefined, new: { new: true }, reuse: { reuse: true }, ip: named && { ip: named } }[
    address
  ];
  const cards = Object.keys(networks).filter((name) => name !== 'default' && dice.happens(0.5));
  return {
    ...size,
    image: type === 'gpu' ? 'ubuntu-24.04' : dice.pick(['ubuntu-24.04', 'debian-13']),
    ...(ipv4 === undefined ? {} : { public_ipv4: ipv4 }),
    ...(cards.length === 0 ? {} : { network_interfaces: cards }),
    ...(ipv4 === undefined || dice.happens(0.5) ? {} : { firewall: generateFirewall(dice) }),
    ...(dice.happens(0.3) ? { backup: { max_age: dice.pick(['24h', '7d']) } } : {}),
    ...(dice.happens(0.1) ? { protect: true } : {}),
    ...(dice.happens(0.5) ? { replace: 'allowed' } : {}),
    ...(dice.happens(0.2) ? { keep_ip: true } : {}),
  };
}

export function generateFirewall(dice: Chance): Record<string, unknown> {
  const rule = (port: string) => ({
    direction: 'in',
    action: 'accept',
    enabled: true,
    protocol: 'tcp',
    destination_port: port,
    description: `port ${port}`,
  });
  return { enabled: true, policy_in: 'drop', rules: dice.pick([['22'], ['22', '443'], []]).map(rule) };
}

export function editSpec(dice: Chance, spec: SpecModel): SpecModel {
  const how = dice.pick(['empty', 'remove', 'remove', 'add', 'resize', 'firewall', 'cidr', 'iso'] as const);
  /** The spec with these fields in each server that has one of them. */
  const withFields = (name: string, fields: () => Entries[string]) => ({
    ...spec,
    servers: Object.fromEntries(
      Object.entries(spec.servers).map(([server, entry]) => [
        server,
        entry[name] === undefined ? entry : { ...entry, ...fields() },
      ]),
    ),
  });
  switch (how) {
    case 'empty':
      return { ...spec, networks: {}, ips: {}, isos: {}, servers: {} };
    case 'remove': {
      const section = dice.pick(['servers', 'servers', 'ips', 'isos', 'networks'] as const);
      const name = Object.keys(spec[section]).find((each) => each !== 'default');
      return name === undefined ? spec : withoutEntry(spec, `${section}.${name}`);
    }
    case 'add': {
      const ips = { ...spec.ips, [`ip-${dice.between(5, 9)}`]: {} };
      return withEntry({ ...spec, ips }, 'networks.net-9', { cidr: '10.99.0.0/24' });
    }
    case 'resize':
      return withFields('cores', () => ({ cores: 4 }));
    case 'firewall':
      return withFields('firewall', () => ({ firewall: generateFirewall(dice) }));
    case 'cidr':
      return spec.networks['net-0'] === undefined
        ? spec
        : withEntry(spec, 'networks.net-0', { cidr: '10.77.0.0/24' });
    case 'iso':
      return withEntry(spec, 'isos.rescue', { url: 'https://mirror.example.com/c.iso' });
  }
}

/** No client can detect a wrong 404 on a resource that it reads by its id. So this fault occurs at most once. */
const liars: readonly string[] = ['404', 'list cut off', 'list empty', 'stale'];

export function generateFaults(dice: Chance): readonly FaultRule[] {
  return Array.from({ length: dice.mostlySmall(1, 6) }, () => {
    if (dice.happens(0.7)) {
      const action = writeFaults[dice.pick(Object.keys(writeFaults))] as FaultAction;
      const path = dice.happens(0.6)
        ? { path: dice.pick(writeNames) }
        : { method: dice.pick(['POST', 'DELETE', 'PUT']) };
      return dice.happens(0.5)
        ? faultRule({ ...path, nth: dice.mostlySmall(1, 4), times: dice.mostlySmall(1, 3) }, action)
        : faultRule({ ...path, probability: dice.pick([0.1, 0.3, 0.6]), times: dice.between(1, 5) }, action);
    }
    const name = dice.pick(Object.keys(readFaults));
    const times = liars.includes(name) ? 1 : dice.between(1, 6);
    return faultRule({ method: 'GET', nth: dice.mostlySmall(1, 80), times }, readFaults[name] as FaultAction);
  });
}

const aims = [
  '*',
  '*',
  '*',
  'write:before',
  'write:after',
  'beginIntent:before',
  'beginIntent:after',
  'updateIntent:before',
  'updateIntent:after',
  'closeIntent:before',
  'closeIntent:after',
  'change:before',
  'change:after',
  'read:after',
  'sleep',
] as const;

export function generateIncidents(dice: Chance, specs: number): readonly Incident[] {
  const incidents = Array.from({ length: dice.mostlySmall(1, 6) }, (): Incident => {
    const boundary = dice.pick(aims);
    return {
      at: { boundary, nth: dice.mostlySmall(1, boundary === '*' ? 600 : 30) },
      what: generateDisturbance(dice),
    };
  });
  const edits = Array.from({ length: specs - 1 }, (_, at): Incident => {
    const boundary = dice.pick(['*', 'write:after', 'closeIntent:after', 'sleep'] as const);
    const nth = dice.mostlySmall(1, boundary === '*' ? 500 : 12) * (at + 1);
    return { at: { boundary, nth }, what: { do: 'edit', spec: at + 1 } };
  });
  return [...incidents, ...edits];
}

function generateDisturbance(dice: Chance): Disturbance {
  const sort = dice.pick(['server', 'ip', 'network', 'iso'] as const);
  const place = dice.between(0, 2);
  return weighted<Disturbance>(dice, [
    [12, { do: 'crash' }],
    [2, { do: 'stop' }],
    [2, { do: 'halt' }],
    [2, { do: 'disk_full', writes: dice.between(1, 4), durable: dice.happens(0.4) }],
    [1, { do: 'lose_state' }],
    [1, { do: 'restore_state', back: dice.between(1, 3) }],
    [1, { do: 'set_clock', ms: dice.pick([-25, -1, 1, 25]) * hour }],
    [
      1,
      {
        do: 'token',
        to: dice.pick(['revoked', 'foreign', 'read', 'member'] as const),
        runs: dice.between(1, 2),
      },
    ],
    [3, { do: 'remove', sort, place }],
    [1, { do: 'open_firewall', place }],
    [1, { do: 'second', token: dice.pick(['same', 'member'] as const) }],
    [1, { do: 'mutate', mutation: { do: 'add_server', name: 'foreign', public: dice.happens(0.7) } }],
    [1, { do: 'mutate', mutation: { do: 'add_ip' } }],
    [1, { do: 'mutate', mutation: { do: 'add_network', name: `net-${place}`, cidr: '10.50.0.0/24' } }],
    [
      1,
      {
        do: 'mutate',
        mutation: { do: 'set_standing', standing: dice.pick(['suspended', 'unpaid', 'active'] as const) },
      },
    ],
    [
      1,
      {
        do: 'mutate',
        mutation: {
          do: 'set_capacity',
          package: dice.pick(['l40s-1', 'l40s-2']),
          capacity: dice.pick([0, 5]),
        },
      },
    ],
    [1, { do: 'mutate', mutation: { do: 'fail_next_task' } }],
  ]);
}

/** One of the values, each as often as its weight says. */
export function weighted<Value>(
  dice: Chance,
  choices: readonly (readonly [weight: number, value: Value])[],
): Value {
  let ticket = dice.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, value] of choices) {
    ticket -= weight;
    if (ticket <= 0) return value;
  }
  return (choices[0] as (typeof choices)[number])[1];
}
