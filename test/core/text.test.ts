import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { capitalised, counted, escapeUnseen, escapeUnseenInLines, flowYaml } from '../../src/core/text.ts';

const hostile = 'a\u001b[31m\u202eb\u200b\u{e0041}\u2028c\u0085';

describe('src/core/text.ts', () => {
  test('only the first letter changes', () => {
    expect(capitalised('the API answers')).toBe('The API answers');
    expect(capitalised('`prune` is false')).toBe('`prune` is false');
    expect(capitalised('vdcsync stops')).toBe('vdcsync stops');
    expect(capitalised('')).toBe('');
  });

  test('a count has the singular for one', () => {
    expect([0, 1, 2].map((count) => counted(count, 'write'))).toEqual(['0 writes', '1 write', '2 writes']);
    expect(counted(2, 'address', 'addresses')).toBe('2 addresses');
  });

  test('an invisible character becomes an escape sequence that JSON reads back', () => {
    const escaped = escapeUnseen(hostile);
    expect(escaped).toBe('a\\u001b[31m\\u202eb\\u200b\\udb40\\udc41\\u2028c\\u0085');
    expect(JSON.parse(`"${escaped}"`)).toBe(hostile);
    expect(parse(`"${escapeUnseen('x\u202ey')}"`)).toBe('x\u202ey');
  });

  test('line ends stay unchanged', () => {
    expect(escapeUnseenInLines('a\nb\u0007\n')).toBe('a\nb\\u0007\n');
  });

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
    ],
    ...['a: b', 'a #b', 'it\'s "so"', '- x', '[x]', 'a, b', 'x:', 'zwölf', 'line\nbreak', '-1', '1.', ''],
    80,
    true,
  ])('a YAML reader reads %j back unchanged', (value) => {
    expect(parse(flowYaml(value))).toEqual(value);
    expect(parse(`{a: ${flowYaml(value)}, b: 1}`)).toEqual({ a: value, b: 1 });
  });
});
