import { beforeAll, describe, expect, test } from 'vitest';
import { some } from '../support/drawn.ts';
import { type Cell, operations, playCells } from './incidents.ts';
import { writes } from './operations.ts';
import { identified } from './rules/questions.ts';

/** The operations whose resource no list identifies. */
const unidentified = operations
  .filter(({ write }) => !identified.has(writes[write].name))
  .map(({ label }) => label);

/** Cells in which only an operator can know the outcome. */
const known: Readonly<Record<string, readonly string[]>> = {
  '500 before the effect': ['create server without address', 'take server image'],
  '500 after the effect': unidentified,
  '503 for 10 min': ['create server without address', 'take server image', 'delete backup'],
  'task fails': ['take server image'],
  'CI job killed, rerun from an empty state': ['delete backup', 'resize server'],
};

describe.each([false, true])('src/simulation: incidents, exclusive: %s', (exclusive) => {
  let cells: readonly Cell[];
  beforeAll(async () => {
    cells = await playCells({ exclusive, of: some });
  });

  test('each incident occurs, breaks no rule and causes no second purchase', () => {
    expect(cells.filter(({ failure }) => failure !== undefined)).toEqual([]);
  });

  test('asks an operator only in known cases where no read or key can prove the outcome', () => {
    const asked = cells.filter(({ end }) => end === 'operator');

    expect(asked.filter(({ incident, operation }) => known[incident]?.includes(operation) !== true)).toEqual(
      [],
    );
  });
});
