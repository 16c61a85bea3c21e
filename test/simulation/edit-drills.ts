import { type Chance, chance } from '../../src/simulation/chance.ts';
import type { Fields } from '../../src/simulation/spec-file.ts';
import type { SpecModel, Story } from '../../src/simulation/story.ts';
import type { EntryPlace, OperatorAction, TimedAction } from './actions/operator-action.ts';
import { generateReadings, weighted } from './generator.ts';
import type { EditedSection } from './lines.ts';
import { leftBehindDrillOf, replacedBy, secondHalfDrillOf, size, twiceLostDrillOf } from './server-drills.ts';

const entries = {
  servers: { web: size },
  networks: { web: { cidr: '10.20.0.0/24' } },
  isos: { web: { url: 'https://mirror.example.com/a.iso' } },
  ips: { web: {} },
} as const;
const sections = ['servers', 'networks', 'isos', 'ips'] as const;

/** Stories of a few edits whose order matters, and that chance rarely draws in this order. */
export function editDrillOf(seed: number): Omit<Story, 'seed'> {
  const leaving = chance(seed ^ 0x1ea712);
  if (leaving.happens(0.12)) return leftBehindDrillOf(leaving);
  const halving = chance(seed ^ 0x4a1f08);
  if (halving.happens(0.06)) return secondHalfDrillOf(halving);
  const twice = chance(seed ^ 0x71ce);
  if (twice.happens(0.04)) return twiceLostDrillOf(twice);
  const few = chance(seed ^ 0x5a11);
  if (few.happens(0.3)) return smallDrillOf(few);
  const passing = chance(seed ^ 0x9a554);
  if (passing.happens(0.15)) return passedOnDrillOf(passing);
  const reverting = chance(seed ^ 0x4e7e47);
  if (reverting.happens(0.3)) return revertedDrillOf(reverting);
  const giving = chance(seed ^ 0x61f7);
  if (giving.happens(0.2)) return givenAwayDrillOf(giving);
  const replacing = chance(seed ^ 0x4e9ace);
  if (replacing.happens(0.35)) return replacedDrillOf(replacing);
  const renaming = chance(seed ^ 0x4e9a3e);
  if (renaming.happens(0.5)) return renamedDrillOf(renaming);
  const dice = chance(seed ^ 0xd0111);
  const section = dice.pick(sections);
  const actions = dice.pick([renamedInFlight, destroyed, foundAndLeft])(dice, section);
  const settings = { prune: true, max_deletions: 10, unmanaged: dice.pick(['ask', 'ask', 'ignore']) };
  const isProtected = dice.happens(0.5) && section === 'servers';
  const spec: SpecModel = {
    ...{ settings, servers: {}, networks: {}, isos: {}, ips: {} },
    [section]: { web: { ...entries[section].web, ...(isProtected ? { protect: true } : {}) } },
  };
  return {
    ...{ state: 'memory', readings: {}, specs: [spec], faults: [], incidents: [], actions },
    pausesMs: [dice.pick([1_000, 60_000, 90 * 60_000])],
  };
}

