import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { flowYaml } from '../../src/core/text.ts';

describe('src/core/text.ts', () => {
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
});
