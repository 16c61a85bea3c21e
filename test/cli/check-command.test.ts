import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { planSchema } from '../../src/cli/plan/schema.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

const applied = (cwd: string, ...args: string[]) =>
  inProcess(['apply', '--emulator', '--yes', ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', VDC_TOKEN: 'canary', KEPT: 'kept' },
  });
const managed = async (cwd: string) => {
  const { stdout } = await inProcess(['status', '--offline', '--format', 'json'], { cwd });
  return (JSON.parse(stdout) as { resources: { key: string }[] }).resources.map(({ key }) => key);
};

describe('src/cli/commands/apply.ts: apply --check-command', () => {
  test('the command gets the plan as JSON, and 0 lets it be applied', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    expect((await applied(cwd, '--check-command', 'cat > plan.json')).code).toBe(0);
    const plan = planSchema.parse(JSON.parse(readFileSync(join(cwd, 'plan.json'), 'utf8')));
    expect(plan.operations.map(({ key }) => key)).toEqual(['networks.backend']);
    expect(await managed(cwd)).toEqual(['networks.backend']);
  });

  test.each([
    ['an exit code', 'echo no such network; exit 1', 'no such network'],
    ['a command that is not there', 'no-such-program-at-all', 'no-such-program-at-all'],
    ['a signal', 'kill -9 $$', 'SIGKILL'],
    ['a command that leaves a program running', 'sleep 600 & echo left; exit 1', 'left'],
  ])('%s stops it with the output, before any write, and exits 3', async (_what, command, text) => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const { code, stderr } = await applied(cwd, '--check-command', command);
    expect(code).toBe(3);
    expect(stderr).toContain(text);
    expect(await managed(cwd)).toEqual([]);
    const { stdout } = await inProcess(['history'], { cwd });
    expect(stdout).not.toContain('networks.backend');
  });

  test('a saved plan and destroy are checked too', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    await inProcess(['plan', '--emulator', '--out', 'plan.json'], { cwd });
    expect((await applied(cwd, '--plan', 'plan.json', '--check-command', 'false')).code).toBe(3);
    await applied(cwd);
    const args = ['destroy', '--emulator', '--yes', '--check-command', 'false'];
    expect((await inProcess(args, { cwd, env: { PATH: process.env.PATH ?? '' } })).code).toBe(3);
    expect(await managed(cwd)).toEqual(['networks.backend']);
  });

  test('it gets no variable of vdcsync, and the others', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    await applied(cwd, '--check-command', 'env > variables');
    const variables = readFileSync(join(cwd, 'variables'), 'utf8');
    expect(variables).toContain('KEPT=kept');
    expect(variables).not.toContain('canary');
    const owned = oneNetwork.replace('id: 4711', 'id: 4711, token_env: TOKEN_SHOP');
    const folder = folderWith({ 'vdcsync.yaml': owned });
    const env = { PATH: process.env.PATH ?? '', TOKEN_SHOP: 'canary' };
    await inProcess(['apply', '--emulator', '--yes', '--check-command', 'env > variables'], {
      cwd: folder,
      env,
    });
    expect(readFileSync(join(folder, 'variables'), 'utf8')).not.toContain('canary');
  });

  test('a plan without operations is not checked', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    await applied(cwd);
    expect((await applied(cwd, '--check-command', 'touch asked; false')).code).toBe(0);
    expect(existsSync(join(cwd, 'asked'))).toBe(false);
  });
});

const policy = fileURLToPath(new URL('../../examples/policy/check.mjs', import.meta.url));

/** A server with this rule of its firewall, that listens for ssh. */
const serverWith = (rule: string) => `version: 1
project: { id: 4711 }
settings: { prune: true }
servers:
  web:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 1
    memory_mb: 1024
    disk_gb: 20
    public_ipv4: { new: true }
    firewall:
      enabled: true
      policy_in: drop
      rules: [{ direction: in, action: accept, enabled: true, protocol: tcp, destination_port: ${rule} }]
`;

describe('examples/policy/check.mjs', () => {
  const checked = (cwd: string) => applied(cwd, '--check-command', `'${process.execPath}' '${policy}'`);

  test('accepts a plan without violations, and refuses the deletion of the server', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': serverWith('"443"') });
    expect((await checked(cwd)).code).toBe(0);
    expect(await managed(cwd)).toContain('servers.web');
    writeFileSync(
      join(cwd, 'vdcsync.yaml'),
      oneNetwork.replace('networks:', 'settings: { prune: true }\nnetworks:'),
    );
    const { code, stderr } = await checked(cwd);
    expect([code, stderr]).toEqual([3, expect.stringContaining('servers.web must not be deleted')]);
    expect(await managed(cwd)).toContain('servers.web');
  });

  test.each([
    ['"22,443"', true],
    ['"20-30"', true],
    ['"2222"', false],
    ['"22", source: 198.51.100.0/24', false],
  ])('ssh for every address, by a rule for the ports %s: %s', async (rule, expected) => {
    const { stderr } = await checked(folderWith({ 'vdcsync.yaml': serverWith(rule) }));
    expect(stderr.includes('opens ssh to every address')).toBe(expected);
  });

  test.each([
    ['500.00', 0],
    ['500.01', 1],
  ])('a plan that adds %s a month exits %i', async (delta, expected) => {
    const plan = { operations: [], cost: { known_monthly_delta: delta } };
    const child = spawn(process.execPath, [policy]);
    child.stdin.end(JSON.stringify(plan));
    expect((await once(child, 'close'))[0]).toBe(expected);
  });
});
