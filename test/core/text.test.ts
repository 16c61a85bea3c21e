import { describe, expect, test } from 'vitest';
import { capitalised, counted } from '../../src/core/text.ts';

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
});
