import { describe, expect, test } from 'vitest';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { resourcesOf } from '../../src/view/resources.ts';

const plan = { operations: [], blocked: [], warnings: [] };
const boundAt = (ms: number) => ({
  ...{ plan, refreshedAt: 1_000 },
  world: { networks: [], observed: new Map() },
  known: {
    bindings: [{ key: 'ips.web', kind: 'ip', id: '5001', identity: {}, boundAt: ms }],
    ...{ intents: [], claims: [] },
  },
});

describe('src/view/resources.ts', () => {
  test.each([
    ['before the refresh differs', 900, 'differs'],
    ['in the millisecond of the refresh is converged', 1_000, 'converged'],
    ['after the refresh is converged', 1_100, 'converged'],
  ])('an address that no list shows, and that was bound %s', (_name, ms, standing) => {
    const facts = boundAt(ms) as unknown as ProjectFacts;
    expect(resourcesOf(facts, { blocked: [], addresses: [] })).toMatchObject([{ standing }]);
  });
});
