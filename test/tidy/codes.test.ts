import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { codes } from '../../src/core/codes.ts';

const folder = new URL('..', import.meta.url).pathname;

function testTexts(): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && path !== 'tidy/codes.test.ts')
    .map((path) => readFileSync(join(folder, path), 'utf8'))
    .join('\n');
}

describe('src/core/codes.ts', () => {
  test('a test names every code that a user can get', () => {
    const all = testTexts();
    const missing = Object.keys(codes).filter((code) => !new RegExp(`\\b${code}\\b`).test(all));
    expect(missing).toEqual([]);
  });
});
