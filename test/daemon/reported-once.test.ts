import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { folderWith, inProcess, oneNetwork, shop } from '../cli/run.ts';
import { emulate, type RunningDaemon, startConverged, startDaemon } from './support.ts';

const lines = (daemon: RunningDaemon, message: string) => daemon.log().filter(({ msg }) => msg === message);

const oneAddress = 'version: 1\nproject: { id: 4711 }\nips:\n  web: {}\n';

describe('src/daemon/notifications: reports to the operator', () => {
  test('counts an unmanaged server as billed, and notifies once', async () => {
    const { api, daemon } = await startConverged(oneAddress);
    api.emulator.mutate({ do: 'add_server', name: 'other', public: true });
    daemon.child.kill('SIGHUP');
    const counted = async () => /^vdcsync_unmanaged_servers\{.*\} (\d+)$/m.exec(await daemon.metrics())?.[1];
    await expect.poll(counted).toBe('1');
    daemon.child.kill('SIGHUP');
    await daemon.reconciled(1);
    const [id] = api.emulator.world.projects[0]?.servers.map((each) => each.id) ?? [];

    const unmanaged = daemon.notified.filter(({ event }) => event === 'unmanaged');
    expect(unmanaged).toEqual([expect.objectContaining({ detail: expect.stringContaining(`server ${id}`) })]);
    const env = { VDC_BASE_URL: api.baseUrl, VDC_TOKEN: api.projects[0]?.tokens.read ?? '' };
    const flags = ['--format', 'json', '--api-profile', 'profile.yaml'];
    const { stdout } = await inProcess(['status', ...flags], { cwd: daemon.folder, env });
    expect(JSON.parse(stdout).billed).toContainEqual(
      expect.objectContaining({ what: `server ${id}`, key: null }),
    );
  });

  test('a reported command of one of many projects works for that project in any folder', async () => {
    const lost = faultRule(
      { method: 'POST', path: '/ips', times: 1 },
      { do: 'reset', effect: 'done', stored: false },
    );
    const api = await emulate({ faults: [lost] });
    const folder = folderWith({ 'specs/shop.yaml': oneAddress });
    const daemon = await startDaemon(api, { folder, args: ['-f', 'specs'] });
    const { blocked } = await daemon.until(({ condition }) => condition === 'blocked');
    const [command = ''] = blocked[0]?.resolve.split(' (') ?? [];
    expect(command).toContain('resolve');
    expect(String(lines(daemon, 'manual decision needed')[0]?.resolve)).toContain(command);

    const { code } = await inProcess(command.split(' ').slice(1), { cwd: folderWith() });
    expect(code).toBe(0);
    await daemon.until(({ converged }) => converged);
  });

  test('a deleted file makes the daemon not ready, and leaves the last valid spec in force', async () => {
    const { daemon } = await startConverged(oneNetwork);
    expect(await daemon.ready()).toBe(true);

    rmSync(join(daemon.folder, 'vdcsync.yaml'));
    const project = await daemon.until((_, { source }) => source.error !== null);
    expect((await daemon.status()).source.error).toBe('vdcsync.yaml: the file does not exist');
    expect(project).toMatchObject({ converged: true, spec: { broken: [] } });
    expect(await daemon.ready()).toBe(false);
    expect(await daemon.metrics()).toContain('vdcsync_source_up 0\n');
    expect(lines(daemon, 'source read failed')).toHaveLength(1);

    daemon.write(oneNetwork);
    await daemon.until((_, { source }) => source.error === null);
    expect(await daemon.ready()).toBe(true);
    expect(lines(daemon, 'source readable again')).toHaveLength(1);
    const sources = () => daemon.notified.filter(({ event }) => event === 'source');
    await expect.poll(sources).toMatchObject([{ project: 4711 }, { project: 4711 }]);
  });

  test('reports a spec that is valid again, also without a change or an earlier valid spec', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: 'version: 1\n' });
    await expect.poll(() => daemon.metrics()).toContain('vdcsync_broken_specs 1\n');
    for (const times of [1, 2]) {
      daemon.write(oneNetwork);
      await daemon.until(({ spec, converged }) => spec.broken.length === 0 && converged);
      expect(await daemon.metrics()).toContain('vdcsync_broken_specs 0\n');
      expect(lines(daemon, 'spec valid again')).toHaveLength(times);
      daemon.write(`${oneNetwork}wrong: 1\n`);
      await daemon.until(({ spec }) => spec.broken.length > 0);
    }
    expect(lines(daemon, 'spec invalid')).toHaveLength(3);
  });

  test('logs a blocked operation once, with its key and command, over many reconciliations', async () => {
    const spec = shop.replace('max_deletions: 9', 'prune: false');
    const { daemon } = await startConverged(spec, { args: ['--interval', '1m'] });
    daemon.write(`${spec.replace('policy_in: drop', 'policy_in: accept').replace('cores: 2', 'cores: 4')}`);
    await daemon.until(({ condition }) => condition === 'blocked');
    await daemon.reconciled(3);

    expect(lines(daemon, 'manual decision needed')).toMatchObject([
      {
        level: 'warn',
        project: 4711,
        key: 'servers.web-1',
        code: 'replace_not_allowed',
        resolve: expect.stringContaining('replace: allowed'),
      },
    ]);
    const changed = lines(daemon, 'condition changed').at(-1);
    expect(changed).toMatchObject({ condition: 'blocked', before: 'converging' });
    expect(lines(daemon, 'reconciliation ended').at(-1)).toMatchObject({ trigger: 'file', blocked: 1 });
    expect(lines(daemon, 'operation started').at(-1)).toMatchObject({ project: 4711 });
  });

  test('logs a lasting warning once while an operation is blocked', async () => {
    const refuse = faultRule(
      { method: 'PUT', path: '/servers/*/firewall' },
      { do: 'answer', status: 422, code: 'invalid_request' },
    );
    const api = await emulate({ faults: [refuse] });
    const daemon = await startDaemon(api, { spec: shop, args: ['--interval', '1m'] });
    await daemon.until(({ condition }) => condition === 'blocked');
    await daemon.reconciled(4);

    const warned = () => daemon.log().filter(({ level, code }) => level === 'warn' && code === 'exposed');
    expect(warned()).toMatchObject([{ key: 'servers.web-1' }]);
    const repeated = daemon.log().filter(({ level }) => level === 'warn');
    const names = repeated.map(({ msg, key, code, verb, condition }) =>
      [msg, key, code, verb, condition].join(' '),
    );
    expect(names).toEqual([...new Set(names)]);
  });

  test('in mode observe, logs the differences, and a warning with the text of the plan', async () => {
    const open = shop.replace(
      'rules: []',
      'rules: [{ direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22" }]',
    );
    const { api, daemon } = await startConverged(open);
    await daemon.end();

    const { folder } = daemon;
    const watching = await startDaemon(api, { folder, spec: shop, args: ['--mode', 'observe'] });
    const seen = await watching.until(({ condition }) => condition === 'drifting');
    const differs = ['update servers.web-1.firewall'];
    // It is the file that has moved.
    expect(seen).toMatchObject({ differs });
    expect(seen.warnings.filter(({ code }) => code === 'drift')).toEqual([]);
    expect(lines(watching, 'condition changed')).toMatchObject([{ condition: 'drifting', differs }]);
    expect(lines(watching, 'drift found')).toEqual([]);
    expect(lines(watching, 'plan warning')).toMatchObject([
      { key: 'servers.web-1.firewall', code: 'firewall_lockout' },
    ]);
    expect(lines(watching, 'operation started')).toEqual([]);
  });

  test.each([
    ['an outage', { do: 'refuse' }, 'unreachable', 'vdcsync doctor'],
    [
      'a refused token',
      { do: 'answer', status: 401, code: 'unauthorized' },
      'unauthorized',
      'VDC_TOKEN_FILE',
    ],
  ] as const)('reports %s once at its start with a remedy and once at its end, and stays ready', async (_, fault, is, way) => {
    const { api, daemon } = await startConverged(oneNetwork, { args: ['--interval', '1m'] });
    const before = daemon.log().length;
    api.emulator.setFaults([faultRule({ method: 'GET' }, fault)]);
    await daemon.until(({ condition }) => condition === is);
    await daemon.reconciled(3);
    const loud = daemon
      .log()
      .slice(before)
      .filter(({ level }) => level !== 'info');
    expect(loud.at(-1)).toMatchObject({
      ...{ level: 'warn', msg: 'condition changed', condition: is },
      resolve: expect.stringContaining(way),
    });
    expect(loud.filter(({ msg }) => msg === 'reconciliation failed')).toHaveLength(1);
    expect(await daemon.ready()).toBe(true);

    api.emulator.setFaults([]);
    await daemon.until(({ converged }) => converged);
    expect(lines(daemon, 'condition changed').at(-1)).toMatchObject({
      ...{ level: 'info', condition: 'converged', before: is },
    });
  });

  test('accepts a short status token with a warning', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: oneNetwork, env: { VDCSYNC_HTTP_TOKEN: 'short' } });
    expect(
      lines(daemon, 'a secret of less than 16 characters is easy to guess: use a longer one'),
    ).toMatchObject([{ level: 'warn', source: 'VDCSYNC_HTTP_TOKEN' }]);
  });
});
