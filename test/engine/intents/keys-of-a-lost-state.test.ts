import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { crashable } from '../../support/crashable.ts';
import { resolveOf } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { executed, gpu, head, ips, server } from '../shop.ts';

describe('src/engine/run/recover.ts: keys used before', () => {
  const state = () => memoryState({ createdAt: virtualClock().now(), lineage: 'another' });

  test('by a state that was lost: what is alive is adopted, not bought again', async () => {
    const played = rig();
    const spec = ips('web');
    await played.apply(spec);
    played.restart(state());

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.billed()).toHaveLength(1);
  });

  test('by a state that was lost at whatever moment of a creation that takes nine minutes: bought once', async () => {
    const spec = 'isos: {rescue: {url: "https://mirror.example.com/a.iso"}}\n';
    for (let moment = 1, alive = false; !alive; moment++) {
      const death = crashable();
      const played = rig({ store: death.store(state()), emulator: { readings: { isoAt: 'taskDone' } } });
      played.emulator.mutate({ do: 'add_ip' });
      played.emulator.setFaults([faultRule({ path: 'add_iso', nth: 1 }, { do: 'task', ms: 540_000 })]);
      death.dieAt(moment, 'after');
      alive = await played.apply(spec).then(
        () => true,
        () => false,
      );
      played.restart(state());

      const report = await played.apply(spec);
      expect(report.outcome, `moment ${moment}`).toBe('converged');
      expect(executed(played, 'iso'), `moment ${moment}`).toBe(1);
    }
  });

  test('by a state that was lost, where reads of the resource meet the token of another project: the next run adopts it', async () => {
    const projects = [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ];
    const spec = ips('web');
    /** After the last probe, the token is asked for so often. From each of these times, it is the other project's for one read. */
    async function recovery(foreign: readonly number[]) {
      let asked = Number.NEGATIVE_INFINITY;
      const played: Rig = rig({
        emulator: { projects },
        token: () => {
          if (asked > 0 || played.sent.at(-1)?.method === 'POST') asked += 1;
          const project = foreign.some((each) => asked >= each && asked < each + 4) ? 4712 : 4711;
          return played.emulator.tokens(project).readWrite;
        },
      });
      await played.apply(spec);
      played.restart(state());
      asked = 0;
      await played.apply(spec).catch((error: Error) => expect(error.name).toBe('FenceError'));
      const met = played.emulator.requests.filter(({ project }) => project === 4712);
      const times = asked;
      asked = Number.NEGATIVE_INFINITY;
      return { played, times, met: met.map(({ url }) => new URL(url).pathname).join() };
    }
    const { times } = await recovery([]);
    let looks = 0;
    for (let one = 20; one < times; one++) {
      if ((await recovery([one])).met !== '/v1/ips/5001') continue;
      looks += 1;
      for (let other = one + 4; other < one + 12; other++) {
        const { played } = await recovery([one, other]);
        expect((await played.apply(spec)).outcome, `${one}, ${other}`).toBe('converged');
        expect(executed(played, 'ip')).toBe(1);
      }
    }
    expect(looks).toBeGreaterThan(0);
  });

  describe('for a server without an address, which no list shows', () => {
    const rest = ips('one').slice(head.length);
    /** The server was found under its key, and its entry left the spec before the adoption was approved. */
    async function unlisted(): Promise<Rig> {
      const played = rig();
      await played.apply(gpu + rest);
      played.restart(state());
      await played.apply(gpu + rest, { approve: async () => false });
      return played;
    }
    const warnings = async (played: Rig) =>
      (await played.plan(head + rest)).warnings.filter(({ code }) => code === 'unmanaged_resources');

    test('and whose entry has left the spec: it is reported as unmanaged until it is ignored', async () => {
      const played = await unlisted();

      const report = await played.apply(head + rest);
      expect(report.outcome).toBe('converged');
      expect(report.plan.warnings).toMatchObject([
        { code: 'unmanaged_resources', message: expect.stringContaining('server 2001') },
      ]);

      await played.clock.run(played.engine.ignore(load(head + rest), ['2001']));
      expect(await warnings(played)).toEqual([]);
    });
  });

  test('by a state that was lost, with another body: blocked, and nothing is bought beside it', async () => {
    const played = rig();
    await played.apply(server().replace('exclusive: true', 'unmanaged: ignore'));
    played.restart(state());

    const report = await played.apply(
      server().replace('exclusive: true', 'unmanaged: ignore').replace('cores: 1', 'cores: 2'),
    );

    expect(report.outcome).toBe('blocked');
    expect(executed(played, 'server')).toBe(1);
    expect(resolveOf(report.blocked[0])).toContain('vdcsync resolve servers.web --adopt');
  });

  test.each([
    'servers',
    'ips',
  ])('four cycles of apply, destroy and a new state leave nothing to decide (%s)', async (map) => {
    const played = rig();
    const spec = map === 'ips' ? ips('web') : server();
    for (let cycle = 1; cycle <= 5; cycle++) {
      played.restart(state());
      const report = await played.apply(spec);
      expect(report.blocked).toEqual([]);
      expect(report.outcome).toBe('converged');
      expect(executed(played, map === 'ips' ? 'ip' : 'server')).toBe(cycle);
      expect((await played.apply(spec, { destroy: true })).outcome).toBe('converged');
    }
    expect(played.emulator.billed()).toEqual([]);
  });
});
