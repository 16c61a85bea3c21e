import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { flowYaml, restoring } from '../../src/core/flow-yaml.ts';
import type { ResourceKey } from '../../src/core/keys.ts';

const key = 'servers.web' as ResourceKey;

describe('core/flow-yaml', () => {
  test.each([
    { ip: 'web' },
    { ip: '12' },
    ['l40s-2', 'l40s-1'],
    [101, 102],
    ...[
      '10.20.0.0/24',
      'ubuntu-24.04',
      'two words',
      ' edge ',
      '1e3',
      '0x1f',
      '0o17',
      '.5',
      'true',
      'NULL',
      '~',
      '',
    ],
    ...['a: b', 'a #b', 'it\'s "so"', '- x', '[x]', 'a, b', 'x:', 'zwölf', 'line\nbreak', '-1', '1.'],
    80,
    true,
  ])('%j is read back as it was', (value) => {
    expect(parse(flowYaml(value))).toEqual(value);
    expect(parse(`{a: ${flowYaml(value)}, b: 1}`)).toEqual({ a: value, b: 1 });
  });

  test('an address is restored in the words of its entry', () => {
    const was = (from: unknown) => restoring([{ path: 'public_ipv4', from, to: 'ips.other' }], key);
    expect(was('ips.server-2001')).toBe('restore `public_ipv4: {ip: server-2001}` in servers.web');
    expect(was('new')).toBe('restore `public_ipv4: {new: true}` in servers.web');
    expect(was(null)).toBe('take `public_ipv4` out of servers.web');
  });

  test('what was not there goes, beside what comes back', () => {
    const changes = [
      { path: 'cores', from: 2, to: 4 },
      { path: 'name', from: 'a: b', to: 'c' },
      { path: 'plan_id', from: null, to: 52 },
    ];
    expect(restoring(changes, key)).toBe(
      'restore `cores: 2`, `name: "a: b"` in servers.web, without `plan_id`',
    );
  });
});
