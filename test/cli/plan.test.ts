import { beforeAll, describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { contentsOf, folderWith, shop, vdcsync } from './run.ts';
import { emulated, type Workspace } from './workspace.ts';

/** One applied project for all tests that only look. */
let settled: Workspace;
beforeAll(async () => {
  settled = emulated(shop);
  await settled.out('apply --yes');
});

describe('src/cli/commands/plan.ts', () => {
  test('--detailed-exitcode distinguishes changes from blocked operations, which take precedence', async () => {
    const blocked = shop.replace('networks:', 'networks:\n  gone: { managed: false }');
    const places = [settled, emulated(shop), emulated(blocked)];
    const codes = await Promise.all(places.map((place) => place.code('plan --detailed-exitcode')));
    expect(codes).toEqual([0, 2, 3]);
  });

  test('a new protection and a renamed key, which only change the state, are changes', async () => {
    const place = emulated(shop);
    await place.out('apply --yes');
    for (const edit of [
      shop.replace('cidr: 10.20.0.0/24', 'cidr: 10.20.0.0/24, protect: true'),
      shop.replace('web: {}', 'www: { moved: { from: ips.web } }').replace('ip: web', 'ip: www'),
    ]) {
      place.write('vdcsync.yaml', edit);
      const plan = await place.run('plan --detailed-exitcode');
      expect(plan.stdout).toMatch(/^Nothing to send\. The next apply only records .+\.$/m);
      await place.out('apply --yes');
      expect([plan.code, await place.code('plan --detailed-exitcode')]).toEqual([2, 0]);
    }
  });

  test('changes nothing on disk, with and without a state', async () => {
    for (const place of [emulated(shop), settled]) {
      const before = contentsOf(place.cwd);
      for (const words of ['plan', 'apply --dry-run', '--dry-run', 'destroy --dry-run', 'status'])
        await place.out(words);
      expect(contentsOf(place.cwd)).toEqual(before);
    }
  });

  test('apply --dry-run is plan with the same flags', async () => {
    const words = 'apply --dry-run --yes --format markdown --detailed-exitcode';
    expect(await emulated(shop).run(words)).toMatchObject({
      ...{ code: 2, stdout: expect.stringContaining('<details>') },
    });
  });

  test('--out saves JSON for apply and prints text, and --format sets the saved format', async () => {
    const place = emulated(shop);
    const { stdout, stderr } = await place.run('plan --out plan.json');
    expect(stdout).toContain('Plan: 5 to create.');
    expect(stderr).toContain('plan.json');
    expect(JSON.parse(place.read('plan.json'))).toMatchObject({ format_version: 1 });
    expect(await place.out('plan --format markdown --out plan.md')).toBe('');
    expect(place.read('plan.md')).toContain('<details>');
    expect(await place.refused(1, 'plan --out no/such/folder')).toContain('cannot be written');
  });

  test('prints colours only on terminals, unless NO_COLOR or FORCE_COLOR is set', async () => {
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

describe('src/cli/commands/plan.ts: costs', () => {
  test('a replacement names the address that is deleted', async () => {
    const text = shop
      .replace('public_ipv4: { ip: web }', 'public_ipv4: { new: true }\n    replace: allowed')
      .replace('ips:\n  web: {}\n', '');
    const place = emulated(text);
    await place.out('apply --yes');
    place.write('vdcsync.yaml', text.replace('cores: 2', 'cores: 4'));
    const stdout = await place.out('plan');
    expect(stdout).toContain('→ its address 203.0.113.10 is deleted, and the new server gets another one');
    expect(stdout).toContain('- public_ipv4  id 5001, 203.0.113.10');
    const bare = text
      .replace('    public_ipv4: { new: true }\n', '')
      .replace('enabled: true', 'enabled: false')
      .replace('max_deletions: 9', 'max_deletions: 9, prune: true');
    place.write('vdcsync.yaml', bare);
    const without = '→ its address 203.0.113.10 is deleted, and the new server has none';
    expect(await place.out('plan')).toContain(without);
  });
});

describe('src/cli/commands/plan.ts: saved plans', () => {
  const apply = 'apply --yes --plan plan.json';

  // The golden text of mistakes has one that is not there.
  test.each([
    ['that is not JSON', () => undefined, /is not JSON/],
    ['without the fields of a plan', () => ({}), /is not a plan of vdcsync/],
    ['in a later format', (plan: Plan) => ({ ...plan, format_version: 2 }), /plan format 2/],
    [
      'of another project',
      (plan: Plan) => ({ ...plan, project: { ...plan.project, id: 1 } }),
      /plan for project 1/,
    ],
    ['without its digest', ({ digest: _, ...plan }: Plan) => plan, /digest/],
    ['with an additional field', (plan: Plan) => ({ ...plan, extra: 1 }), /extra/],
    ['with a field of another type', (plan: Plan) => ({ ...plan, operations: 'all' }), /operations/],
  ])('refuses a saved plan %s', async (_name, change, message) => {
    const place = emulated(shop);
    place.write('plan.json', JSON.stringify(change(await place.json('plan'))) ?? 'no JSON');
    const before = contentsOf(place.cwd);
    expect(await place.refused(1, apply)).toMatch(message);
    expect(contentsOf(place.cwd)).toEqual(before);
  });

  test('applies a saved plan, and refuses the saved plan once the spec has changed', async () => {
    const place = emulated(shop, { 'other.yaml': shop.replace('10.20.', '10.30.') });
    await place.out('plan --out plan.json');
    const moved = await place.refused(1, `${apply} -f other.yaml`);
    expect(moved).toContain('Other operations result now for networks.backend');
    await place.out(apply);
    await place.refused(1, apply);
  });
});
