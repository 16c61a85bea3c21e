import { once } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { folderWith, type Served, serve, start } from '../cli/run.ts';

const spec = `version: 1
project: {id: 4711}
settings: {exclusive: true}
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: {new: true}
    firewall: {enabled: true, policy_in: drop, rules: []}
isos:
  rescue: {url: "https://mirror.example.com/rescue.iso"}
`;

let api: Served;
let folder: string;

beforeEach(async () => {
  api = await serve({
    // Slow enough that a task of 45 s has not ended when the signal arrives.
    ...{ speed: 60, seed: 3 },
    faults: [
      faultRule({ path: 'create_server', nth: 1 }, { do: 'task', outcome: 'stuck' }),
      faultRule({ path: 'add_iso', nth: 1 }, { do: 'task', outcome: 'stuck' }),
    ],
  });
  folder = folderWith({ 'vdcsync.yaml': spec, ...api.files });
  return () => api.close();
});

const world = () => api.emulator.world.projects[0];
const posts = () => api.emulator.world.executions.filter(({ kind }) => kind === 'server').length;

function begin(...args: string[]) {
  const child = start(args, { cwd: folder, env: { ...api.env, VDCSYNC_ALLOW_EPHEMERAL_STATE: '1' } });
  const printed = { text: '' };
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text: Buffer) => {
      printed.text += text.toString('utf8');
    });
  return { child, printed, ended: once(child, 'close').then(([code]) => code) };
}

/** The tasks of the emulator's world that have not ended. */
const openTasks = () => world()?.tasks.filter(({ done }) => !done) ?? [];

describe('src/engine/run/drain.ts: the built command with tasks that never end', () => {
  const bothAccepted = () => expect.poll(() => openTasks().length).toBe(2);

  test.each(['SIGINT', 'SIGTERM'] as const)('%s ends apply, and names both tasks', async (signal) => {
    const run = begin('apply', '--yes');
    await bothAccepted();

    run.child.kill(signal);

    expect(await run.ended).toBe(130);
    for (const { id } of openTasks()) expect(run.printed.text).toContain(`task ${id} continues`);
    expect(world()?.servers[0]?.firewall.enabled).toBe(true);
    expect(world()?.servers).toHaveLength(1);
    expect(posts()).toBe(1);
  });

  test('a second run after the end of the tasks continues the one creation', async () => {
    const first = begin('apply', '--yes');
    await bothAccepted();
    first.child.kill('SIGINT');
    await first.ended;
    for (const task of openTasks()) task.stuck = false;

    const second = begin('apply', '--yes');

    expect(await second.ended, second.printed.text).toBe(0);
    expect(posts()).toBe(1);
    expect(world()?.servers).toEqual([
      expect.objectContaining({ firewall: expect.objectContaining({ enabled: true }) }),
    ]);
  });

  test('a second Ctrl-C ends apply at once, and the next run continues the one creation', async () => {
    api.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'task', outcome: 'stuck' }),
      faultRule({ path: 'replace_firewall', nth: 1 }, { do: 'slow', ms: 3_600_000 }),
    ]);
    const run = begin('apply', '--yes');
    await expect
      .poll(() => api.emulator.requests.some(({ operation }) => operation === 'replace_firewall'))
      .toBe(true);
    run.child.kill('SIGINT');
    await expect.poll(() => run.printed.text).toContain('Press Ctrl-C again');

    run.child.kill('SIGINT');

    expect(await run.ended).toBe(130);
    for (const task of openTasks()) task.stuck = false;
    api.emulator.setFaults([]);
    const second = begin('apply', '--yes');
    expect(await second.ended, second.printed.text).toBe(0);
    expect(posts()).toBe(1);
    expect(world()?.servers).toMatchObject([{ firewall: { enabled: true } }]);
  });

  test('Ctrl-C ends destroy, names its task, and the next destroy completes it', async () => {
    api.emulator.setFaults([faultRule({ path: 'delete_server', nth: 1 }, { do: 'task', outcome: 'stuck' })]);
    const made = begin('apply', '--yes');
    expect(await made.ended, made.printed.text).toBe(0);
    const first = begin('destroy', '--yes');
    await expect.poll(() => openTasks().length).toBe(1);

    first.child.kill('SIGINT');

    expect(await first.ended).toBe(130);
    const [task] = openTasks();
    expect(first.printed.text).toContain(`task ${task?.id} continues`);
    for (const each of openTasks()) each.stuck = false;
    const second = begin('destroy', '--yes');
    expect(await second.ended, second.printed.text).toBe(0);
    expect(world()).toMatchObject({ servers: [], ips: [], isos: [] });
  });

  test('SIGTERM ends the daemon with 0, and its log names both tasks', async () => {
    const run = begin('run', '--listen', '127.0.0.1:0');
    await bothAccepted();

    run.child.kill('SIGTERM');

    expect(await run.ended).toBe(0);
    for (const { id } of openTasks()) expect(run.printed.text).toContain(`task ${id} continues`);
    expect(posts()).toBe(1);
  });
});
