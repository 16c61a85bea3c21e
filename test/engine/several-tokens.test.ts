import { describe, expect, test } from 'vitest';
import { convergence } from '../../bench/convergence.ts';
import { drawn } from '../support/drawn.ts';

describe('src/engine: several tokens', () => {
  test.each(
    drawn([
      [1, 1.02],
      [4, 1.1],
    ]),
  )('with %i tokens, 200 servers take at most %f times as long as the write budget alone', async (tokens, most) => {
    const rows = await convergence(tokens);
    expect(rows.find(({ figure }) => figure.includes('lower bound'))?.value).toBeLessThanOrEqual(most);
    expect(rows.find(({ figure }) => figure.includes('429'))?.value).toBe(0);
  });
});
