import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { shop } from './run.ts';
import { emulated, type Workspace } from './workspace.ts';

const prices = readFileSync(new URL('../../examples/prices.yaml', import.meta.url), 'utf8');

let place: Workspace;
beforeAll(async () => {
  place = emulated(shop, { 'prices.yaml': prices });
  await place.out('apply --yes');
});

describe('src/cli/commands/bill.ts', () => {
  test('CSV quotes a field with a comma, and ends lines as RFC 4180 requires', async () => {
    const lines = (await place.out('bill --offline --format csv')).split('\r\n');
    expect(lines[0]).toMatch(/^month,currency,key,kind,id,/);
    expect(lines).toHaveLength(5);
    expect(lines.at(-1)).toBe('');
  });

  test('the SVG shows the billed time of each resource', async () => {
    const svg = await place.out('bill --offline --prices prices.yaml --format svg');
    expect(svg).toMatch(/^<svg [\s\S]*billed<\/text>[\s\S]*<title>servers\.web-1 0\.\d\d: 20/);
  });

  test.each([
    ['2026-13', 'It must be a month, such as 2026-11.'],
    ['2999-01', /2999-01 has not begun\. Choose a month up to 20/],
  ])('--month %s is a usage error', async (month, message) => {
    expect(await place.refused(64, `bill --offline --month ${month}`)).toMatch(message);
  });
});
