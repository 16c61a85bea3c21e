import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { planSchema } from '../../src/core/plan-schema.ts';
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
    const env = { PATH: process.env.PATH ?? '', TOKEN_SHOP: 'canary', VDCSYNC_TOKEN_ENV_PREFIX: 'TOKEN_' };
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
