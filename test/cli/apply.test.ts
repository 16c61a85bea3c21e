import { beforeAll, describe, expect, test } from 'vitest';
import { folderWith, inProcess, oneNetwork, shop } from './run.ts';

const lines = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('src/cli/commands/apply.ts', () => {
  test('--format json is one object a line: start, progress, end, the summary last', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const { code, stdout } = await inProcess(['apply', '--emulator', '--yes', '--format', 'json'], { cwd });
    expect(code).toBe(0);
    const told = lines(stdout);
    for (const type of ['started', 'ended']) {
      expect(told.filter((each) => each.type === type).map(({ key }) => key)).toHaveLength(5);
    }
    expect(told.some(({ type, step }) => type === 'progress' && step === 'task')).toBe(true);
    expect(told.at(-1)).toMatchObject({
      type: 'summary',
      outcome: 'converged',
      exit_code: 0,
      operations: { done: 5, failed: 0, blocked: 0, unresolved: 0 },
      requests: { writes: 5, throttled: 0 },
      blocked: [],
    });
  });

  test('--format json tells at the end what stays billed', async () => {
    const kept = shop.replace('{ ip: web }', '{ new: true }\n    keep_ip: true');
    const empty = 'version: 1\nproject: { id: 4711 }\nsettings: { prune: true, max_deletions: 9 }\n';
    const cwd = folderWith({ 'vdcsync.yaml': kept, 'empty.yaml': empty });
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    const call = ['apply', '--emulator', '--yes', '-f', 'empty.yaml', '--format', 'json'];
    const { stdout } = await inProcess(call, { cwd });
    const summary = lines(stdout).at(-1) as { readonly left_billed: readonly string[] };
    expect(summary.left_billed.join()).toContain('stays billed: keep_ip');
  });

  test('an apply that only a window holds back exits with 0, and a destroy does not', async () => {
    const later = new Date(Date.now() + 7_200_000);
    const window = `cron: "${later.getUTCMinutes()} ${later.getUTCHours()} * * *", duration: 1h, timezone: UTC`;
    const file = (settings: string, names: string) =>
      `version: 1\nproject: { id: 4711 }\nsettings: { prune: true, max_deletions: 9${settings} }\nips: {${names}}\n`;
    const windowed = (allow: string) => file(`, windows: [{ ${window}, allow: [${allow}] }]`, 'a: {}, b: {}');
    const cwd = folderWith({
      'before.yaml': file('', 'a: {}'),
      'vdcsync.yaml': windowed('create, delete'),
      'never.yaml': windowed('delete'),
    });
    await inProcess(['apply', '--emulator', '--yes', '-f', 'before.yaml'], { cwd });
    const { code, stdout } = await inProcess(['apply', '--emulator', '--yes'], { cwd });
    expect(stdout).toMatch(/… create ips\.b: waits for the next window that allows create, at /);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Waiting: 0 operations done, 1 waiting in /m)]);
    const json = await inProcess(['apply', '--emulator', '--yes', '--format', 'json'], { cwd });
    expect(lines(json.stdout).at(-1)).toMatchObject({ outcome: 'waiting', exit_code: 0 });
    expect((await inProcess(['destroy', '--emulator', '--yes'], { cwd })).code).toBe(3);
    expect((await inProcess(['apply', '--emulator', '--yes', '-f', 'never.yaml'], { cwd })).code).toBe(3);
  });

  test('destroy deletes all that is managed, and leaves nothing billed', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    const { code, stdout } = await inProcess(['destroy', '--emulator', '--yes'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toContain('Plan: 3 to delete.');
    expect(stdout).toMatch(
      /\nThe spec still describes 5 resources\. The next apply, or the daemon, creates them again\.\n$/,
    );
    const status = await inProcess(['status', '--emulator', '--format', 'json'], { cwd });
    expect(JSON.parse(status.stdout)).toMatchObject({ resources: [], billed: [], idle: [] });
    const history = await inProcess(['history', 'networks.backend'], { cwd });
    expect(history.stdout.match(/\bid 32\b/g), 'made and deleted').toHaveLength(2);
  });

  test('a run that leaves out a part of the spec, or deletes all of it, has not converged', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const outcome = async (...args: string[]) => {
      const { stdout } = await inProcess([...args, '--emulator', '--yes', '--format', 'json'], { cwd });
      return lines(stdout).at(-1)?.outcome;
    };
    expect(await outcome('apply', '--target', 'networks.backend')).toBe('done');
    expect(await outcome('apply')).toBe('converged');
    expect(await outcome('destroy')).toBe('deleted');
  });

  test('the emulated project has to be the one of the spec', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork, 'other.yaml': oneNetwork.replace('4711', '5') });
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    const { code, stderr } = await inProcess(['plan', '--emulator', '-f', 'other.yaml'], { cwd });
    expect(stderr).toMatch(/holds the emulated project 4711, not 5/);
    expect(code).toBe(1);
  });

  test('a damaged emulator file is refused and left as it is', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork, '.vdcsync/emulator.json': '{' });
    const { code, stderr } = await inProcess(['apply', '--emulator', '--yes'], { cwd });
    expect(stderr).toMatch(/emulator\.json/);
    expect(code).toBe(1);
  });
});

