import { type Chance, chance } from '../../src/simulation/chance.ts';
import type { Fields } from '../../src/simulation/spec-file.ts';
import type { Story } from '../../src/simulation/story.ts';
import type { EntryPlace, OperatorAction, TimedAction } from './actions/operator-action.ts';
import { editDrillOf } from './edit-drills.ts';
import {
  generateFaults,
  generateFirewall,
  generateIncidents,
  generateReadings,
  generateSpec,
  weighted,
  withProfile,
} from './generator.ts';
import type { EditedSection } from './lines.ts';

const minute = 60_000;
const hour = 60 * minute;

/** One of so many seeds is a drill. */
const drillEvery = 17;

/** One of so many other seeds has a profile, and the fields that only a profile enables. */
const profileEvery = 16;

/** Draws a story in which operators edit the spec, give commands, and lose the state, among the faults of the others. */
export function generateActionStory(seed: number): Story {
  if (seed % drillEvery === 0) return { seed, ...editDrillOf(seed) };
  const dice = chance(seed ^ 0xac7105);
  const kind = dice.pick(['calm', 'calm', 'calm', 'faults', 'incidents', 'both'] as const);
  const spec = generateSpec(dice.fork());
  const faults = kind === 'faults' || kind === 'both' ? generateFaults(dice.fork()) : [];
  const incidents = kind === 'incidents' || kind === 'both' ? generateIncidents(dice.fork(), 1) : [];
  return {
    seed,
    state: dice.happens(0.15) ? 'sqlite' : 'memory',
    readings: dice.happens(0.5) ? generateReadings(dice.fork(), kind === 'calm') : {},
    specs: [spec],
    faults: faults.slice(0, 3),
    incidents: incidents.slice(0, 3),
    actions: generateActions(dice.fork()),
    pausesMs: Array.from({ length: 3 }, () => dice.pick([minute, 3 * minute, 90 * minute, 25 * hour])),
    ...(dice.happens(0.3) ? { shown: true } : {}),
    ...(dice.happens(0.2)
      ? { cut: { back: dice.mostlySmall(1, 100), afterMs: dice.pick([minute, 25 * hour]) } }
      : {}),
    ...(seed % profileEvery === 12 ? { profile: true, specs: [withProfile(dice.fork(), spec)] } : {}),
  };
}

function generateActions(dice: Chance): readonly TimedAction[] {
  return Array.from({ length: dice.mostlySmall(1, 9) }, () => timed(dice, generateAction(dice)));
}

/** One more action, for a story that is varied. */
export function timed(dice: Chance, what: OperatorAction): TimedAction {
  const boundary = dice.pick([
    'write:after',
    'write:before',
    'beginIntent:after',
    'closeIntent:after',
    '*',
  ] as const);
  const when = dice.pick([
    'at_once',
    'at_once',
    'at_rest',
    'at_rest',
    { boundary, nth: dice.mostlySmall(1, boundary === '*' ? 200 : 8) },
  ] as const);
  return { when, ...(dice.happens(0.1) ? { by: 'other_file' as const } : {}), what };
}

