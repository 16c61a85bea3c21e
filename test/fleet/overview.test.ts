import { describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/daemon/fleet/board.ts';
import { summaryOf, unseen } from '../../src/daemon/http/app.ts';

const own = unseen(1, 0);

function assignment(exposed: boolean, worker?: string): Assignment {
  const memory = { history: { condition: 'converging', conditionSince: 5, blocked: 2, exposed, endedAt: 7 } };
  return { project: 1, worker, since: undefined, memory: memory as Assignment['memory'] };
}

describe('src/daemon/http/app.ts', () => {
  test('a line of the overview shows the results of the last replica that worked on the project', () => {
    const shown = { condition: 'converging', since: 5, reconciledAt: 7, blocked: 2, exposed: true };
    expect(summaryOf(own, assignment(true), 'b')).toMatchObject(shown);
    const stale = { ...own, exposed: true };
    expect(summaryOf(stale, assignment(false), 'b').exposed).toBe(false);
    expect(summaryOf(stale, assignment(false, 'a'), 'b').exposed).toBe(false);
  });

  test('a line of the overview shows the plan of this replica while the replica works on the project', () => {
    expect(summaryOf({ ...own, exposed: true }, assignment(false, 'b'), 'b').exposed).toBe(true);
    expect(summaryOf(own, undefined, 'b')).toEqual(own);
  });
});
