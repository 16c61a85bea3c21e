import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { memoryState } from '../../../src/state/memory.ts';
import { crashable } from '../../support/crashable.ts';
import { resolveOf } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { executed, gpu, head, hour, ips, server } from '../shop.ts';

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

  test('by a state that was lost, for an ISO whose name is taken: it is adopted', async () => {
    const played = rig();
    const spec = 'isos: {rescue: {url: "https://mirror.example.com/a.iso"}}\n';
    await played.apply(spec);
    played.restart(state());

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.world.projects[0]?.isos).toHaveLength(1);
  });

  test('by a state that was lost, whose fence is found by the second probe: the next attempt is asked too', async () => {
    const played = rig();
    const spec = ips('web');
    played.emulator.setFaults([faultRule({ method: 'POST', nth: 1 }, { do: 'reset', effect: 'none' })]);
    expect((await played.apply(spec)).outcome).toBe('converged');
    played.restart(state());
    // Four requests calibrate the new state. The probe after them is not carried out.
    played.emulator.setFaults([faultRule({ method: 'POST', nth: 5 }, { do: 'reset', effect: 'none' })]);

    expect((await played.apply(spec)).outcome).toBe('converged');
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

  test('by a state that was lost, and whose question ended too early: a day later, no operator is asked about it', async () => {
    const spec = 'networks: {a: {cidr: 10.1.0.0/24}}\n';
    let unsent = 0;
    for (let moment = 1, alive = false; !alive; moment++) {
      const played = rig();
      await played.apply(spec);
      const [death, fresh] = [crashable(), state()];
      played.restart(death.store(fresh));
      death.dieAt(moment, 'after');
      alive = await played.apply(spec).then(
        () => true,
        () => false,
      );
      const [open] = await fresh.openIntents();
      if (open?.sends !== 0) continue;
      unsent += 1;
      await played.clock.advance(25 * hour);
      played.restart(fresh);

      const report = await played.apply(spec);

      expect(
        report.blocked.map(({ code }) => code),
        `moment ${moment}`,
      ).not.toContain('key_too_old');
      expect(executed(played, 'network'), `moment ${moment}`).toBe(1);
    }
    expect(unsent).toBeGreaterThan(0);
  });

  test('by a state that was lost, and dead since: the next incarnation is made', async () => {
    const played = rig();
    const spec = ips('web');
    await played.apply(spec);
    const [address] = played.emulator.world.projects[0]?.ips ?? [];
    played.emulator.mutate({ do: 'delete_ip', id: address?.id ?? 0 });
    const fresh = state();
    played.restart(fresh);

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.billed()).toHaveLength(1);
    expect(executed(played, 'ip')).toBe(2);
    expect(await fresh.incarnation('ips.web' as never)).toBe(1);
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

    test('and which is gone since: the report ends after two reads an hour apart', async () => {
      const played = await unlisted();
      played.emulator.mutate({ do: 'delete_server', id: 2001 });

      await played.apply(head + rest);
      expect(await warnings(played)).toHaveLength(1);
      await played.clock.advance(hour);
      await played.apply(head + rest);

      expect(await warnings(played)).toEqual([]);
    });

    test('and which is gone since: it can be ignored at once', async () => {
      const played = await unlisted();
      played.emulator.mutate({ do: 'delete_server', id: 2001 });

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

  test('by a state that was lost, without a task to ask: it may come yet, so an operator is asked', async () => {
    const played = rig({ emulator: { readings: { omitTaskField: true, uniqueNetworkNames: false } } });
    played.emulator.setFaults([
      faultRule({ path: 'create_network', nth: 1 }, { do: 'task', outcome: 'stuck' }),
    ]);
    const spec = 'networks: {n: {cidr: 10.9.0.0/24}}\n';
    await played.apply(spec);
    played.restart(state());

    const report = await played.apply(spec);

    expect(report.blocked.map(({ key, code }) => [key, code])).toEqual([['networks.n', 'not_there']]);
    expect(resolveOf(report.blocked[0])).toContain('vdcsync resolve networks.n --absent');
    expect(executed(played, 'network')).toBe(1);
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
