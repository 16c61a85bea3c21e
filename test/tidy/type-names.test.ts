import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
/** Each local type that is renamed is one less. */
const most = 17;

/** The declarations of types at the top level of the files, but for the emulator, a second reading of the API. */
const places = globSync('src/**/*.ts', { cwd: root, exclude: ['src/emulator/**'] }).flatMap((file) => {
  const text = readFileSync(join(root, file), 'utf8');
  const names = text.matchAll(/^(export )?(?:abstract )?(?:interface|type|class) (\w+)/gm);
  return [...names].map(([, exported, name = '']) => ({ name, file, isExported: exported !== undefined }));
});
const exported = places.filter(({ isExported }) => isExported);

describe('src', () => {
  test('an exported type name has one meaning', () => {
    const twice = [...Map.groupBy(exported, ({ name }) => name)].filter(([, found]) => found.length > 1);
    expect(exported.length).toBeGreaterThan(400);
    expect(twice.map(([name, found]) => `${name}: ${found.map(({ file }) => file).join(', ')}`)).toEqual([]);
  });

  test(`a local type has no name of an exported type, except for ${most} in engine and plan`, () => {
    const names = new Set(exported.map(({ name }) => name));
    const repeated = places.filter(({ name, isExported }) => !isExported && names.has(name));
    const [old, found] = [true, false].map((wanted) =>
      repeated
        .filter(({ file }) => /^src\/(engine|plan)\//.test(file) === wanted)
        .map(({ name, file }) => `${name}: ${file}`),
    );
    expect(found).toEqual([]);
    expect(old?.length).toBeLessThanOrEqual(most);
  });
});
