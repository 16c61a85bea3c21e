import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { SpecModel, Story } from '../../src/simulation/story.ts';
import { drawn, playsAll, seed, share, some } from '../support/drawn.ts';
import { generateActionStory } from './action-stories.ts';
import type { TimedAction } from './actions/operator-action.ts';
import { askedByCode } from './asked-by-code.ts';
import { createCoverage, missingCoverage } from './coverage.ts';
import { replacements } from './exhaustive.ts';
import { generateStory } from './generator.ts';
import { operationsWith, writes } from './operations.ts';
import { patched, sourceOf } from './plant.ts';
import { plantedBugs } from './planted.ts';
import { play } from './play.ts';
import { playAll, seedJobs } from './pool.ts';
import { shrink } from './shrink.ts';
import { slowDrillCount } from './slow-drills.ts';
import { subjects } from './subjects.ts';
import { tokenDrillCount, tokenDrillOf } from './token-drills.ts';
import { type Failure, type Job, storyOf } from './worker.ts';

/**
 * Each once found a bug. These and the seeds with actions reach every line of `src` and every situation of `coverage.ts`
 * that all such seeds reach. `npm run simulate -- --seed N --verbose` tells the story.
 */
const pinned = [
  3, 69, 79, 102, 125, 162, 268, 439, 1723, 2000953, 2001835, 4000847, 50001827, 50000559, 2001257, 700000455,
  830001207, 1200003207, 1200005586, 1200008889, 1300000941, 1300006007, 1400000180, 1400001397, 1500003519,
  1600001221, 1600003047, 1700000071, 1800009824, 1800013339, 1900004887, 1900007965, 1900008147, 2100002661,
  2100004004, 2200010129, 2200010751, 2500005462, 121001929, 271828388, 520000627, 860000037, 900137, 6735,
  1111003077, 1111010483, 1111012431, 1300007627, 1300007673, 1400013573, 238559415, 1500003855, 1500016940,
  3100012249, 3400008335, 3400017619, 3500007617, 3500019929, 3700009839, 296, 151007030, 5163, 2188, 3657,
  52000408, 52001493, 52002809, 60000133, 30000093, 30002553, 30004511, 30005165, 32007615,
];

async function failuresOf(jobs: Iterator<Job>): Promise<readonly string[]> {
  const failures: Failure[] = [];
  await playAll(jobs, (done) => {
    failures.push(...done.failures);
    return 'go on';
  });
  return failures.map(({ name, rule, message }) => `${name}: ${rule} ${message}`);
}

