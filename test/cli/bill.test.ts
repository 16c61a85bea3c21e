import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { folderWith, inProcess, shop } from './run.ts';

const prices = readFileSync(new URL('../../examples/prices.yaml', import.meta.url), 'utf8');
let cwd: string;

async function bill(...args: readonly string[]) {
  const { code, stdout, stderr } = await inProcess(['bill', ...args], { cwd });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

beforeAll(async () => {
  cwd = folderWith({ 'vdcsync.yaml': shop, 'prices.yaml': prices });
  await inProcess(['apply', '--emulator', '--yes'], { cwd });
});

describe('src/cli/commands/bill.ts', () => {
  test('as CSV, a field with a comma is quoted, and lines end as RFC 4180 requires', async () => {
    const lines = (await bill('--offline', '--format', 'csv')).split('\r\n');
    expect(lines[0]).toMatch(/^month,currency,key,kind,id,/);
    expect(lines).toHaveLength(5);
    expect(lines.at(-1)).toBe('');
  });

  test('as a picture, it shows the time of each resource', async () => {
    const svg = await bill('--offline', '--prices', 'prices.yaml', '--format', 'svg');
    expect(svg).toMatch(/^<svg [\s\S]*billed<\/text>[\s\S]*<title>servers\.web-1 0\.\d\d: 20/);
  });

  test('a malformed month and a month that has not begun are slips in the call', async () => {
    const malformed = await inProcess(['bill', '--month', '2026-13'], { cwd });
    expect(malformed).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('It must be a month, such as 2026-11.'),
    });
    const future = await inProcess(['bill', '--month', '2999-01', '--offline'], { cwd });
    expect(future).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/2999-01 has not begun\. Choose a month up to 20/),
    });
  });
});
