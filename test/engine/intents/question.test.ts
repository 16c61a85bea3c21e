import { describe, expect, test } from 'vitest';
import type { Intent, WhyUnknown } from '../../../src/core/state.ts';
import {
  asksKey,
  conflicting,
  failureOf,
  isDormant,
  isReplacing,
  isReplay,
  isServerError,
  isSettledByKey,
  keyIsFresh,
  maybeUsedKey,
  questionOf,
  sentNow,
  sinceSentMs,
  unasked,
} from '../../../src/engine/intents/endings.ts';
import type { Run } from '../../../src/engine/run.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { hour } from '../shop.ts';

describe('src/engine/intents/endings.ts', () => {
  const sentAt = 1_000 * hour;

  /** A run at this many hours after the first send, by the clock of the machine and by the clock of the API. */
  function runAt(hours: number, apiHours: number | undefined): Run {
    const now = sentAt + hours * hour;
    const apiNow = apiHours === undefined ? undefined : sentAt + apiHours * hour;
    const run: unknown = {
      deps: { clock: { now: () => now }, requestTimeoutMs: 29_000 },
      cache: { since: () => ({ apiNow: () => apiNow }) },
    };
    return run as Run;
  }

  test.each([
    [0, 0, true],
    [22.99, 22.99, true],
    [23, 22, false],
    // The clock of the machine was set back.
    [22, 23, false],
    [1, 25, false],
    [-0.01, 0, false],
    // The clocks differ a little.
    [0, -0.01, true],
  ])('a key of %d h, and of %d h by the clock of the API: may be sent again: %s', (hours, apiHours, isFresh) => {
    const intent = { firstSentAt: sentAt, firstSentApiAt: sentAt } as Intent;
    expect(keyIsFresh(runAt(hours, apiHours), intent)).toBe(isFresh);
  });

  test.each([
    ['by both clocks', 40, 41, 40],
    ['by the earlier of two clocks that differ', 25 * 60, 7, 6.5],
    ['with a machine clock that was set back', -60, 50, 2],
    ['without a clock of the API', 40, undefined, 2],
  ])('the age of the send of an earlier process, %s', (_name, minutes, apiMinutes, expected) => {
    const at = (run: object, sent: object = {}, seen = false) =>
      sinceSentMs(
        {
          ...run,
          stopwatch: {
            isMarked: (_id: string, moment: string) => seen && moment === 'sent',
            since: (_id: string, moment: string) => (moment === 'sent' ? 2 * 60_000 : Number.NaN),
          },
        } as unknown as Run,
        { lastSentAt: sentAt, lastSentApiAt: sentAt, ...sent } as Intent,
      ) / 60_000;
    const run = runAt(minutes / 60, apiMinutes === undefined ? undefined : apiMinutes / 60);
    expect(at(run)).toBeCloseTo(expected);
    // The process has seen the send, or the API showed no clock then.
    expect(at(run, {}, true)).toBe(2);
    expect(at(run, { lastSentApiAt: null })).toBe(2);
  });

  test('a send has its time by both clocks', () => {
    const sent = { lastSentAt: sentAt + hour, lastSentApiAt: sentAt + 2 * hour };
    expect(sentNow(runAt(1, 2))).toEqual(sent);
    expect(sentNow(runAt(1, undefined))).toEqual({ ...sent, lastSentApiAt: null });
  });

  test.each([
    ['a creation that the API has accepted', {}, true],
    ['a deletion', { verb: 'delete' }, false],
    ['a creation that may be carried out', { phase: 'unknown' }, false],
    ['a creation beside no other resource', { replaces: undefined }, false],
  ])('replaces: %s', (_name, write, is) => {
    const intent = { verb: 'create', phase: 'accepted', replaces: '8', ...write } as unknown as Intent;
    expect(isReplacing(intent)).toBe(is);
  });

  test.each<[string, readonly number[], boolean]>([
    ['has no record', [], false],
    ['made its last record 23 h ago', [23], true],
    ['made its last record less than 23 h ago', [22.99], false],
    ['made its last record 23 h ahead of a clock that was set back', [-23], true],
    ['made its last record less than 23 h ahead', [-22.99], false],
    ['made its first record long ago', [30, 1], false],
  ])('a state that %s is dormant: %s', async (_name, agesHours, is) => {
    const lines = agesHours.map((hours) => ({ at: sentAt - hours * hour }));
    const store = { journal: async ({ limit }: { limit: number }) => lines.slice(-limit) };
    const { deps } = runAt(0, 0);
    expect(await isDormant({ deps: { ...deps, store } } as unknown as Run)).toBe(is);
  });

  test('without a clock of the API, the local clock decides about a key', () => {
    const intent = { firstSentAt: sentAt, firstSentApiAt: null } as Intent;
    expect([22, 23].map((hours) => keyIsFresh(runAt(hours, 25), intent))).toEqual([true, false]);
    const known = { ...intent, firstSentApiAt: sentAt };
    expect([22, 23].map((hours) => keyIsFresh(runAt(hours, undefined), known))).toEqual([true, false]);
  });

  const causes: Readonly<Record<WhyUnknown, boolean>> = {
    server_error: true,
    gateway_error: true,
    lost: false,
    unreadable: false,
    conflict: false,
    reused: false,
    refused: false,
    not_found: false,
  };
  test.each(Object.entries(causes))('an effect may hide behind %s: %s', (why, hides) => {
    expect(isServerError(why as WhyUnknown)).toBe(hides);
  });

  test.each([
    ['network', 'create', true],
    ['network', 'delete', false],
    ['firewall', 'create', false],
    ['firewall', 'update', false],
  ] as const)('the key of a write of the %s (%s) is asked: %s', (kind, verb, asks) => {
    const run: unknown = { kindOf: (name: string) => kinds.get(name as 'network') };
    expect(asksKey(run as Run, { kind, verb })).toBe(asks);
  });

  test('the failure of a write has the reason of its task', () => {
    expect(failureOf({ detail: 'no room' })).toBe('its task failed (no room)');
  });

  test('a question without an answer begins with no probe', () => {
    expect(questionOf({ phase: 'sending' } as Intent)).toEqual({ stage: 'asking', probes: 0 });
    expect(maybeUsedKey).toEqual({ why: 'conflict', question: unasked });
    expect(conflicting).toEqual({ stage: 'taken', probes: 0, conflict: true });
    const question = { stage: 'taken', probes: 3 } as const;
    expect(questionOf({ phase: 'unknown', unconfirmed: { why: 'lost', question } } as Intent)).toBe(question);
  });

  test.each([
    ['asking', 1, true],
    ['taken', 1, true],
    ['fenced', 1, false],
    ['open', 1, false],
    ['asking', 24, false],
    ['taken', 24, false],
  ] as const)('a key at the stage %s, of %d h, settles its write: %s', (stage, hours, settles) => {
    const unconfirmed = { why: 'lost', question: { stage, probes: 1 } };
    const intent = { phase: 'unknown', unconfirmed, firstSentAt: sentAt, firstSentApiAt: sentAt };
    expect(isSettledByKey(runAt(hours, hours), intent as unknown as Intent)).toBe(settles);
  });

  test.each([
    ['unknown_send', true],
    ['earlier_send', false],
    ['this_send', false],
    [undefined, false],
  ])('an answer to %s is one to a send of another state: %s', (to, replays) => {
    const answer = to === undefined ? {} : { answer: { to } };
    expect(isReplay({ phase: 'accepted', ...answer } as Intent)).toBe(replays);
  });
});
