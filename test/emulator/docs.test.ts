import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadFaults } from '../../src/emulator/faults-file.ts';
import { allRoutes } from '../../src/emulator/pipeline.ts';
import { DEFAULT_PROFILE, KNOWN_OPERATIONS, loadProfile } from '../../src/emulator/profile.ts';

describe('docs/emulator.md', () => {
  const text = readFileSync(new URL('../../docs/emulator.md', import.meta.url), 'utf8');

  test('names every operation', () => {
    const [, list = ''] = /Operations: ([\s\S]*?), and those a\s+profile adds/.exec(text) ?? [];
    const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    expect(named.sort()).toEqual(
      allRoutes(DEFAULT_PROFILE)
        .map(({ name }) => name)
        .sort(),
    );
  });

  test('shows a faults file that loads', () => {
    const [, yaml = ''] = /<<'YAML'\n([\s\S]*?)\nYAML/.exec(text) ?? [];
    expect(loadFaults(yaml).faults).toHaveLength(3);
  });

  test('shows a profile with the places the emulator serves by itself', () => {
    const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(text) ?? [];
    expect(loadProfile(yaml).operations).toEqual(KNOWN_OPERATIONS);
  });
});
