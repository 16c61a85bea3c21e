import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { part } from '../../src/core/decimal.ts';
import { oneNetwork, shop } from './run.ts';
import { emulated, type Workspace } from './workspace.ts';

const prices = readFileSync(new URL('../../examples/prices.yaml', import.meta.url), 'utf8');
const priced = (spec: string) => emulated(spec, { 'prices.yaml': prices });
const capped = (increase: number) =>
  priced(shop.replace('settings: {', `settings: { max_monthly_increase: ${increase},`));

let place: Workspace;
beforeAll(() => {
  place = priced(shop);
});

describe('src/cli', () => {
  test('a price list adds prices to the catalogue, before and after apply', async () => {
    const { cost } = await place.json('plan --prices prices.yaml');
    expect(cost).toMatchObject({ known_monthly_delta: '25.00', unknown: [] });
    // 2 cores, 4 GB, 40 GB of disk, an address and a card.
    const monthly = { currency: 'EUR', known_before: '0.00', known_after: '25.00', unknown: [] };
    expect(cost.monthly).toEqual(monthly);
    await place.out('apply --yes --prices prices.yaml');
    const after = await place.json('plan --prices prices.yaml');
    expect(after.cost.monthly).toMatchObject({ known_before: '25.00', known_after: '25.00' });
    const stdout = await place.out('status --prices prices.yaml');
    expect(stdout).toContain('Monthly cost of managed resources: 25.00 EUR');
    expect(stdout).toMatch(
      /\nIn \w+ \d{4}: 0\.\d\d EUR so far, run rate 25\.00 a month, forecast \d+\.\d\d\n/,
    );
    expect(after.cost.month).toMatchObject({ run_rate: '25.00', incomplete: [] });
  });

  test('without a price list, the cost names a resource without a price and does not count it', async () => {
    const { cost } = await place.json('plan');
    expect(cost.month).toBeUndefined();
    expect(cost.monthly).toEqual({
      ...{ currency: null, known_before: '0.00', known_after: '0.00' },
      unknown: ['ips.web', 'servers.web-1', 'servers.web-1.network_interfaces.backend'],
    });
  });

  test('shows the savings of a deletion, and applies the cap on additional cost', async () => {
    const destroyed = await place.out('destroy --dry-run --prices prices.yaml');
    expect(destroyed).toContain('Cost: -25.00 EUR a month, from 25.00 to 0.00');
    expect(await capped(20).out('plan --prices prices.yaml')).toContain('[max_monthly_increase]');
  });

  test('a kept address is idle since the deletion of its server', async () => {
    const [head = ''] = shop.split('servers:');
    const kept = emulated(head.replace('max_deletions: 9', 'max_deletions: 9, prune: true'), {
      'first.yaml': shop,
    });
    await kept.out('apply --yes -f first.yaml');
    await kept.out('apply --yes');
    const { idle, state } = await kept.json('status');
    expect(idle).toMatchObject([{ key: 'ips.web', since: expect.any(String) }]);
    expect(Date.parse(idle[0].since)).toBeLessThanOrEqual(Date.parse(state.changed_at));
  });

  test('reports an invalid price with its position in the file', async () => {
    const wrong = emulated(shop, { 'p.yaml': 'address: cheap\nservers: {a: {corse: 1}}\n' });
    expect(await wrong.refused(1, 'plan --prices p.yaml')).toMatch(/p\.yaml:1:1[\s\S]*corse/);
  });

  test('calculates a part of a price exactly', () => {
    expect(part('2.50', 8192, 1024)).toBe('20.0000');
    expect(part('0.1', 3)).toBe('0.3000');
    expect(part('10', 1, 3)).toBe('3.3333');
  });

  describe('settings.max_monthly_increase with an unknown price', () => {
    test('the plan first warns that the cap is unchecked, and names the unpriced resources', async () => {
      const unchecked = capped(50);
      const [, , first = ''] = (await unchecked.out('plan')).split('\n');
      for (const text of ['[cap_unchecked]', 'ips.web', 'servers.web-1']) expect(first).toContain(text);
      const { warnings, summary } = await unchecked.json('plan');
      expect(warnings[0]).toMatchObject({ code: 'cap_unchecked', key: null });
      expect(summary).toMatchObject({ blocked: 0 });
      const markdown = await unchecked.out('plan --format markdown');
      expect(markdown.indexOf('cap_unchecked')).toBeLessThan(markdown.indexOf('####'));
    });

    test('with prices, the plan checks the cap and has no warning', async () => {
      expect((await capped(50).json('plan --prices prices.yaml')).warnings).toEqual([]);
    });

    test('without a cap, the plan has no warning', async () => {
      expect(await place.out('plan --format json')).not.toContain('cap_unchecked');
    });

    test('a plan without additional cost needs no price', async () => {
      const free = oneNetwork.replace('networks', 'settings: { max_monthly_increase: 50 }\nnetworks');
      expect((await priced(free).json('plan')).warnings).toEqual([]);
    });
  });
});
