import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Intent } from '../../../src/core/state.ts';
import {
  holdsAnother,
  incarnationOf,
  incarnationsBeyond,
  isInScope,
  lastAttempt,
  lastCreation,
  usedUp,
} from '../../../src/engine/claims/scope.ts';
import type { Run } from '../../../src/engine/run.ts';
import { intentOf } from '../intents/stub-run.ts';

const key = 'servers.a' as ResourceKey;
/** A closed creation with these numbers in its key. */
const creation = (incarnation: string, attempt = 0, more: object = {}, scope?: string) =>
  intentOf({ key, phase: 'closed', outcome: 'absent', incarnation, attempt, ...more }, scope);
const elsewhere = (incarnation: string, attempt = 0, more: object = {}) =>
  creation(incarnation, attempt, more, 'x');
const done = { outcome: 'done' };

/** A run without a scope, whose state has these intents, newest first. */
function run(past: readonly Intent[], gone = 0): Run {
  const attempts = (incarnation: string) =>
    past.flatMap((each) => (each.incarnation === incarnation ? [each.attempt] : []));
  const store = {
    intents: async (query: { key?: string }) => past.filter((each) => each.key === query.key),
    incarnation: async () => gone,
    lastAttempt: async (_key: string, _verb: string, of: string) => Math.max(-1, ...attempts(of)),
  };
  return { desired: { projectId: 4711 }, deps: { store } } as unknown as Run;
}

