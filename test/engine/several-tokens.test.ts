import { describe, expect, test } from 'vitest';
import { convergence } from '../../bench/convergence.ts';
import { drawn } from '../support/drawn.ts';

describe('src/engine: several tokens', () => {
  test.each(
    drawn([
      [1, 100, 1.02],
      [4, 60, 1.1],
    ]),
  )('with %i tokens, %i servers take at most %f times as long as the write budget alone', async (tokens, servers, most) => {
    const rows = await convergence(tokens, servers);
    expect(rows.find(({ figure }) => figure.includes('lower bound'))?.value).toBeLessThanOrEqual(most);
    expect(rows.find(({ figure }) => figure.includes('429'))?.value).toBe(0);
  });
});