describe('src/cli/commands: status and history', () => {
  let cwd: string;
  beforeAll(async () => {
    cwd = folderWith({ 'vdcsync.yaml': shop });
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
  });

  test('status with the API: what is managed, converged, billed and idle, and when it was looked at', async () => {
    const { code, stdout } = await inProcess(['status', '--emulator', '--format', 'json'], { cwd });
    const status = JSON.parse(stdout) as { resources: { key: string; standing: string }[] };
    expect(status).toMatchObject({
      project: { id: 4711 },
      converged: true,
      offline: null,
      idle: [],
      blocked: [],
    });
    expect(status.resources.map(({ key, standing }) => `${key} ${standing}`)).toContain(
      'servers.web-1 converged',
    );
    expect(code).toBe(0);
    const text = await inProcess(['status', '--emulator'], { cwd });
    expect(text.stdout.trimEnd().split('\n').at(-1)).toBe('Converged.');
  });

  test('status without the API says so and shows the state', async () => {
    const { code, stdout } = await inProcess(['status', '--offline', '--format', 'json'], { cwd });
    const status = JSON.parse(stdout) as { resources: unknown[] };
    expect(status).toMatchObject({
      converged: null,
      offline: '--offline',
      observed_at: null,
      idle: null,
    });
    expect(status.resources).toHaveLength(5);
    expect(code).toBe(0);
  });

  test('status with a broken file says what is broken', async () => {
    const broken = folderWith({ 'vdcsync.yaml': 'version: 2\n' });
    const { code, stderr } = await inProcess(['status'], { cwd: broken });
    expect(stderr).toMatch(/^vdcsync\.yaml:1:/);
    expect(code).toBe(1);
  });

  test('history holds every write with key, request, task and outcome, newest first', async () => {
    const { code, stdout } = await inProcess(['history', '--format', 'json'], { cwd });
    const { writes } = JSON.parse(stdout) as { writes: Record<string, unknown>[] };
    expect(writes).toHaveLength(5);
    expect(writes.find(({ key }) => key === 'servers.web-1')).toMatchObject({
      verb: 'create',
      operation: 'create_server',
      outcome: 'done',
      phase: 'closed',
      request_id: expect.stringMatching(/\S/),
      task_id: expect.stringMatching(/\S/),
      idempotency_key: expect.stringMatching(/\S{8,}/),
    });
    expect(
      writes.filter(({ resource_id: id }) => id === null),
      'all are told by their id, also a network, whose creation answers none',
    ).toEqual([]);
    const times = writes.map(({ begun_at: at }) => String(at));
    expect(times).toEqual(times.toSorted().reverse());
    expect(code).toBe(0);
    const one = await inProcess(['history', '--limit', '1'], { cwd });
    expect(one.stdout.split('\n').filter((line) => /^\d/.test(line))).toHaveLength(1);
  });
});