/** One or two entries, and the edits and commands that move their resources between keys, in any order. */
function smallDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const section = dice.pick(['servers', 'servers', 'servers', ...sections] as const);
  const of = (): EntryPlace => ({ section, place: dice.between(0, 1) });
  const address = dice.pick([{}, {}, { public_ipv4: { new: true } }]);
  const web = section === 'servers' ? { ...size, ...address, replace: 'allowed' } : entries[section].web;
  const other = section === 'networks' ? { cidr: '10.21.0.0/24' } : web;
  const act = (): OperatorAction =>
    weighted<OperatorAction>(dice, [
      [5, { do: 'rename', of: of(), to: dice.pick([0, 0, 1]), moved: dice.happens(0.8), name: 'as_it_is' }],
      [3, { do: 'drop_moved', place: dice.between(0, 1) }],
      [3, { do: 'return_entry', place: dice.between(0, 1) }],
      [2, { do: 'remove_entry', of: of() }],
      [2, { do: 'copy_entry', of: of() }],
      [section === 'servers' ? 4 : 0, changed(dice, of())],
      [1, { do: 'give_id', of: of(), id: dice.pick(['own', 'other', 'none']) }],
      [1, { do: 'manage', of: of(), managed: dice.happens(0.4) }],
      [2, { do: 'forget', place: dice.between(0, 1) }],
      [1, { do: 'adopt', of: of(), id: dice.pick(['own', 'other']) }],
      [3, { do: 'lose_the_state' }],
      [3, { do: 'put_state_back', changes: dice.mostlySmall(1, 30) }],
      [1, { do: 'remove', sort: 'server', place: dice.between(0, 1) }],
      [1, { do: 'destroy' }],
    ]);
  const when = (): TimedAction['when'] =>
    dice.pick([
      'at_once',
      'at_rest',
      'at_rest',
      { boundary: dice.pick(['write:after', 'closeIntent:after'] as const), nth: dice.between(1, 3) },
    ] as const);
  const settings = {
    prune: dice.happens(0.5),
    max_deletions: 10,
    unmanaged: 'ask',
  };
  const spec: SpecModel = {
    ...{ settings, servers: {}, networks: {}, isos: {}, ips: {} },
    [section]: { web, ...(dice.happens(0.4) ? { db: other } : {}) },
  };
  return {
    ...{ state: 'memory', specs: [spec], faults: [], incidents: [] },
    readings: dice.happens(0.2) ? generateReadings(dice.fork(), true) : {},
    actions: Array.from({ length: dice.between(3, 7) }, () => ({ when: when(), what: act() })),
    pausesMs: [dice.pick([1_000, 60_000, 90 * 60_000])],
  };
}

function changed(dice: Chance, of: EntryPlace): OperatorAction {
  const fields = dice.pick<Fields>([
    { image: 'ubuntu-24.04' },
    { image: 'debian-13' },
    { cores: dice.between(2, 4) },
    { image: 'almalinux-10', replace: { order: 'delete_first' } },
    { public_ipv4: { new: true } },
    { public_ipv4: null },
  ]);
  return { do: 'change_fields', of, all: false, fields };
}

/** An edit is reverted, and perhaps made again, at any moment of the replacement that it asks for. */
function revertedDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const address = dice.pick([{}, { public_ipv4: { new: true } }, { public_ipv4: { ip: 'web' } }]);
  const order = dice.pick(['create_first', 'create_first', 'delete_first'] as const);
  const isNamed = 'public_ipv4' in address && 'ip' in address.public_ipv4;
  const replace = isNamed || dice.happens(0.5) ? 'allowed' : { order };
  const web = {
    ...size,
    ...address,
    replace,
    ...(dice.happens(0.5) ? { firewall: { enabled: false } } : {}),
  };
  const edited = (fields: Fields, when: TimedAction['when']): TimedAction => ({
    when,
    what: { do: 'change_fields', of: { section: 'servers', place: 0 }, all: false, fields },
  });
  const inBetween = (): TimedAction['when'] => ({
    boundary: dice.pick(['write:after', 'write:before', 'closeIntent:after', 'closeIntent:after'] as const),
    nth: dice.pick([1, 1, 2, 2, 3]),
  });
  const [first, second] = [{ cores: size.cores }, { cores: size.cores + 1 }];
  const back = dice.pick([first, { ...first, replace: null }, { ...first, protect: true }]);
  const third = dice.pick([second, { cores: size.cores + 2, replace: 'allowed' }]);
  return {
    ...{ state: 'memory', readings: {}, faults: [], incidents: [] },
    specs: [
      {
        ...{ settings: { max_deletions: 10 }, networks: {}, isos: {} },
        ips: isNamed ? { web: {} } : {},
        servers: { web },
      },
    ],
    actions: [
      edited(second, 'at_rest'),
      edited(back, inBetween()),
      ...(dice.happens(0.5) ? [edited(third, inBetween()), edited(first, inBetween())] : []),
    ],
    pausesMs: [dice.pick([1_000, 60_000])],
  };
}

