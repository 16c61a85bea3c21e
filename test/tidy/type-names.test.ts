import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

describe('src', () => {
  test('an exported type name has one meaning; the emulator is a second reading of the API', () => {
    const places = globSync('src/**/*.ts', { cwd: root, exclude: ['src/emulator/**'] }).flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const names = text.matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm);
      return [...names].map(([, name = '']) => ({ name, file }));
    });
    const twice = [...Map.groupBy(places, ({ name }) => name)].filter(([, found]) => found.length > 1);
    expect(places.length).toBeGreaterThan(400);
    expect(twice.map(([name, found]) => `${name}: ${found.map(({ file }) => file).join(', ')}`)).toEqual([]);
  });
});
