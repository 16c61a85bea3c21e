import { beforeAll, describe, expect, test } from 'vitest';
import { oneNetwork, shop } from './run.ts';
import { emulated, type Workspace } from './workspace.ts';

describe('src/cli/commands/apply.ts', () => {
  test('--format json prints one object a line, and the summary last', async () => {
    const told = await emulated(shop).events('apply --yes');
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

  test('the JSON summary lists the resources that stay billed', async () => {
    const kept = shop.replace('{ ip: web }', '{ new: true }\n    keep_ip: true');
    const empty = 'version: 1\nproject: { id: 4711 }\nsettings: { prune: true, max_deletions: 9 }\n';
    const place = emulated(kept, { 'empty.yaml': empty });
    await place.out('apply --yes');
    const summary = (await place.events('apply --yes -f empty.yaml')).at(-1);
    expect(summary.left_billed.join()).toContain('stays billed: keep_ip');
  });

  test('an apply that waits for a window exits with 0, and a destroy does not', async () => {
    const later = new Date(Date.now() + 7_200_000);
    const window = `cron: "${later.getUTCMinutes()} ${later.getUTCHours()} * * *", duration: 1h, timezone: UTC`;
    const file = (settings: string, names: string) =>
      `version: 1\nproject: { id: 4711 }\nsettings: { prune: true, max_deletions: 9${settings} }\nips: {${names}}\n`;
    const windowed = (allow: string) => file(`, windows: [{ ${window}, allow: [${allow}] }]`, 'a: {}, b: {}');
    const place = emulated(windowed('create, delete'), {
      'before.yaml': file('', 'a: {}'),
      'never.yaml': windowed('delete'),
    });
    await place.out('apply --yes -f before.yaml');
    const stdout = await place.out('apply --yes');
    expect(stdout).toMatch(/… create ips\.b: waits for the next window that allows create, at /);
    expect(stdout).toMatch(/^Waiting: 0 operations done, 1 waiting in /m);
    expect((await place.events('apply --yes')).at(-1)).toMatchObject({ outcome: 'waiting', exit_code: 0 });
    await place.refused(3, 'destroy --yes');
    await place.refused(3, 'apply --yes -f never.yaml');
  });

  test('a run with --target ends as done, and destroy ends as deleted', async () => {
    const place = emulated(shop);
    const outcome = async (words: string) => (await place.events(`${words} --yes`)).at(-1).outcome;
    expect(await outcome('apply --target networks.backend')).toBe('done');
    expect(await outcome('apply')).toBe('converged');
    expect(await outcome('destroy')).toBe('deleted');
  });

  test('refuses a spec for another project than the emulated one', async () => {
    const place = emulated(oneNetwork, { 'other.yaml': oneNetwork.replace('4711', '5') });
    await place.out('apply --yes');
    expect(await place.refused(1, 'plan -f other.yaml')).toMatch(/holds the emulated project 4711, not 5/);
  });

  test('refuses a damaged emulator file', async () => {
    const place = emulated(oneNetwork, { '.vdcsync/emulator.json': '{' });
    expect(await place.refused(1, 'apply --yes')).toMatch(/emulator\.json/);
  });
});

describe('src/cli/commands: status and history', () => {
  let place: Workspace;
  beforeAll(async () => {
    place = emulated(shop);
    await place.out('apply --yes');
  });

  test('status reports the error of an invalid spec', async () => {
    expect(await emulated('version: 2\n').refused(1, 'status')).toMatch(/^vdcsync\.yaml:1:/);
  });

  test('history lists every write with key, request, task and outcome, newest first', async () => {
    const writes: readonly Record<string, unknown>[] = (await place.json('history')).writes;
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
    const one = await place.out('history --limit 1');
    expect(one.split('\n').filter((line) => /^\d/.test(line))).toHaveLength(1);
  });
});
