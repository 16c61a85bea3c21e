import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fleetBounds } from '../../src/daemon/sources/bounds.ts';
import { SpecFolder } from '../../src/daemon/sources/spec-folder.ts';
import { systemClock } from '../../src/platform/system.ts';
import { folderWith } from '../cli/run.ts';

const names = ['a.yaml', 'b.yaml', 'c.yaml'];
const files = Object.fromEntries(names.map((name) => [name, `of ${name}`]));
/** Far from the moment at which the files were written, so that their attributes count. */
const later = { ...systemClock, now: () => systemClock.now() + 3_600_000 };

describe('src/daemon/sources/spec-folder.ts', () => {
  test.each([
    ['young', systemClock],
    ['old', later],
  ])('of %s files, a changed file is another value, and the other files stay the same values', async (_, clock) => {
    const folder = folderWith(files);
    const specs = new SpecFolder(folder, 'specs', clock);
    const first = await specs.read();
    const revision = await specs.revision('all');
    expect(await specs.revision('some')).toBe(revision);
    // Of the same length, and as editors save.
    writeFileSync(join(folder, 'new'), 'is b.yaml');
    renameSync(join(folder, 'new'), join(folder, 'b.yaml'));
    const second = await specs.read();
    expect(second.map((spec, index) => spec === first[index])).toEqual([true, false, true]);
    expect(second[1]).toEqual({
      name: 'specs/b.yaml',
      sources: [{ file: 'specs/b.yaml', text: 'is b.yaml' }],
    });
    const changed = await specs.revision('all');
    expect(changed).not.toBe(revision);
    expect(await specs.revision('all')).toBe(changed);
  });

  test('a check of some files finds added and removed files at once, and a changed file within a few checks', async () => {
    const many = Array.from({ length: 2_500 }, (_, index) => [`${10_000 + index}.yaml`, 'text'] as const);
    const folder = folderWith(Object.fromEntries(many));
    const specs = new SpecFolder(folder, 'specs', later, { most: fleetBounds });
    let revision = await specs.revision('all');
    const hasMoved = async () => {
      const before = revision;
      revision = await specs.revision('some');
      return revision !== before;
    };
    expect([await hasMoved(), await hasMoved(), await hasMoved()]).toEqual([false, false, false]);
    writeFileSync(join(folder, 'z.yaml'), 'z');
    expect(await hasMoved()).toBe(true);
    rmSync(join(folder, '10000.yaml'));
    expect(await hasMoved()).toBe(true);
    writeFileSync(join(folder, '12400.yaml'), 'other');
    const checks = [await hasMoved(), await hasMoved(), await hasMoved()];
    expect(checks.filter(Boolean)).toHaveLength(1);
    const last = (await specs.read()).find(({ name }) => name === 'specs/12400.yaml');
    expect(last).toMatchObject({ sources: [{ text: 'other' }] });
  });

  test('detects a changed link, a removed file and an added file', async () => {
    const folder = folderWith({ '..one/x': 'one', '..two/x': 'two', 'a.yaml': 'a' });
    const link = join(folder, 'linked.yaml');
    symlinkSync('..one/x', link);
    const specs = new SpecFolder(folder, 'specs', later, { most: fleetBounds });
    const texts = async () =>
      (await specs.read()).map((spec) => ('sources' in spec ? spec.sources[0]?.text : undefined));
    expect(await texts()).toEqual(['a', 'one']);
    symlinkSync('..two/x', join(folder, 'next'));
    renameSync(join(folder, 'next'), link);
    expect(await texts()).toEqual(['a', 'two']);
    rmSync(join(folder, 'a.yaml'));
    writeFileSync(join(folder, 'z.yaml'), 'z');
    expect(await texts()).toEqual(['two', 'z']);
  });
});
