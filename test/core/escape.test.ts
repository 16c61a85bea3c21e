import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { escapeUnseen, escapeUnseenInLines } from '../../src/core/text.ts';

const hostile = 'a\u001b[31m\u202eb\u200b\u{e0041}\u2028c\u0085';

describe('src/core/text.ts', () => {
  test('an invisible character becomes an escape sequence that JSON reads back', () => {
    const escaped = escapeUnseen(hostile);
    expect(escaped).toBe('a\\u001b[31m\\u202eb\\u200b\\udb40\\udc41\\u2028c\\u0085');
    expect(JSON.parse(`"${escaped}"`)).toBe(hostile);
    expect(parse(`"${escapeUnseen('x\u202ey')}"`)).toBe('x\u202ey');
  });

  test('the ends of lines stay', () => {
    expect(escapeUnseenInLines('a\nb\u0007\n')).toBe('a\nb\\u0007\n');
  });
});