describe('src/simulation', () => {
  test('stories break no rule', async () => {
    expect(await failuresOf(seedJobs(seed, 100))).toEqual([]);
  });

  test('stories with edits, commands and lost states break no rule', async () => {
    expect(await failuresOf(seedJobs(seed, 60, 'actions'))).toEqual([]);
  });

  test('several tokens share the work without breaking a rule while one is revoked, throttled, read-only or wrong', async () => {
    const failures: string[] = [];
    for (const number of some(Array.from({ length: tokenDrillCount }, (_, at) => at))) {
      const { violation } = await play({ seed: 2 * number, ...tokenDrillOf(number) });
      if (violation !== undefined) failures.push(`${number}: ${violation.rule} ${violation.message}`);
    }
    expect(failures).toEqual([]);
  });

  test('a suspended and replaced process buys nothing twice and sends nothing new', async () => {
    const failures: string[] = [];
    let at = 0;
    const every = playsAll ? 24 : 60;
    for await (const { name, story } of replacements('ip')) {
      at += 1;
      // All of them, and those of the other kinds: `npm run simulate -- --replaced`.
      if (at % every !== 0) continue;
      const { violation } = await play(story);
      if (violation !== undefined) failures.push(`${name}: ${violation.rule} ${violation.message}`);
    }
    expect(at).toBeGreaterThan(1_000);
    expect(failures).toEqual([]);
  });

  test.each(drawn(pinned))('seed %i breaks no rule', async (number) => {
    const { violation } = await play(generateStory(number));

    expect(violation).toBeUndefined();
  });

  test.each([
    193, 10568, 200206, 5100531, 5102425, 5500063, 7003466, 7004498, 7200183, 7400466, 7406759, 7407440,
    7600517, 7600915, 7700674, 7700684, 7703664, 7711238, 8104991, 8301466, 8303833, 8502555, 9906415,
    9910506, 9877353, 9800769, 9817631, 9821451, 9808659, 9808083, 9207479, 9306051, 8606108, 8606152,
    8705908, 8605896, 8702862, 8809735, 9931388, 9934983, 9931941, 10012908, 10013863, 10015094, 10015541,
    10416860, 10502190, 10600975, 10601959, 10606710, 10700375, 10707186, 10712762, 10717080, 10813764,
    10812353, 10911465, 11015263, 14002866, 15002400, 16004279, 17015231, 18001489, 13000758, 19012187,
    20011194, 20009943, 21003242, 21007972, 20008648, 22014975, 23017329, 24012434, 25015486, 32005101,
    36005762, 40004804, 42004665, 46006341, 46007534, 46008805, 70003148, 70006760, 70009527, 80008519,
    80017612, 90003434, 90004044, 90016146, 97000844, 170002105, 230000401, 260002748, 260007207, 260008862,
    300008453, 410002178, 410002465, 420001052, 430002720, 500003075, 510009204, 510018767, 520013819,
    520009427, 520016417, 545001066, 547001429, 547003939, 547008546, 547009720, 553015868, 570007104,
    570009784, 570010367,
  ])('seed %i with actions breaks no rule', async (number) => {
    const { violation } = await play(generateActionStory(number));

    expect(violation).toBeUndefined();
  });

  test.each([
    128, 572, 621, 660, 854, 1350, 1797, 4701, 5033, 5067, 5590, 7071, 7315, 900575, 50001805, 60000732,
    3001682, 60002108, 60002649, 60003375, 60004831, 60005778, 61005196, 61006536, 901112, 901493, 4003235,
    5001854, 7000982, 5004493, 6004722, 9006625, 11000161, 11000805, 11004698, 5992, 12000215, 13003046,
    15006858, 16001267, 16006852, 4002240, 18000296, 19006826, 19006638, 20003448, 20009020, 23000757,
    23003190,
  ])('drill %i breaks no rule', async (number) => {
    const { violation } = await play(storyOf('drills', number));

    expect(violation).toBeUndefined();
  });

  test('adopts the address of a found server after the server, also before the creation has ended', async () => {
    const size = { server_type: 'sliders-1', cores: 2, memory_mb: 4096, disk_gb: 40, image: 'debian-13' };
    const web = { ...size, public_ipv4: { new: true }, keep_ip: true };
    const story: Story = {
      ...{ seed: 1, state: 'memory', readings: {}, incidents: [], pausesMs: [180_000, 5_400_000, 180_000] },
      specs: [{ settings: { prune: true }, networks: {}, ips: {}, isos: {}, servers: { web } }],
      faults: [faultRule({ method: 'POST', nth: 1, times: 1 }, { do: 'task', outcome: 'stuck' })],
      actions: [
        { when: 'at_rest', what: { do: 'lose_the_state' } },
        {
          when: 'at_rest',
          what: { do: 'rename', of: { section: 'servers', place: 0 }, to: 0, moved: true, name: 'as_it_is' },
        },
      ],
    };

    expect((await play(story)).violation).toBeUndefined();
  });

  test('the same seed gives a byte-identical trace', async () => {
    for (const number of [11, 12, 13, 14]) {
      const [one, other] = [await play(generateStory(number)), await play(generateStory(number))];

      expect(one.trace.join('\n')).toBe(other.trace.join('\n'));
    }
  });

  test('the first slow drills cover each creation with a late original, a crashed probe and a rerun', () => {
    const stories = Array.from({ length: slowDrillCount }, (_, at) => generateStory(1 + 16 * at));
    const creations = operationsWith(({ creates }) => creates).map((name) => writes[name]);
    const missing = creations.flatMap(({ name, path }) => {
      const isLate = ({ faults }: Story) =>
        faults.some(({ when, then }) => when.path === name && then.do === 'late' && then.holdsKey === false);
      const strikes = (boundaries: readonly string[], what: string) => (story: Story) =>
        story.incidents.some(
          ({ at, what: { do: does } }) => boundaries.includes(at.boundary) && does === what,
        );
      return [
        isLate,
        strikes([`probe ${path}:before`, `probe ${path}:after`], 'crash'),
        strikes([`${path}:after`], 'lose_state'),
      ].flatMap((holds, at) => (stories.some(holds) ? [] : [`${name} ${at}`]));
    });

    expect(missing).toEqual([]);
  });

  test('stories include plans that wait for approval, some edited after approval, and all finish', async () => {
    const stories = Array.from({ length: share(600) }, (_, at) => generateStory(at + 1)).filter(({ specs }) =>
      specs.every(({ settings }) => settings.approval === 'plan'),
    );
    expect(
      stories.filter(({ editedOnceApproved, specs }) => editedOnceApproved && specs.length > 1),
    ).not.toEqual([]);
    const coverage = createCoverage();
    for (const story of stories) expect((await play(story, coverage)).violation).toBeUndefined();
    expect(coverage.hits.get('count plans approved')).toBeGreaterThan(stories.length / 2);
  });

  test('stories include every reading and slow tasks', () => {
    const stories = Array.from({ length: 2400 }, (_, at) => generateStory(at + 1));
    const coverage = createCoverage();
    for (const { readings } of stories) coverage.readings(readings);

    expect(missingCoverage(coverage).filter((name) => name.startsWith('reading '))).toEqual([]);
    expect(stories.filter(({ durations }) => durations !== undefined).length).toBeGreaterThan(300);
  });

  test('a run that probes the keys of a lost state is never compared with a dry run, also after an approval', async () => {
    const settings = { prune: true, approval: 'plan' };
    const isos = { rescue: { url: 'https://mirror.example.com/a.iso' } };
    const size = { server_type: 'sliders-1', cores: 2, memory_mb: 4096, disk_gb: 40, image: 'debian-13' };
    const specs = [{ settings, networks: {}, ips: {}, isos, servers: { web: size } }];
    const story: Story = {
      ...{ seed: 1, state: 'memory', readings: {}, specs, faults: [], incidents: [], shown: true },
      ...{ pausesMs: [60_000], cut: { back: 32, afterMs: 60_000 } },
    };
    const coverage = createCoverage();

    const { violation, trace } = await play(story, coverage);

    expect(violation).toBeUndefined();
    expect(trace.join('\n')).toMatch(/put back.*plan adopt:.*\$ vdcsync approve/s);
  });

  test('counts each question to an operator once, by code and kind', async () => {
    const coverage = createCoverage();
    const refused = faultRule({ path: 'allocate_ip' }, { do: 'answer', status: 422 });
    const specs = [{ ...(subjects.ip?.[0] as SpecModel), ips: { one: {}, two: {} } }];

    const story: Story = {
      ...{ seed: 2, state: 'memory', readings: {}, specs },
      ...{ faults: [refused], incidents: [], pausesMs: [60_000] },
    };

    const { questions } = await play(story, coverage);

    expect(questions.map(({ code, key }) => [code, key])).toEqual([
      [questions[0]?.code, 'ips.one'],
      [questions[0]?.code, 'ips.two'],
    ]);
    expect(askedByCode(coverage)).toEqual([
      { code: questions[0]?.code, questions: 2, stories: 1, kinds: [['ip', 2]] },
    ]);
  });

  test('shrinking a failing story keeps only the necessary parts', async () => {
    const story = generateStory(5);

    const least = await shrink(story, async ({ specs }) => Object.keys(specs[0]?.networks ?? {}).length > 0);

    expect({ faults: least.faults, incidents: least.incidents, readings: least.readings }).toEqual({
      faults: [],
      incidents: [],
      readings: {},
    });
  });

  test('shrinking a failing story keeps only the necessary action', async () => {
    const story = generateActionStory(133);

    const doneIn = ({ actions = [] }: Story) => (actions as TimedAction[]).map(({ what }) => what.do);

    const least = await shrink(story, async (each) => doneIn(each).includes('adopt'));

    expect(doneIn(story).length).toBeGreaterThan(1);
    expect(doneIn(least)).toEqual(['adopt']);
  });

  test('counts each reading and row that a story covers', async () => {
    const coverage = createCoverage();

    await play(generateStory(2), coverage);

    expect([...coverage.hits.keys()].some((name) => name.startsWith('row '))).toBe(true);
  });
});

describe('src/simulation: planted bugs', () => {
  test('has at least thirty planted bugs', () => {
    expect(plantedBugs.length).toBeGreaterThanOrEqual(30);
  });

  test.each(plantedBugs)('$name: the patch applies to the source', (bug) => {
    expect(patched(bug, sourceOf(bug))).not.toBe(sourceOf(bug));
  });
});
