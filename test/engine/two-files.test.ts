import { describe, expect, test } from 'vitest';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { resolveOf } from '../support/resolve.ts';
import { load, type Rig, rig } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { executed } from './shop.ts';

const settings = (more: string) =>
  `settings: {exclusive: true, prune: true, max_deletions: 10${more === '' ? '' : `, ${more}`}}\n`;
const slider = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const sorts = {
  'a server with an address': `servers: {web: {${slider}, public_ipv4: {new: true}}}\n`,
  'an address': 'ips: {web: {server_type_id: 3}}\n',
  'a server without an address': `servers: {web: {${slider}}}\n`,
  'a server with an address of the spec': `ips: {web: {}}\nservers: {web: {${slider}, public_ipv4: {ip: web}}}\n`,
};
const scoped = (spec: string) => `version: 1\nproject: {id: 4711, scope: b}\n${spec}`;

/** Two files of one project, each with a state of its own, on one emulator. */
async function twoFiles(spec: string) {
  const played = rig();
  await played.apply(settings('') + spec);
  const states = { a: played.store, b: memoryState({ createdAt: virtualClock().now(), lineage: 'b' }) };
  return {
    played,
    as(file: 'a' | 'b') {
      played.restart(states[file]);
      return played;
    },
    bound: async (file: 'a' | 'b') => (await states[file].bindings()).map(({ kind, id }) => `${kind} ${id}`),
    there: () => everythingIn(played),
  };
}

function everythingIn({ emulator }: Rig): string[] {
  const { servers = [], ips = [] } = emulator.world.projects[0] ?? {};
  return [...servers.map(({ id }) => `server ${id}`), ...ips.map(({ id }) => `ip ${id}`)].sort();
}

async function ignoreAll(played: Rig, spec: string) {
  const { servers = [], ips = [] } = played.emulator.world.projects[0] ?? {};
  const free = ips.filter((each) => each.serverId === null).map(({ address }) => address);
  await played.engine.ignore(load(spec), [...servers.map(({ id }) => String(id)), ...free]);
}

describe('src/engine: two files of one project with the same keys', () => {
  describe.each(Object.entries(sorts))('%s', (_name, spec) => {
    test.each([
      'unmanaged: ignore',
      '',
    ])('the resources of the other file are never bound or deleted (%s)', async (more) => {
      const { as, bound, there, played } = await twoFiles(spec);
      const theirs = there();
      const b = as('b');
      if (more === '') await ignoreAll(b, settings(more) + spec);

      const report = await b.apply(settings(more) + spec);

      expect(report.outcome).toBe('blocked');
      expect(report.blocked.map(({ code }) => code)).toContain('key_conflict');
      expect(resolveOf(report.blocked.find(({ code }) => code === 'key_conflict'))).toContain(
        '`scope` under `project`',
      );
      expect(await bound('b')).toEqual([]);
      expect((await b.plan(settings(more) + spec)).blocked.map(({ code }) => code)).toContain('key_conflict');
      await b.apply(settings(more));
      expect(there()).toEqual(theirs);
      expect(executed(played, 'server') + executed(played, 'ip')).toBeGreaterThan(0);
    });

    test('an answer that `unmanaged: ignore` ignores prevents a purchase even after the API has forgotten it', async () => {
      const { as, bound, there } = await twoFiles(spec);
      const theirs = there();
      const b = as('b');
      const file = settings('unmanaged: ignore') + spec;
      await b.apply(file);
      await b.clock.run(b.clock.sleep(25 * 3_600_000));

      const report = await b.apply(file);

      expect(report.blocked.map(({ code }) => code)).toContain('key_conflict');
      expect(await bound('b')).toEqual([]);
      expect(there()).toEqual(theirs);
    });

    test('a scope that is set later gives the spec resources of its own', async () => {
      const { as, bound, there } = await twoFiles(spec);
      const theirs = there();
      const b = as('b');
      await b.apply(settings('unmanaged: ignore') + spec);

      const report = await b.apply(scoped(settings('unmanaged: ignore') + spec));

      expect(report.outcome).toBe('converged');
      expect((await bound('b')).filter((each) => theirs.includes(each))).toEqual([]);
      expect(there().length).toBe(2 * theirs.length);
    });
  });
});

describe('src/engine/run/plan.ts: `project.scope` changes', () => {
  test('the plan says that the keys of young servers belong to the earlier scope, for a day', async () => {
    const played = rig();
    const file = (scope: string) =>
      `version: 1\nproject: {id: 4711, scope: ${scope}}\nservers: {web: {${slider}}}\n`;
    const warned = async (scope: string) =>
      (await played.plan(file(scope))).warnings.map(({ code, message }) => `${code} ${message}`);
    await played.apply(file('blue'));

    expect(await warned('blue')).toEqual([]);
    expect(await warned('green')).toEqual([
      expect.stringMatching(/^scope_changed .* of servers\.web belong to the earlier scope/),
    ]);
    await played.clock.advance(24 * 3_600_000);
    expect(await warned('green')).toEqual([]);
  });
});
