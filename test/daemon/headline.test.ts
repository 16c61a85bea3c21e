import { describe, expect, test } from 'vitest';
import { headlineOf, titleOf } from '../../src/daemon/http/headline.ts';

const well = { exposed: false, broken: false, leaking: false, since: 0, now: 0 };
const hourMs = 3_600_000;

describe('src/daemon/http/headline.ts', () => {
  test('a project in state converging for more than an hour is a warning, as in its alert', () => {
    expect(titleOf(headlineOf('converging', { ...well, now: hourMs }), 'shop')).toBe('◌ converging · shop');
    expect(titleOf(headlineOf('converging', { ...well, now: hourMs + 1 }), 'shop')).toBe(
      '▲ converging · shop',
    );
    expect(headlineOf('converged', { ...well, now: 2 * hourMs }).level).toBe('good');
  });

  test.each([
    ['unreachable', { ...well, exposed: true, leaking: true, broken: true }, 'bad', 'exposed'],
    ['unreachable', { ...well, leaking: true, broken: true }, 'bad', 'unreachable'],
    ['converged', { ...well, leaking: true, broken: true }, 'bad', 'spec broken'],
    ['awaiting_approval', { ...well, leaking: true }, 'warn', 'awaiting_approval'],
    ['converged', { ...well, leaking: true }, 'warn', 'billed and idle'],
  ] as const)('shows the most severe condition of a project that is %s with %o', (condition, troubles, level, word) => {
    expect(headlineOf(condition, troubles)).toEqual({ level, word });
  });
});
