import { describe, expect, test } from 'vitest';
import { keyStatusesOf } from '../../src/core/key-status.ts';
import { topLevelKey } from '../../src/core/keys.ts';
import type { Plan } from '../../src/core/plan.ts';

const server = topLevelKey('servers', 'db-1');
const part = `${server}.backup` as typeof server;
const deletion = { verb: 'delete', key: server } as const;
const blocked = (verb: string, code: string) => ({ verb, key: server, code, remedies: [] });
const planWith = (more: object) =>
  ({ operations: [], blocked: [], warnings: [], ...more }) as unknown as Plan;

describe('src/core/key-status.ts', () => {
  test.each([
    ['stays in the project is undeclared', { blocked: [blocked('delete', 'protected')] }, 'undeclared'],
    ['is deleted is pending', { operations: [deletion] }, 'pending'],
    ['no longer exists is waiting', { blocked: [blocked('adopt', 'not_found')] }, 'waiting'],
    ['is replaced is converged', { operations: [{ ...deletion, replacement: 'x' }] }, 'converged'],
    ['does not change is converged', {}, 'converged'],
    ['is released next differs', { warnings: [{ code: 'released', key: part, message: '' }] }, 'differs'],
  ])('a part of a server that %s', (_name, plan, status) => {
    expect(keyStatusesOf({ bindings: [], intents: [], plan: planWith(plan) })(part)).toBe(status);
  });

  test('an operation that only waits is not blocked', () => {
    const waits = planWith({ blocked: [blocked('create', 'dependency_blocked')] });
    expect(keyStatusesOf({ bindings: [], intents: [], plan: waits })(server)).toBe('waiting');
  });

  test('in mode observe, no operation is pending', () => {
    const facts = { bindings: [], intents: [], plan: planWith({ operations: [deletion] }) };
    expect(keyStatusesOf({ ...facts, observing: true })(server)).toBe('differs');
  });
});