export function generateAction(dice: Chance): OperatorAction {
  const of = entryPlace(dice);
  const server: EntryPlace = { section: 'servers', place: of.place };
  const place = dice.between(0, 3);
  const id = dice.pick(['own', 'own', 'other', 'unknown'] as const);
  return weighted<OperatorAction>(dice, [
    [
      10,
      {
        do: 'rename',
        of,
        to: dice.pick([0, 0, 1, 2]),
        moved: dice.happens(0.75),
        name: dice.pick(['as_it_is', 'as_it_is', 'kept', 'changed', 'dropped'] as const),
      },
    ],
    [2, { do: 'drop_moved', place }],
    [5, { do: 'remove_entry', of }],
    [5, { do: 'return_entry', place }],
    [2, { do: 'copy_entry', of }],
    [4, { do: 'give_id', of, id: dice.pick(['own', 'own', 'other', 'unknown', 'none', 'none'] as const) }],
    [4, { do: 'manage', of, managed: dice.happens(0.4) }],
    [3, { do: 'change_fields', of, all: dice.happens(0.3), fields: { protect: dice.happens(0.5) } }],
    [8, { do: 'change_fields', of: server, all: dice.happens(0.4), fields: serverFields(dice) }],
    [2, changeOf(dice, of)],
    [
      3,
      {
        do: 'change_fields',
        of: server,
        all: true,
        fields: {
          image: dice.pick(['debian-13', 'ubuntu-24.04']),
          replace: { order: 'delete_first' },
          protect: null,
        },
      },
    ],
    [4, { do: 'change_settings', fields: settingsFields(dice) }],
    [1, { do: 'give_scope', scope: dice.pick([null, 'blue']) }],
    [1, { do: dice.pick(['begin_overlay', 'end_overlay'] as const) }],
    [1, { do: 'empty_file' }],
    [4, { do: 'answer' }],
    [2, { do: 'apply_target', of }],
    [2, { do: 'apply_exclude', of }],
    [2, { do: 'destroy' }],
    [2, { do: 'save_plan' }],
    [2, { do: 'apply_saved' }],
    [4, { do: 'forget', place }],
    [2, { do: 'ignore', of: dice.pick(['server', 'ip'] as const), place, undo: dice.happens(0.2) }],
    [3, { do: 'adopt', of, id }],
    [3, { do: 'resolve', place, word: dice.pick(['adopt', 'absent', 'abandon'] as const), id }],
    [5, { do: 'lose_the_state' }],
    [4, { do: 'put_state_back', changes: dice.mostlySmall(1, 60) }],
    [1.5, { do: 'start_other_file', scope: dice.happens(0.3) }],
    [3, { do: 'wait', ms: dice.pick([5 * minute, 25 * hour]) }],
    [1, { do: 'standing', standing: dice.pick(['unpaid', 'active'] as const) }],
  ]);
}

function entryPlace(dice: Chance): EntryPlace {
  const sections: readonly EditedSection[] = ['servers', 'servers', 'servers', 'ips', 'networks', 'isos'];
  return { section: dice.pick(sections), place: dice.between(0, 2) };
}

/** An update or a replacement of a server. */
function serverFields(dice: Chance): Fields {
  return dice.pick<() => Fields>([
    () => ({ cores: dice.pick([2, 4]) }),
    () => ({ image: dice.pick(['debian-13', 'ubuntu-24.04']) }),
    () => ({ disk_gb: dice.pick([20, 40, 80]) }),
    () => ({ firewall: generateFirewall(dice), public_ipv4: { new: true } }),
    () => ({ firewall: null, public_ipv4: null }),
    () => ({ public_ipv4: dice.pick([{ new: true }, { reuse: true }, { ip: 'ip-0' }]) }),
    () => ({ keep_ip: dice.happens(0.5) }),
    () => ({ backup: dice.pick([{ max_age: '24h' }, null]) }),
    () => ({ network_interfaces: dice.pick([['net-0'], [], null]) }),
    () => ({
      replace: dice.pick([
        'allowed',
        'never',
        { order: 'delete_first' },
        { order: 'create_first', at_once: 2 },
      ]),
    }),
    () => ({
      image: dice.pick(['debian-13', 'ubuntu-24.04']),
      replace: dice.pick(['allowed', { order: 'delete_first' }]),
    }),
  ])();
}

/** A change of an entry of another section. */
function changeOf(dice: Chance, { place }: EntryPlace): OperatorAction {
  const [section, fields] = dice.pick<readonly [EditedSection, Fields]>([
    ['networks', { cidr: `10.${dice.between(60, 63)}.0.0/24` }],
    ['isos', { url: `https://mirror.example.com/${dice.pick(['a', 'b', 'c'])}.iso` }],
    ['ips', { server_type_id: dice.pick([3, null]) }],
  ]);
  return { do: 'change_fields', of: { section, place }, all: false, fields };
}

function settingsFields(dice: Chance): Fields {
  return dice.pick<Fields>([
    { prune: true },
    { prune: false },
    { max_deletions: dice.pick([0, 1, 10]) },
    { max_monthly_increase: dice.pick([1, null]) },
    { exclusive: dice.happens(0.5) },
    { unmanaged: 'ask' },
    { drift: dice.pick(['correct', 'report']) },
    { unconfirmed_servers: dice.pick(['retry', 'ask']) },
  ]);
}
