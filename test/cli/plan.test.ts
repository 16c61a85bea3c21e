import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { contentsOf, folderWith, inProcess, shop, vdcsync } from './run.ts';

/** One applied project for all tests that only look. */
let settled: string;

beforeAll(async () => {
  settled = folderWith({ 'vdcsync.yaml': shop, 'more.yaml': `${shop}isos: {}\nnetworks2: {}\n` });
  const { code, stderr } = await inProcess(['apply', '--emulator', '--yes'], { cwd: settled });
  expect({ code, stderr }).toMatchObject({ code: 0 });
});

describe('src/cli/commands/plan.ts', () => {
  test('--detailed-exitcode tells changes apart, and blocked before them', async () => {
    const args = ['plan', '--emulator', '--detailed-exitcode'];
    const blocked = shop.replace('networks:', 'networks:\n  gone: { managed: false }');
    const codes = [
      (await inProcess(args, { cwd: settled })).code,
      (await inProcess(args, { cwd: folderWith({ 'vdcsync.yaml': shop }) })).code,
      (await inProcess(args, { cwd: folderWith({ 'vdcsync.yaml': blocked }) })).code,
    ];
    expect(codes).toEqual([0, 2, 3]);
  });

  test('what apply only records is a change: a protection, and a key that has another name', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    await inProcess(['apply', '--yes', '--emulator'], { cwd });
    const file = join(cwd, 'vdcsync.yaml');
    const edits = [
      shop.replace('cidr: 10.20.0.0/24', 'cidr: 10.20.0.0/24, protect: true'),
      shop.replace('web: {}', 'www: { moved: { from: ips.web } }').replace('ip: web', 'ip: www'),
    ];
    for (const edit of edits) {
      writeFileSync(file, edit);
      const plan = await inProcess(['plan', '--emulator', '--detailed-exitcode'], { cwd });
      expect(plan.stdout).toMatch(/^Nothing to send\. The next apply only records .+\.$/m);
      await inProcess(['apply', '--yes', '--emulator'], { cwd });
      const after = await inProcess(['plan', '--emulator', '--detailed-exitcode'], { cwd });
      expect([plan.code, after.code]).toEqual([2, 0]);
    }
  });

  test('changes nothing on disk, with and without a state', async () => {
    const fresh = folderWith({ 'vdcsync.yaml': shop });
    for (const cwd of [fresh, settled]) {
      const before = contentsOf(cwd);
      for (const args of [
        ['plan'],
        ['apply', '--dry-run'],
        ['--dry-run'],
        ['destroy', '--dry-run'],
        ['status'],
      ]) {
        const { code } = await inProcess([...args, '--emulator'], { cwd });
        expect({ args, code }).toEqual({ args, code: 0 });
      }
      expect(contentsOf(cwd)).toEqual(before);
    }
  });

  test('apply --dry-run is plan, with its flags', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const args = ['apply', '--dry-run', '--yes', '--emulator', '--format', 'markdown', '--detailed-exitcode'];
    const { code, stdout } = await inProcess(args, { cwd });
    expect(stdout).toContain('<details>');
    expect(code).toBe(2);
  });

  test('--out saves JSON for apply and shows the text; with a format it saves that', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const { stdout, stderr } = await inProcess(['plan', '--emulator', '--out', 'plan.json'], { cwd });
    expect(stdout).toContain('Plan: 5 to create.');
    expect(stderr).toContain('plan.json');
    expect(JSON.parse(readFileSync(join(cwd, 'plan.json'), 'utf8'))).toMatchObject({ format_version: 1 });
    const second = await inProcess(['plan', '--emulator', '--format', 'markdown', '--out', 'plan.md'], {
      cwd,
    });
    expect(second.stdout).toBe('');
    expect(readFileSync(join(cwd, 'plan.md'), 'utf8')).toContain('<details>');
    const nowhere = await inProcess(['plan', '--emulator', '--out', 'no/such/folder'], { cwd });
    expect(nowhere).toMatchObject({ code: 1 });
    expect(nowhere.stderr).toContain('cannot be written');
  });

  test('colours are for terminals, NO_COLOR and FORCE_COLOR have their say', async () => {
    const call = { cwd: folderWith({ 'vdcsync.yaml': shop }) };
    const args = ['plan', '--emulator'];
    const [plain, forced, refused] = await Promise.all([
      vdcsync(args, call),
      vdcsync(args, { ...call, env: { FORCE_COLOR: '1' } }),
      vdcsync(args, { ...call, env: { NO_COLOR: '1' } }),
    ]);
    expect(plain.stdout).not.toContain('\u001b[');
    expect(refused.stdout).not.toContain('\u001b[');
    expect(forced.stdout).toContain('\u001b[32m');
  });
});

