import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { around, type Rig, rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

const warned = ({ warnings }: Plan) => warnings.map(({ code, key }) => `${code} ${key}`);

describe('src/engine/run/findings.ts: an exposed server', () => {
  const server = `${head}servers:\n  web:\n    {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop, rules: []}}\n`;

  test('is reported if its firewall is refused, with the exposed time once another run sets the firewall', async () => {
    const played = rig();
    played.fail(
      { path: 'replace_firewall', nth: 1, times: 9 },
      { do: 'answer', status: 403, code: 'insufficient_privileges' },
    );

    const first = await played.apply(server);

    expect(warned(first.plan)).toContain('exposed servers.web');
    played.emulator.setFaults([]);
    await played.clock.advance(600_000);
    played.restart();
    const second = await played.apply(server);
    const firewall = second.results.find(({ key }) => key === 'servers.web.firewall');
    expect(second.outcome).toBe('converged');
    expect(firewall?.exposedMs).toBeGreaterThan(600_000);
    expect(second.plan.warnings).toEqual([]);
  });

  test('is reported while the rename of its entry waits for the refused firewall', async () => {
    const played = rig();
    const refused = { do: 'answer', status: 422, code: 'invalid_params' } as const;
    played.fail({ path: 'replace_firewall' }, refused);
    await played.apply(server);
    const renamed = server.replace('  web:\n    {', '  www:\n    {moved: {from: servers.web}, ');

    const plan = await played.plan(renamed);

    expect(plan.blocked).toMatchObject([{ key: 'servers.www', code: 'moved_in_flight' }]);
    expect(warned(plan)).toContain('exposed servers.web');
  });

  test.each([
    ['409', { firewallWhileCreating: 409 } as const],
    ['a public network interface that comes with the end of the task', { publicCardAt: 'taskDone' } as const],
  ])('is reported by a run that is halted before the creation ends: %s', async (_name, readings) => {
    const played = rig({ emulator: { readings } });
    const report = await played.apply(server, { halt: played.signalAfter(1_000) });

    expect(report.outcome).toBe('stopped');
    expect(warned(report.plan)).toContain('exposed servers.web');
    played.restart();
    expect(warned(await played.plan(server))).toContain('exposed servers.web');
    expect((await played.apply(server)).outcome).toBe('converged');
    expect(firewallOf(played)).toMatchObject({ enabled: true, policyIn: 'drop' });
  });

  const card = 'networks: {n: {cidr: 10.1.0.0/24}}\n';
  const firewallOf = ({ project }: Rig) => project.servers[0]?.firewall;

  const whole =
    card + server.replace('firewall:', 'network_interfaces: [n], backup: {max_age: 24h}, firewall:');

  const serverTask = ({ project }: Rig) => project.tasks.find(({ kind }) => kind === 'create_server');

  type Call = { readonly method: string; readonly path: string };
  /** Stops a run once an answer passes the filter. */
  function stoppedAt(isIt: (call: Call, rig: Rig) => boolean, ms = 0) {
    const stop = new AbortController();
    const at = { monotonic: 0 };
    const played: Rig = rig({
      emulator: { readings: { firewallWhileCreating: 409 } },
      wrap: around(async ({ method, url }, send) => {
        const answer = await send();
        if (!isIt({ method, path: new URL(url).pathname.slice('/v1'.length) }, played)) return answer;
        void played.clock.sleep(ms).then(() => {
          at.monotonic = played.clock.monotonic();
          stop.abort(new Error('stopped'));
        });
        return answer;
      }),
    });
    return { played, stop: stop.signal, at };
  }

  test.each([
    0, 1_000, 20_000,
  ])('a stop %i ms after its acceptance ends the run, and names the task and the missing firewall', async (ms) => {
    const isCreation = ({ method, path }: Call) => method === 'POST' && path === '/servers';
    const { played, stop, at } = stoppedAt(isCreation, ms);

    const report = await played.apply(whole, { stop });

    expect(report.outcome).toBe('stopped');
    expect(played.clock.monotonic() - at.monotonic).toBeLessThan(1_000);
    expect(report.results).toContainEqual(
      expect.objectContaining({ key: 'servers.web', outcome: 'unresolved', taskId: serverTask(played)?.id }),
    );
    expect(warned(report.plan)).toContain('exposed servers.web');
    played.restart();
    expect((await played.apply(whole)).outcome).toBe('converged');
    expect(played.writes().filter(({ path }) => path === '/servers')).toHaveLength(1);
  });

  const hasEnded = (played: Rig) => serverTask(played)?.done === true;
  const isPoll = (path: string, played: Rig) => path === `/tasks/${serverTask(played)?.id}`;
  test.each([
    ['the end of its task is read', ({ path }: Call, of: Rig) => isPoll(path, of) && hasEnded(of)],
    ['its firewall is answered', ({ path }: Call, of: Rig) => path.endsWith('/firewall') && hasEnded(of)],
  ])('a stop when %s sets the firewall, and sends nothing else', async (_when, isIt) => {
    const { played, stop, at } = stoppedAt(isIt);

    const report = await played.apply(whole, { stop });

    expect(report.outcome).toBe('stopped');
    expect(firewallOf(played)).toMatchObject({ enabled: true, policyIn: 'drop' });
    expect(warned(report.plan)).not.toContain('exposed servers.web');
    const later = played.writes().filter((each) => each.at > at.monotonic);
    expect(later.filter((each) => each.path !== '/servers/2001/firewall')).toEqual([]);
  });

  test('a firewall that meets conflicts is waited for no longer than a minute after the stop', async () => {
    const played = rig();
    played.fail({ path: 'replace_firewall', nth: 1, times: 999 }, { do: 'answer', status: 409, code: 'odd' });
    const report = await played.apply(server, { stop: played.signalAfter(120_000) });

    expect(report.outcome).toBe('stopped');
    expect(played.clock.monotonic()).toBeGreaterThan(170_000);
    expect(played.clock.monotonic()).toBeLessThan(190_000);
    expect(played.clock.sleeping).toBe(0);
    expect(warned(report.plan)).toContain('exposed servers.web');
  });

  test('a disabled firewall is not waited for, and its server is not reported as exposed', async () => {
    const played = rig();
    const report = await played.apply(server.replace('enabled: true', 'enabled: false'), {
      stop: played.signalAfter(1_000),
    });

    expect(report.outcome).toBe('stopped');
    expect(played.writes()).toHaveLength(1);
    expect(warned(report.plan)).not.toContain('exposed servers.web');
  });
});