describe('src/engine/claims/scope.ts', () => {
  test('a creation is in the scope whose key it has', () => {
    expect([creation('0'), elsewhere('0')].map((each) => isInScope(run([]), each))).toEqual([true, false]);
  });

  const conflict = (because: string, question: object = { conflict: true }) =>
    creation('0', 0, { because, unconfirmed: { why: 'lost', question } });
  const ended = (because: string) => creation('0', 0, { outcome: 'void', because });
  const from = (elsewhere: number) => creation('0', 0, { ...done, elsewhere });
  const reported = creation('0', 0, { because: 'reported_absent' });
  test.each<[string, readonly Intent[], readonly [gone: number, incarnation: number, elsewhere: number]]>([
    ['without creations, the first', [], [2, 0, 2]],
    ['in one scope, as the state counts', [creation('1', 0, done)], [2, 2, 0]],
    ['after a key that was not used, the same', [creation('1')], [2, 0, 2]],
    ['after resources with other names, the next', [creation('0', 0, done)], [3, 1, 2]],
    ['after a taken key, the next', [ended('taken')], [1, 1, 0]],
    ['after a key that another state used, this one', [ended('used_elsewhere')], [1, 0, 1]],
    ['after a reserved key, next', [ended('reserved')], [1, 1, 0]],
    ['after a reserved key that was declared absent, the next', [conflict('reported_absent')], [1, 1, 0]],
    ['after a reserved key that was given up, the same', [conflict('odd')], [1, 0, 1]],
    ['after a key that was asked, and whose resource is declared absent, the same', [reported], [1, 0, 1]],
    ['after one without an answer, declared absent, the same', [conflict('reported_absent', {})], [1, 0, 1]],
    ['of a new scope, the first', [elsewhere('1'), elsewhere('0')], [2, 0, 2]],
    ['in a scope that began later, counted from there', [from(2), elsewhere('1')], [3, 1, 2]],
    ['that began ahead of the count, the first', [creation('0', 0, { elsewhere: 1 })], [0, 0, 1]],
    ['of a returning scope, at its end', [elsewhere('0'), creation('1'), creation('0', 0, done)], [3, 1, 2]],
    ['after a resource', [elsewhere('0'), creation('1', 0, done)], [3, 2, 1]],
    ['after a resource that is gone', [elsewhere('0'), creation('0', 0, { because: 'gone' })], [2, 1, 1]],
    ['after an accepted creation', [elsewhere('0'), creation('0', 0, { answer: { id: '1' } })], [2, 1, 1]],
    ['after a resource that was found under its key', [elsewhere('0'), ended('found')], [2, 1, 1]],
    ['in a later scope whose first key it is', [from(1)], [1, 0, 1]],
    [
      'of a scope that returns after one that began later, as the state counts',
      [elsewhere('0'), from(1)],
      [1, 1, 0],
    ],
    ['without that of another resource', [creation('1', 0, { ...done, key: 'servers.b' })], [1, 0, 1]],
    ['without a deletion', [creation('1', 0, { ...done, verb: 'delete' })], [1, 0, 1]],
    ['never above the count', [elsewhere('0'), creation('0', 0, done)], [0, 0, 0]],
    ['after a void creation, the first', [elsewhere('0'), creation('1', 0, { outcome: 'void' })], [2, 0, 2]],
  ])('the incarnation %s', async (_name, past, [gone, incarnation, elsewhere]) => {
    expect(await incarnationOf(run(past, gone), key)).toEqual({ incarnation, elsewhere });
  });

  test('the next incarnation of a new scope is its first', async () => {
    const of = run([elsewhere('0', 0, done)]);
    expect(await incarnationOf(of, key, 1)).toEqual({ incarnation: 0, elsewhere: 1 });
    expect(await incarnationOf(run([creation('0', 0, done)]), key, 1)).toEqual({
      incarnation: 1,
      elsewhere: 0,
    });
  });

  test.each<[string, readonly Intent[], number]>([
    ['no creation', [], -1],
    ['creations in this scope', [creation('0', 1), creation('0')], 1],
    ['a question in another scope', [elsewhere('0')], -1],
    ['both', [elsewhere('0', 4), creation('0', 2), creation('1', 7)], 2],
    ['a creation without effect', [elsewhere('0', 4), creation('0', 2, { outcome: 'void' })], -1],
  ])('the last attempt after %s', async (_name, past, expected) => {
    expect(await lastAttempt(run(past), key, '0')).toBe(expected);
  });

  test.each([
    ['of the next incarnation', '2', 1],
    ['of the present one', '1', 0],
    ['of an earlier one', '0', 0],
  ])('a write %s: how far it is ahead', async (_name, incarnation, expected) => {
    const of = run([creation('0', 0, done)], 1);
    expect(await incarnationsBeyond(of, { key, incarnation })).toBe(expected);
  });

  test.each([
    ['of the present incarnation', '1', undefined, 1],
    ['of an earlier one', '0', undefined, 1],
    ['of a later one, which an older copy of the state knows from its question', '3', undefined, 3],
    ['that replaces the present one', '2', '7', 1],
    ['of a later one, that replaces a resource', '4', '7', 3],
  ])('after a write %s, the state counts its incarnation', async (_name, incarnation, replaces, count) => {
    const of = run([creation('0', 0, done)], 1);
    const asked = { key, incarnation, ...(replaces && { replaces }) };
    expect(await usedUp(of, asked)).toEqual(Array(count).fill({ type: 'next_incarnation', key }));
  });

  test('the last creation has ended, in this scope', async () => {
    const open = intentOf({ key, phase: 'unknown', incarnation: '3' });
    const [second, first] = [creation('1', 0, done), creation('0')];
    const of = run([open, elsewhere('2'), second, first]);
    expect(await lastCreation(of, key)).toBe(second);
    expect(await lastCreation(of, key, ({ outcome }) => outcome === 'absent')).toBe(first);
    expect(await lastCreation(run([open, elsewhere('2')]), key)).toBeUndefined();
  });

  const taken = { because: 'taken', outcome: 'void' };
  test.each<[string, readonly Intent[], boolean]>([
    ['refused this creation', [creation('0', 0, taken)], true],
    ['refused it once', [creation('0', 0, { because: 'odd' }), creation('0', 0, taken)], true],
    ['refused a question', [creation('0', 0, { ...taken, sends: 0 })], false],
    ['refused the creation under another key', [creation('0', 1, taken)], false],
    ['answered the creation', [creation('0', 0, { because: 'found' })], false],
    ['knows nothing', [], false],
  ])('a key of which the API %s holds another answer: %s', async (_name, past, is) => {
    expect(await holdsAnother(run(past), key, creation('0').idempotencyKey)).toBe(is);
  });
});
