import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { part } from '../../src/core/decimal.ts';
import type { Plan } from '../../src/core/plan.ts';
import { folderWith, inProcess, oneNetwork, shop } from './run.ts';

const prices = readFileSync(new URL('../../examples/prices.yaml', import.meta.url), 'utf8');
let cwd: string;

async function planned(args: readonly string[]): Promise<Plan> {
  const { stdout } = await inProcess(['plan', '--emulator', '--format', 'json', ...args], { cwd });
  return JSON.parse(stdout) as Plan;
}

beforeAll(() => {
  cwd = folderWith({ 'vdcsync.yaml': shop, 'prices.yaml': prices });
});

describe('src/cli', () => {
  test('a price list adds prices to the catalogue, before and after', async () => {
    const { cost } = await planned(['--prices', 'prices.yaml']);
    // 2 cores, 4 GB, 40 GB of disk, an address and a card.
    expect(cost).toMatchObject({ known_monthly_delta: '25.00', unknown: [] });
    expect(cost.monthly).toEqual({
      currency: 'EUR',
      known_before: '0.00',
      known_after: '25.00',
      unknown: [],
    });

    expect((await inProcess(['apply', '--emulator', '--yes', '--prices', 'prices.yaml'], { cwd })).code).toBe(
      0,
    );
    const after = await planned(['--prices', 'prices.yaml']);
    expect(after.cost.monthly).toMatchObject({ known_before: '25.00', known_after: '25.00' });
    const { stdout } = await inProcess(['status', '--emulator', '--prices', 'prices.yaml'], { cwd });
    expect(stdout).toContain('Monthly cost of managed resources: 25.00 EUR');
    expect(stdout).toMatch(
      /\nIn \w+ \d{4}: 0\.\d\d EUR so far, run rate 25\.00 a month, forecast \d+\.\d\d\n/,
    );
    expect(after.cost.month).toMatchObject({ run_rate: '25.00', incomplete: [] });
  });

  test('without a price list, a resource without a price is named and not counted', async () => {
    const { cost } = await planned([]);
    expect(cost.month).toBeUndefined();
    expect(cost.monthly).toEqual({
      currency: null,
      known_before: '0.00',
      known_after: '0.00',
      unknown: ['ips.web', 'servers.web-1', 'servers.web-1.network_interfaces.backend'],
    });
  });

  test('the savings of a deletion, and the limit of the additions', async () => {
    const destroyed = await inProcess(['destroy', '--emulator', '--dry-run', '--prices', 'prices.yaml'], {
      cwd,
    });
    expect(destroyed.stdout).toContain('Cost: -25.00 EUR a month, from 25.00 to 0.00');
    const fresh = folderWith({
      'vdcsync.yaml': shop.replace('settings: {', 'settings: { max_monthly_increase: 20,'),
      'prices.yaml': prices,
    });
    const capped = await inProcess(['plan', '--emulator', '--prices', 'prices.yaml'], { cwd: fresh });
    expect(capped.stdout).toContain('[max_monthly_increase]');
  });

  test('an address that stays behind is idle since its server went', async () => {
    const kept = folderWith({
      'vdcsync.yaml':
        shop
          .replace('servers:', 'servers: {}\nx:')
          .split('\nx:')[0]
          ?.replace('max_deletions: 9', 'max_deletions: 9, prune: true') ?? '',
      'first.yaml': shop,
    });
    await inProcess(['apply', '--emulator', '--yes', '-f', 'first.yaml'], { cwd: kept });
    expect((await inProcess(['apply', '--emulator', '--yes'], { cwd: kept })).code).toBe(0);
    const { stdout } = await inProcess(['status', '--emulator', '--format', 'json'], { cwd: kept });
    const { idle, state } = JSON.parse(stdout);
    expect(idle).toMatchObject([{ key: 'ips.web', since: expect.any(String) }]);
    expect(Date.parse(idle[0].since)).toBeLessThanOrEqual(Date.parse(state.changed_at));
  });

  test('an amount that is none is refused with its place', async () => {
    const wrong = folderWith({
      'vdcsync.yaml': shop,
      'p.yaml': 'address: cheap\nservers: {a: {corse: 1}}\n',
    });
    const { code, stderr } = await inProcess(['plan', '--emulator', '--prices', 'p.yaml'], { cwd: wrong });
    expect(code).toBe(1);
    expect(stderr).toContain('p.yaml:1:1');
    expect(stderr).toContain('corse');
  });

  test('parts are exact', () => {
    expect(part('2.50', 8192, 1024)).toBe('20.0000');
    expect(part('0.1', 3)).toBe('0.3000');
    expect(part('10', 1, 3)).toBe('3.3333');
  });

  describe('settings.max_monthly_increase where a price is not known', () => {
    const capped = () =>
      folderWith({
        'vdcsync.yaml': shop.replace('settings: {', 'settings: { max_monthly_increase: 50,'),
        'prices.yaml': prices,
      });
    const call = (folder: string, ...args: string[]) =>
      inProcess(['plan', '--emulator', ...args], { cwd: folder });

    test('the plan says first that the cap cannot be checked, and for what', async () => {
      const folder = capped();
      const { stdout } = await call(folder);
      const [, , first = ''] = stdout.split('\n');
      expect(first).toContain('[cap_unchecked]');
      for (const key of ['ips.web', 'servers.web-1']) expect(first).toContain(key);
      const { warnings, summary } = JSON.parse((await call(folder, '--format', 'json')).stdout) as Plan;
      expect(warnings[0]).toMatchObject({ code: 'cap_unchecked', key: null });
      expect(summary).toMatchObject({ blocked: 0 });
      const markdown = (await call(folder, '--format', 'markdown')).stdout;
      expect(markdown.indexOf('cap_unchecked')).toBeLessThan(markdown.indexOf('####'));
    });

    test('with prices the cap is checked and there is no warning', async () => {
      const folder = capped();
      const { stdout } = await call(folder, '--format', 'json', '--prices', 'prices.yaml');
      expect((JSON.parse(stdout) as Plan).warnings).toEqual([]);
    });

    test('without a cap there is no warning', async () => {
      const { warnings } = await planned([]);
      expect(warnings.map(({ code }) => code)).not.toContain('cap_unchecked');
    });

    test('what costs nothing new needs no price', async () => {
      const folder = capped();
      writeFileSync(
        `${folder}/vdcsync.yaml`,
        oneNetwork.replace('networks', 'settings: { max_monthly_increase: 50 }\nnetworks'),
      );
      const { stdout } = await call(folder, '--format', 'json');
      expect((JSON.parse(stdout) as Plan).warnings).toEqual([]);
    });
  });
});
