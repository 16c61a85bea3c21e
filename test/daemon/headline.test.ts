import { describe, expect, test } from 'vitest';
import { headlineOf, titleOf } from '../../src/daemon/http/headline.ts';

const well = { exposed: false, broken: false, leaking: false, since: 0, now: 0 };
const hourMs = 3_600_000;

describe('src/daemon/http/headline.ts', () => {
  test('a project that converges for more than an hour is a warning, as in its alert', () => {
    expect(titleOf(headlineOf('converging', { ...well, now: hourMs }), 'shop')).toBe('◌ converging · shop');
    expect(titleOf(headlineOf('converging', { ...well, now: hourMs + 1 }), 'shop')).toBe(
      '▲ converging · shop',
    );
    expect(headlineOf('converged', { ...well, now: 2 * hourMs }).level).toBe('good');
  });

  test.each([
    [{ ...well, exposed: true, leaking: true, broken: true }, 'exposed'],
    [{ ...well, leaking: true, broken: true }, 'billed and idle'],
    [{ ...well, broken: true }, 'spec broken'],
  ])('a danger is worse than the condition of a project: %o', (troubles, word) => {
    expect(headlineOf('converged', troubles)).toEqual({ level: 'bad', word });
  });
});
