import { describe, expect, test } from 'vitest';
import { isDuplicate } from '../../src/cli/rehearse/trials.ts';
import { some } from '../support/drawn.ts';
import { asksNeedlessly, files, trialsOf } from './rehearse-report.ts';

describe('src/cli/rehearse/trials.ts', () => {
  test.each(
    Object.entries(files),
  )('%s: only failed tasks and server errors without evidence need an operator', async (file, text) => {
    const ends = await trialsOf(file, text, 20, { of: some });

    expect(ends.filter(isDuplicate)).toEqual([]);
    expect(ends.filter(({ converged }) => !converged)).toEqual([]);
    expect(ends.filter(asksNeedlessly)).toEqual([]);
  });
});
