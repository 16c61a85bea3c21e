import type { Chance } from '../../src/simulation/chance.ts';
import type { Fields } from '../../src/simulation/spec-file.ts';
import type { SpecModel, Story } from '../../src/simulation/story.ts';
import type { OperatorAction, TimedAction } from './actions/operator-action.ts';
import { generateReadings } from './generator.ts';

export const size = { server_type: 'sliders-1', cores: 2, memory_mb: 4096, disk_gb: 40, image: 'debian-13' };

/** The first server is replaced because of its image. */
export function replacedBy(image: string): OperatorAction {
  return {
    ...{ do: 'change_fields', of: { section: 'servers', place: 0 }, all: false },
    fields: { image, replace: 'allowed' },
  };
}

/**
 * A server, perhaps replaced before, gets another key, and a new entry gets its own. Then the renamed server goes, or the
 * state is lost, before or after a run has seen the edits.
 */
export function leftBehindDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const of = (place: number) => ({ section: 'servers', place }) as const;
  const when = dice.pick(['at_once', 'at_rest', 'at_rest'] as const);
  const at = (what: OperatorAction): TimedAction => ({ when, what });
  const edited = (place: number, fields: Fields): TimedAction => ({
    when: dice.pick(['at_once', 'at_rest'] as const),
    what: { do: 'change_fields', of: of(place), all: false, fields },
  });
  const replaced: TimedAction = {
    ...edited(0, { image: 'ubuntu-24.04', replace: 'allowed' }),
    when: 'at_rest',
  };
  const lost: OperatorAction = dice.happens(0.6)
    ? { do: 'lose_the_state' }
    : { do: 'put_state_back', changes: dice.between(4, 40) };
  const gone: OperatorAction = dice.happens(0.7)
    ? { do: 'remove_entry', of: of(dice.between(0, 1)) }
    : { do: 'remove', sort: 'server', place: dice.between(0, 1) };
  const readings = dice.happens(0.4) ? generateReadings(dice.fork(), true) : {};
  const renamed: readonly TimedAction[] = [
    ...(dice.happens(0.4) ? [replaced] : []),
    {
      when: 'at_rest',
      what: { do: 'rename', of: of(0), to: 0, moved: true, name: dice.pick(['as_it_is', 'kept']) },
    },
    at({ do: 'drop_moved', place: 0 }),
  ];
  const returned: readonly TimedAction[] = [
    at({ do: 'return_entry', place: 0 }),
    ...(dice.happens(0.5) ? [edited(dice.between(0, 1), { cores: 3 })] : []),
    ...(dice.happens(0.5) ? [{ when: 'at_rest', what: gone } as const] : []),
    { when: dice.pick(['at_once', 'at_rest'] as const), what: lost },
    ...(dice.happens(0.3) ? [edited(dice.between(0, 1), { image: 'almalinux-10', replace: 'allowed' })] : []),
  ];
  const pausesMs = [dice.pick([1_000, 60_000, 90 * 60_000])];
  // The API forgets the first keys before the entry returns. Only the entry leads to the last key, which a copy of the
  // state does not ask.
  const isForgotten = !dice.happens(0.8);
  const forgotten: readonly TimedAction[] = [
    ...[...renamed, { when: 'at_rest', what: { do: 'wait', ms: 25 * 3_600_000 } } as const],
    ...returned.filter(({ what }) => what !== gone && what !== lost),
    { when: 'at_rest', what: { do: 'lose_the_state' } },
  ];
  const networks = isForgotten ? { lan: { cidr: '10.20.0.0/24' } } : {};
  const spec: SpecModel = {
    ...{ settings: { prune: true, max_deletions: 10 }, networks, isos: {}, ips: {} },
    servers: { web: size },
  };
  return {
    ...{ state: 'memory', specs: [spec], faults: [], incidents: [], readings, pausesMs },
    actions: isForgotten ? forgotten : [...renamed, ...returned],
  };
}

/** A new state finds what an earlier one has replaced. Its resource goes, and then a copy of the new state comes back. */
export function twiceLostDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const of = { section: 'servers', place: 0 } as const;
  const renamed: readonly OperatorAction[] = [
    { do: 'rename', of, to: 0, moved: true, name: dice.pick(['as_it_is', 'kept']) },
    { do: 'drop_moved', place: 0 },
  ];
  const actions: readonly OperatorAction[] = [
    ...(dice.happens(0.5) ? renamed : []),
    replacedBy('ubuntu-24.04'),
    { do: 'lose_the_state' },
    dice.pick([replacedBy('almalinux-10'), { do: 'remove', sort: 'server', place: 0 }]),
    { do: 'put_state_back', changes: dice.between(4, 24) },
  ];
  const spec: SpecModel = {
    ...{ settings: { max_deletions: 10 }, networks: {}, isos: {}, ips: {} },
    servers: { web: size },
  };
  return {
    ...{ state: 'memory', readings: {}, specs: [spec], faults: [], incidents: [] },
    actions: actions.map((what) => ({ when: 'at_rest', what })),
    pausesMs: [dice.pick([1_000, 60_000])],
  };
}

/** A server is replaced, the old one first, while something else could be taken for the new one. */
export function secondHalfDrillOf(dice: Chance): Omit<Story, 'seed'> {
  const of = (place: number) => ({ section: 'servers', place }) as const;
  const atRest = (what: OperatorAction): TimedAction => ({ when: 'at_rest', what });
  const other = { ...size, cores: 4 };
  const image = { image: 'ubuntu-24.04', replace: { order: 'delete_first' } };
  const before: readonly OperatorAction[] = dice.pick([
    [{ do: 'rename', of: of(0), to: 0, moved: true, name: 'as_it_is' }],
    [{ do: 'lose_the_state' }, { do: 'answer' }],
    [{ do: 'rename', of: of(1), to: 0, moved: true, name: 'kept' }, { do: 'lose_the_state' }],
  ]);
  const left: OperatorAction = { do: 'remove_entry', of: of(dice.between(0, 1)) };
  const spec: SpecModel = {
    ...{ settings: { max_deletions: 10 }, networks: {}, isos: {}, ips: {} },
    servers: { web: { ...size, replace: 'allowed' }, db: { ...other, replace: 'allowed' } },
  };
  return {
    ...{ state: 'memory', specs: [spec], faults: [], incidents: [], readings: {} },
    actions: [
      ...[...before, ...(dice.happens(0.7) ? [left] : [])].map(atRest),
      atRest({ do: 'change_fields', of: of(dice.between(0, 1)), all: false, fields: image }),
      ...(dice.happens(0.3) ? [{ when: 'at_once', what: { do: 'lose_the_state' } } as const] : []),
    ],
    pausesMs: [dice.pick([1_000, 60_000])],
  };
}