/** A server is renamed, or named by its id, and replaced under its new name. Then the state is lost, or put back. */
function replacedDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const of = { section: 'servers', place: 0 } as const;
  const name = dice.pick(['as_it_is', 'kept'] as const);
  const image = { image: 'ubuntu-24.04', replace: 'allowed' };
  const atRest = (what: OperatorAction): TimedAction => ({ when: 'at_rest', what });
  const lost: OperatorAction = dice.happens(0.8)
    ? { do: 'lose_the_state' }
    : { do: 'put_state_back', changes: dice.between(1, 20) };
  const address = dice.pick([{}, {}, { public_ipv4: { new: true } }]);
  const spec: SpecModel = {
    ...{ settings: { prune: true, max_deletions: 10 }, networks: {}, isos: {}, ips: {} },
    servers: { web: { ...size, ...address, protect: dice.happens(0.3) } },
  };
  return {
    ...{ state: 'memory', readings: {}, specs: [spec], faults: [], incidents: [] },
    actions: [
      atRest({ do: 'rename', of, to: 0, moved: dice.happens(0.7), name }),
      ...(dice.happens(0.6) ? [atRest({ do: 'drop_moved', place: 0 })] : []),
      ...(dice.happens(0.7) ? [atRest({ do: 'change_fields', of, all: false, fields: image })] : []),
      ...(dice.happens(0.3) ? [atRest({ do: 'rename', of, to: 1, moved: dice.happens(0.7), name })] : []),
      ...(dice.happens(0.7) ? [atRest(lost)] : []),
      ...(dice.happens(0.4) ? [atRest({ do: 'destroy' })] : []),
    ],
    pausesMs: [dice.pick([1_000, 60_000, 90 * 60_000])],
  };
}

/** Servers are renamed, and new entries or other servers get their earlier keys. Then the state is lost, or put back. */
function passedOnDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const of = (place: number) => ({ section: 'servers', place }) as const;
  const at = (what: OperatorAction): TimedAction => ({
    when: dice.pick(['at_once', 'at_rest', 'at_rest'] as const),
    what,
  });
  const name = dice.pick(['as_it_is', 'kept'] as const);
  const renamed = (place: number, to: number) => at({ do: 'rename', of: of(place), to, moved: true, name });
  const edited = at({
    do: 'change_fields',
    of: of(1),
    all: false,
    fields: dice.pick([{ cores: 3 }, { image: 'ubuntu-24.04', replace: 'allowed' }]),
  });
  const spec: SpecModel = {
    ...{ settings: { max_deletions: 10 }, networks: {}, isos: {}, ips: {} },
    servers: { web: size, ...(dice.happens(0.5) ? { db: { ...size, cores: 4 } } : {}) },
  };
  const first = [renamed(0, 0), ...(dice.happens(0.4) ? [renamed(0, 1)] : [])];
  const dropped = at({ do: 'drop_moved', place: 0 });
  const returned = [
    ...(dice.happens(0.7) ? [at({ do: 'return_entry', place: 0 })] : []),
    ...(dice.happens(0.5) ? [edited] : []),
  ];
  const lost = at(
    dice.happens(0.8) ? { do: 'lose_the_state' } : { do: 'put_state_back', changes: dice.between(1, 20) },
  );
  const later = [
    ...(dice.happens(0.4) ? [at({ do: 'remove', sort: 'server', place: dice.pick([0, 0, 1]) })] : []),
    ...(dice.happens(0.3) ? [at({ do: 'put_state_back', changes: dice.between(1, 40) })] : []),
  ];
  const pausesMs = [dice.pick([1_000, 60_000])];
  // In some stories no run sees the spec without `moved` before the state is lost.
  const middle: readonly TimedAction[] = dice.happens(0.7)
    ? [dropped, ...returned, lost]
    : [...returned, { ...dropped, when: 'at_rest' }, { ...lost, when: 'at_once' }];
  return {
    ...{ state: 'memory', readings: {}, specs: [spec], faults: [], incidents: [] },
    ...{ actions: [...first, ...middle, ...later], pausesMs },
  };
}

