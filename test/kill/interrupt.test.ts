import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { builtCommand } from '../support/built.ts';
import { programEnv } from '../support/program-env.ts';

/** Slow enough that a task of 45 s has not ended when the signal arrives. */
const speed = 60;

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

let api: RunningEmulator;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vdcsync-interrupt-'));
  await writeFile(join(folder, 'vdcsync.yaml'), spec);
  await writeFile(join(folder, 'profile.yaml'), `time_scale: ${speed}\n`);
});

afterEach(async () => {
  await api.close();
  await rm(folder, { recursive: true, force: true });
});

const world = () => api.emulator.world.projects[0];
const posts = () => api.emulator.world.executions.filter(({ kind }) => kind === 'server').length;

function start(...args: string[]) {
  const env = {
    ...programEnv(),
    VDC_BASE_URL: api.baseUrl,
    VDC_TOKEN: api.projects[0]?.tokens.readWrite,
    VDCSYNC_API_PROFILE: 'profile.yaml',
    VDCSYNC_ALLOW_EPHEMERAL_STATE: '1',
  };
  const child = spawn(process.execPath, [builtCommand(), ...args], { cwd: folder, env });
  const printed = { text: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => {
      printed.text += text.toString('utf8');
    });
  return { child, printed, ended: endOf(child) };
}

async function endOf(child: ChildProcess): Promise<number> {
  const [code] = (await once(child, 'close')) as [number];
  return code;
}

/** The tasks of the emulator's world that have not ended. */
const openTasks = () => world()?.tasks.filter(({ done }) => !done) ?? [];

describe('src/engine/interruption.ts: the built command with tasks that never end', () => {
  beforeEach(async () => {
    api = await startEmulator({
      speed,
      seed: 3,
      faults: [
        faultRule({ path: 'create_server', nth: 1 }, { do: 'task', outcome: 'stuck' }),
        faultRule({ path: 'add_iso', nth: 1 }, { do: 'task', outcome: 'stuck' }),
      ],
    });
  });

  const bothAccepted = () => expect.poll(() => openTasks().length).toBe(2);

  test.each(['SIGINT', 'SIGTERM'] as const)('%s ends apply, and names both tasks', async (signal) => {
    const run = start('apply', '--yes');
    await bothAccepted();

    run.child.kill(signal);

    expect(await run.ended).toBe(130);
    for (const { id } of openTasks()) expect(run.printed.text).toContain(`task ${id} continues`);
    expect(world()?.servers[0]?.firewall.enabled).toBe(true);
    expect(world()?.servers).toHaveLength(1);
    expect(posts()).toBe(1);
  });

  test('a second run after the end of the tasks continues the one creation', async () => {
    const first = start('apply', '--yes');
    await bothAccepted();
    first.child.kill('SIGINT');
    await first.ended;
    for (const task of openTasks()) task.stuck = false;

    const second = start('apply', '--yes');

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
    const run = start('apply', '--yes');
    await expect
      .poll(() => api.emulator.requests.some(({ operation }) => operation === 'replace_firewall'))
      .toBe(true);
    run.child.kill('SIGINT');
    await expect.poll(() => run.printed.text).toContain('Press Ctrl-C again');

    run.child.kill('SIGINT');

    expect(await run.ended).toBe(130);
    for (const task of openTasks()) task.stuck = false;
    api.emulator.setFaults([]);
    const second = start('apply', '--yes');
    expect(await second.ended, second.printed.text).toBe(0);
    expect(posts()).toBe(1);
    expect(world()?.servers).toMatchObject([{ firewall: { enabled: true } }]);
  });

  test('Ctrl-C ends destroy, names its task, and the next destroy completes it', async () => {
    api.emulator.setFaults([faultRule({ path: 'delete_server', nth: 1 }, { do: 'task', outcome: 'stuck' })]);
    const made = start('apply', '--yes');
    expect(await made.ended, made.printed.text).toBe(0);
    const first = start('destroy', '--yes');
    await expect.poll(() => openTasks().length).toBe(1);

    first.child.kill('SIGINT');

    expect(await first.ended).toBe(130);
    const [task] = openTasks();
    expect(first.printed.text).toContain(`task ${task?.id} continues`);
    for (const each of openTasks()) each.stuck = false;
    const second = start('destroy', '--yes');
    expect(await second.ended, second.printed.text).toBe(0);
    expect(world()).toMatchObject({ servers: [], ips: [], isos: [] });
  });

  test('SIGTERM ends the daemon with 0, and its log names both tasks', async () => {
    const run = start('run', '--listen', '127.0.0.1:0');
    await bothAccepted();

    run.child.kill('SIGTERM');

    expect(await run.ended).toBe(0);
    for (const { id } of openTasks()) expect(run.printed.text).toContain(`task ${id} continues`);
    expect(posts()).toBe(1);
  });
});