describe('src/cli/commands/plan.ts: what a plan says of money', () => {
  test('a replacement tells the address that goes', async () => {
    const text = shop
      .replace('public_ipv4: { ip: web }', 'public_ipv4: { new: true }\n    replace: allowed')
      .replace('ips:\n  web: {}\n', '');
    const cwd = folderWith({ 'vdcsync.yaml': text });
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    writeFileSync(join(cwd, 'vdcsync.yaml'), text.replace('cores: 2', 'cores: 4'));
    const { stdout } = await inProcess(['plan', '--emulator'], { cwd });
    expect(stdout).toContain('→ its address 203.0.113.10 is deleted, and the new server gets another one');
    expect(stdout).toContain('- public_ipv4  id 5001, 203.0.113.10');
    const bare = text
      .replace('    public_ipv4: { new: true }\n', '')
      .replace('enabled: true', 'enabled: false')
      .replace('max_deletions: 9', 'max_deletions: 9, prune: true');
    writeFileSync(join(cwd, 'vdcsync.yaml'), bare);
    const without = await inProcess(['plan', '--emulator'], { cwd });
    expect(without.stdout).toContain('→ its address 203.0.113.10 is deleted, and the new server has none');
  });
});

describe('src/cli/commands/plan.ts: saved plans', () => {
  test.each([
    ['that is not there', undefined, /cannot be read: the file does not exist/],
    ['that is no JSON', 'Plan: 5 to create.', /is not JSON/],
    ['that is something else', '{}', /is not a plan of vdcsync/],
    ['of a later format', '{"format_version": 2}', /plan format 2/],
  ])('one %s is refused', async (_name, text, message) => {
    const cwd = folderWith({ 'vdcsync.yaml': shop, ...(text === undefined ? {} : { 'plan.json': text }) });
    const before = contentsOf(cwd);
    const { code, stderr } = await inProcess(['apply', '--emulator', '--yes', '--plan', 'plan.json'], {
      cwd,
    });
    expect(stderr).toMatch(message);
    expect(code).toBe(1);
    expect(contentsOf(cwd)).toEqual(before);
  });

  test.each([
    [
      'of another project',
      (plan: Plan) => ({ ...plan, project: { ...plan.project, id: 1 } }),
      /plan for project 1/,
    ],
    ['without its digest', ({ digest: _, ...plan }: Plan) => plan, /digest/],
    ['with something added', (plan: Plan) => ({ ...plan, extra: 1 }), /extra/],
    ['with a field of another type', (plan: Plan) => ({ ...plan, operations: 'all' }), /operations/],
  ])('one %s is refused', async (_name, change, message) => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const { stdout } = await inProcess(['plan', '--emulator', '--format', 'json'], { cwd });
    writeFileSync(join(cwd, 'plan.json'), JSON.stringify(change(JSON.parse(stdout) as Plan)));
    const { code, stderr } = await inProcess(['apply', '--emulator', '--yes', '--plan', 'plan.json'], {
      cwd,
    });
    expect(stderr).toMatch(message);
    expect(code).toBe(1);
  });

  test('one is carried out, and refused once the spec has moved', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop, 'other.yaml': shop.replace('10.20.', '10.30.') });
    await inProcess(['plan', '--emulator', '--out', 'plan.json'], { cwd });
    const moved = await inProcess(
      ['apply', '--emulator', '--yes', '--plan', 'plan.json', '-f', 'other.yaml'],
      { cwd },
    );
    expect(moved.code).toBe(1);
    expect(moved.stderr).toContain('Other operations result now for networks.backend');
    const { code } = await inProcess(['apply', '--emulator', '--yes', '--plan', 'plan.json'], { cwd });
    expect(code).toBe(0);
    const again = await inProcess(['apply', '--emulator', '--yes', '--plan', 'plan.json'], { cwd });
    expect(again.code).toBe(1);
  });
});
