import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { ended, folderWith, inProcess, oneNetwork, start } from './run.ts';
import { Workspace } from './workspace.ts';

interface Connection {
  readonly base_url: string;
  readonly project: { readonly id: number };
  readonly tokens: Readonly<Record<'read_write' | 'read' | 'member', string>>;
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the child has no pipe');
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('the child said nothing');
}

describe('src/cli/commands/emulator.ts', () => {
  test('serves on a free port, prints the connection in one line, saves its data and ends cleanly', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork, 'profile.yaml': 'time_scale: 60\n' });
    const args = ['emulator', '--format', 'json', '--speed', '60', '--data', 'world.json'];
    const first = start(args, { cwd });
    const connection = JSON.parse(await firstLine(first)) as Connection;
    expect(connection.base_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
    expect(Object.keys(connection.tokens)).toEqual(['read_write', 'read', 'member']);
    const env = (at: Connection) => ({
      VDC_BASE_URL: at.base_url,
      VDC_TOKEN: at.tokens.read_write,
      VDCSYNC_API_PROFILE: 'profile.yaml',
    });
    const applied = await inProcess(['apply', '--yes'], { cwd, env: env(connection) });
    expect(applied.code).toBe(0);
    first.kill('SIGINT');
    expect(await new Promise((resolve) => first.once('exit', resolve))).toBe(0);

    const second = start(args, { cwd });
    const again = JSON.parse(await firstLine(second)) as Connection;
    expect(again.tokens).toEqual(connection.tokens);
    const plan = await inProcess(['plan'], { cwd, env: env(again) });
    expect(plan.stdout).toMatch(/^Nothing to do/);
    second.kill('SIGTERM');
    expect(await new Promise((resolve) => second.once('exit', resolve))).toBe(0);
  });

  test('with --profile, prints the variable for the same profile in the client', async () => {
    const cwd = folderWith({ 'own.yaml': 'time_scale: 5\noperations: {list_servers: {}}\n' });
    const child = start(['emulator', '--speed', '5', '--profile', 'own.yaml'], { cwd });
    child.stdout?.once('data', () => child.kill('SIGTERM'));
    const { stdout } = await ended(child);
    expect(stdout).toContain('same profile in the client, with `time_scale: 5` in it');
    expect(stdout).toContain('export VDCSYNC_API_PROFILE=own.yaml\n');
    expect(stdout).not.toContain('echo');
  });

  test('a faults file sets the duration of a task', async () => {
    const cwd = folderWith({ 'faults.yaml': 'durations: {create_network: 2m}\n' });
    const child = start(['emulator', '--format', 'json', '--faults', 'faults.yaml'], { cwd });
    const { base_url } = JSON.parse(await firstLine(child)) as Connection;
    const answer = await fetch(base_url.replace('/v1', '/_emulator/durations'));
    expect(((await answer.json()) as { data: unknown }).data).toMatchObject({
      create_network: [120_000, 120_000],
      backup: [60_000, 120_000],
    });
    child.kill('SIGTERM');
    await ended(child);
  });

  test.each([
    ['a missing faults file', '--faults gone', /gone cannot be read/],
    ['a faults file with unknown fields', '--faults bad.yaml', /bad\.yaml:1:9: .*unknown "limits"/],
    [
      'an unknown fault',
      '--faults fault.yaml',
      /fault\.yaml:2:14: faults\[0\]\.then\.do: must be answer, .* or standing\n/,
    ],
    ['an invalid profile', '--profile bad.yaml', /bad\.yaml:1:9: profile\.limits: must be a map/],
    ['a data file in another format', '--data bad.yaml', /bad\.yaml .*was not changed/],
  ])('%s ends the emulator with exit code 1', async (_name, flags, message) => {
    const place = new Workspace(
      { 'bad.yaml': 'limits: [1]\nfaults: 3\n', 'fault.yaml': '- when: {}\n  then: {do: rest}\n' },
      {},
    );
    const { code, stdout, stderr } = await place.run(`emulator ${flags}`);
    expect(stderr).toMatch(message);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });
});
