import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { folderWith, inProcess, shop } from './run.ts';

const fresh = () => folderWith({ 'vdcsync.yaml': shop });

async function planned(cwd: string, ...args: string[]): Promise<Plan> {
  const { code, stdout, stderr } = await inProcess(['plan', '--emulator', '--format', 'json', ...args], {
    cwd,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as Plan;
}

describe('src/cli: a part of the plan', () => {
  test('--target takes what it needs with it, --exclude what needs it', async () => {
    const cwd = fresh();
    const ids = async (...args: string[]) =>
      (await planned(cwd, ...args)).operations.map(({ key }) => key).sort();
    expect(await ids('--target', 'servers.web-1.firewall')).toEqual([
      'ips.web',
      'servers.web-1',
      'servers.web-1.firewall',
    ]);
    expect(await ids('--exclude', 'networks.backend')).toEqual([
      'ips.web',
      'servers.web-1',
      'servers.web-1.firewall',
    ]);
    expect(await ids('--target', 'networks.backend', '--target', 'ips.web')).toEqual([
      'ips.web',
      'networks.backend',
    ]);
    expect(await ids('--exclude', 'servers.web-1', '--exclude', 'ips.web')).toEqual(['networks.backend']);
    const { warnings, summary } = await planned(cwd, '--target', 'ips.web');
    expect(warnings).toMatchObject([{ code: 'left_out', message: expect.stringContaining('4 changes') }]);
    expect(summary.create).toBe(1);
  });

  test('apply carries out just that, and a key that is none is refused with the near one', async () => {
    const cwd = fresh();
    const done = await inProcess(['apply', '--emulator', '--yes', '--target', 'networks.backend'], { cwd });
    expect(done.code).toBe(0);
    expect((await planned(cwd)).operations.map(({ key }) => key)).not.toContain('networks.backend');
    const again = await inProcess(['plan', '--emulator', '--target', 'networks.backend'], { cwd });
    expect(again.stdout).toContain('Nothing to do in the selected part of project 4711.');
    const wrong = await inProcess(['apply', '--emulator', '--yes', '--target', 'networks.backnd'], { cwd });
    expect(wrong.code).toBe(64);
    expect(wrong.stderr).toContain('did you mean networks.backend?');
  });

  test('a saved plan is of the part that it was made of, and of no other', async () => {
    const cwd = fresh();
    await inProcess(['plan', '--emulator', '--target', 'ips.web', '--out', 'part.json'], { cwd });
    await inProcess(['plan', '--emulator', '--out', 'whole.json'], { cwd });
    const apply = (plan: string, ...more: string[]) =>
      inProcess(['apply', '--emulator', '--yes', '--plan', plan, ...more], { cwd });

    const other = await apply('part.json', '--target', 'networks.backend');
    expect(other.code).toBe(64);
    expect(other.stderr).toContain(
      'part.json was made with --target ips.web, and this command has --target networks.backend. Remove these flags',
    );
    const less = await apply('whole.json', '--exclude', 'ips.web');
    expect(less.code).toBe(64);
    expect(less.stderr).toContain(
      'whole.json was made for the complete file, and this command has --exclude ips.web. Remove these flags',
    );
    expect((await apply('part.json')).code).toBe(0);
    expect((await planned(cwd)).operations.map(({ key }) => key)).not.toContain('ips.web');
  });

  test('what a saved plan is of may be said again', async () => {
    const cwd = fresh();
    const part = ['--target', 'ips.web', '--target', 'networks.backend'];
    await inProcess(['plan', '--emulator', ...part, '--out', 'plan.json'], { cwd });
    const turned = ['--target', 'networks.backend', '--target', 'ips.web'];
    const done = await inProcess(['apply', '--emulator', '--yes', '--plan', 'plan.json', ...turned], { cwd });
    expect(done.code).toBe(0);
  });
});

describe('src/cli/render/plan-svg.ts', () => {
  test('the graph of changes as a picture', async () => {
    const cwd = fresh();
    await inProcess(['plan', '--emulator', '--format', 'svg', '--out', 'plan.svg'], { cwd });
    const svg = readFileSync(join(cwd, 'plan.svg'), 'utf8');
    expect(svg.match(/<g><title>/g)).toHaveLength(5);
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    const nothing = (await inProcess(['plan', '--emulator', '--format', 'svg'], { cwd })).stdout;
    expect(nothing).toContain('nothing to do');
  });
});