/** In the middle of a replacement the state is put back, or lost, and the entry is renamed. */
function renamedDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const address = dice.pick([{}, {}, {}, { public_ipv4: { new: true } }]);
  const settings = { prune: true, max_deletions: 10, unmanaged: dice.pick(['ask', 'ask', 'ignore']) };
  const spec: SpecModel = {
    ...{ settings, networks: {}, isos: {}, ips: {} },
    servers: { web: { ...size, ...address } },
  };
  return {
    ...{ state: 'memory', readings: {}, specs: [spec], faults: [], incidents: [] },
    actions: [
      { when: 'at_rest', what: replacedBy('ubuntu-24.04') },
      {
        when: {
          boundary: dice.pick(['write:after', 'write:after', 'closeIntent:after'] as const),
          nth: dice.pick([1, 1, 1, 2]),
        },
        what: dice.happens(0.15)
          ? { do: 'lose_the_state' }
          : { do: 'put_state_back', changes: dice.pick([2, 3, 3, 3, 4, 5]) },
      },
      ...(dice.happens(0.1) ? [{ when: 'at_once', what: replacedBy('debian-13') } as const] : []),
      { when: 'at_once', what: renamed(dice, 'servers') },
      ...(dice.happens(0.5)
        ? [{ when: 'at_rest', what: replacedBy(dice.pick(['ubuntu-24.04', 'almalinux-10'])) } as const]
        : []),
    ],
    pausesMs: [dice.pick([1_000, 60_000, 90 * 60_000])],
  };
}

/** The operator gives the resource of one entry to another entry of a new state, and edits the first entry. */
function givenAwayDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const sizes = dice.pick([{ cores: 3 }, { image: 'ubuntu-24.04' }, { public_ipv4: { new: true } }]);
  const of = (place: number) => ({ section: 'servers', place }) as const;
  const edited: OperatorAction = { do: 'change_fields', of: of(0), all: false, fields: sizes };
  const spec: SpecModel = {
    ...{ settings: { max_deletions: 10 }, networks: {}, isos: {}, ips: {} },
    servers: { web: size, www: size },
  };
  return {
    ...{ state: 'memory', readings: {}, specs: [spec], faults: [], incidents: [] },
    actions: [
      { when: 'at_rest', what: { do: 'lose_the_state' } },
      { when: 'at_once', what: { do: 'adopt', of: of(1), id: 'other' } },
      { when: dice.pick(['at_once', { boundary: 'closeIntent:after', nth: 1 }] as const), what: edited },
    ],
    pausesMs: [dice.pick([60_000, 90 * 60_000])],
  };
}

/** The state is lost before the creation shows, and the entry is renamed. */
function renamedInFlight(dice: Chance, section: EditedSection): readonly TimedAction[] {
  return [
    { when: { boundary: 'write:after', nth: 1 }, what: { do: 'lose_the_state' } },
    { when: 'at_once', what: renamed(dice, section) },
  ];
}

/** Everything is deleted, after a rename, after a loss of the state, or both. */
function destroyed(dice: Chance, section: EditedSection): readonly TimedAction[] {
  return [
    ...(dice.happens(0.5) ? [{ when: 'at_rest', what: renamed(dice, section) } as const] : []),
    ...(dice.happens(0.5) ? [{ when: 'at_rest', what: { do: 'lose_the_state' } } as const] : []),
    { when: 'at_rest', what: { do: 'destroy' } },
  ];
}

/** A new state finds the resource, and the entry leaves the spec or asks for a replacement. */
function foundAndLeft(dice: Chance, section: EditedSection): readonly TimedAction[] {
  const of = { section, place: 0 };
  const image = { image: 'ubuntu-24.04', replace: 'allowed' };
  const edit: OperatorAction =
    section === 'servers' && dice.happens(0.5)
      ? { do: 'change_fields', of, all: false, fields: image }
      : { do: 'remove_entry', of };
  return [
    { when: 'at_rest', what: { do: 'lose_the_state' } },
    { when: 'at_rest', what: edit },
  ];
}

function renamed(dice: Chance, section: EditedSection): OperatorAction {
  const name = dice.pick(['as_it_is', 'kept'] as const);
  return { do: 'rename', of: { section, place: 0 }, to: 0, moved: true, name };
}
