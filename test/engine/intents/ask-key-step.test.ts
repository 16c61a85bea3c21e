import { describe, expect, test } from 'vitest';
import type { WriteResult } from '../../../src/core/ports.ts';
import type { Intent } from '../../../src/core/state.ts';
import { askKey, replayLater } from '../../../src/engine/intents/ask-key.ts';
import {
  answer,
  behaviour,
  fresh,
  intentOf,
  lost,
  replayed,
  reused,
  runWith,
  sentAt,
  stubRun,
} from './stub-run.ts';

const second = 1_000;
const minute = 60 * second;
/** A request on its way has arrived by then: its time limit and half a minute. */
const settledMs = 50 * second;

/** The creation of a network whose answer is missing. */
const asking = (more: object = {}, write: object = {}) =>
  intentOf({
    ...{ phase: 'unknown', idempotencyKey: 'key-1', dueAt: sentAt },
    unconfirmed: { why: 'lost', question: { stage: 'asking', probes: 0, ...more } },
    ...write,
  });

async function ask(
  answers: readonly WriteResult[],
  {
    intent = asking(),
    ageMs = settledMs,
    silentMs = 0,
    begunMs = 0,
    behaviours = { create_network: behaviour } as object,
    held = undefined as object | undefined,
    jitter = 0,
    timeScale = 1,
  } = {},
) {
  const left = [...answers];
  const sent: unknown[] = [];
  const notes: unknown[] = [];
  const forgotten: unknown[] = [];
  const marks: unknown[][] = [];
  const now = sentAt + ageMs;
  const made = stubRun({ ageMs });
  const run = runWith(made.run, {
    facts: { pausedBy: (_request: unknown, spend: string) => (spend === 'none' ? held : undefined) },
    gate: {
      isWaited: () => false,
      readyNext: () => void marks.push(['gate', 'next']),
      run: (write: () => unknown) => write(),
    },
    cache: { ...made.run.cache, forget: (stale: unknown) => void forgotten.push(stale) },
    stopwatch: {
      until: (_id: string, moment: string, at: number) => (moment === 'due' ? at - now : Number.NaN),
      since: (_id: string, moment: string, at: number) =>
        ({ silent: silentMs, begun: begunMs, sent: now - at })[moment] ?? Number.NaN,
      isMarked: (_id: string, moment: string) => moment === 'sent',
      mark: (...given: unknown[]) => void marks.push(given),
    },
    deps: {
      random: { next: () => jitter },
      profile: { timeScale },
      store: {
        note: async () => behaviours,
        putNote: async (note: unknown) => notes.push(note),
      },
      writes: {
        send: async ({ probe }: { probe?: number }, key: string) => {
          sent.push([probe, key]);
          return left.shift();
        },
      },
    },
  });
  const progress = await askKey(run, intent);
  const [last] = made.recorded.slice(-1);
  return {
    progress,
    sent,
    last,
    recorded: made.recorded,
    calls: made.calls,
    marks,
    forgotten,
    left: left.length,
  };
}

const questioned = (stage: string, probes: number) => ({ unconfirmed: { question: { stage, probes } } });

describe('src/engine/intents/ask-key.ts: one step', () => {
  test.each<[string, readonly WriteResult[], string, number]>([
    ['a refusal that is replayed to the second probe', [fresh, replayed], 'fenced', 2],
    ['three fresh refusals: bodies are checked before keys', [fresh, fresh, fresh], 'taken', 3],
  ])('%s', async (_name, answers, stage, probes) => {
    const { progress, sent, last, left, marks } = await ask(answers);
    expect(progress).toEqual({ now: 'again', afterMs: 0 });
    expect(last).toMatchObject({ stage: questioned(stage, probes), dueAt: sentAt + settledMs });
    expect(sent).toEqual(Array.from({ length: probes }, () => [1, 'key-1']));
    expect([left, marks.map(([, moment]) => moment)]).toEqual([0, ['next', 'silent', 'due']]);
  });

  test('each probe is recorded before it is sent, and counted on', async () => {
    const { recorded, calls } = await ask([replayed], { intent: asking({ probes: 4 }) });
    expect(recorded[0]?.stage).toMatchObject({ phase: 'unknown', ...questioned('asking', 5) });
    expect(calls.filter(([name]) => name === 'report').map(([, , step]) => step)).toEqual([
      'queued',
      'checking',
    ]);
  });

  test('a blocked creation that is asked stays blocked', async () => {
    const blocked = { code: 'ambiguous', reason: '', candidates: [] };
    const { recorded } = await ask([replayed], { intent: asking({}, { phase: 'blocked', blocked }) });
    expect(recorded[0]?.stage).toMatchObject({ phase: 'blocked', blocked });
  });

  test('without an answer about keys in general, the API gets no probe of this key', async () => {
    const { progress, sent, recorded } = await ask([lost], { behaviours: {} });
    expect(progress).toEqual({ now: 'again', afterMs: 2 * second });
    expect(sent).toEqual([[1, expect.stringMatching(/^vdcsync-spare-/)]]);
    expect(recorded).toHaveLength(1);
  });

  test.each([
    ['reused', 'blocked'],
    ['conflict', 'again'],
  ])('after the API refused the original as another request, the write is %s: %s', async (why, now) => {
    const behaviours = { create_network: { storesRefusals: false } };
    const question = { stage: 'asking', probes: 0, conflict: true };
    const intent = asking({}, { unconfirmed: { why, question } });
    expect((await ask([], { behaviours, intent })).progress).toMatchObject({ now });
  });

  test('the refusal of an old key proves nothing, since the API may have forgotten the answer', async () => {
    const hour = 60 * minute;
    for (const each of [replayed, reused])
      expect((await ask([each], { ageMs: 23 * hour })).last).toMatchObject({ stage: questioned('open', 1) });
    expect((await ask([replayed], { ageMs: 23 * hour - 1 })).last).toMatchObject({
      stage: questioned('fenced', 1),
    });
  });

  test.each([
    [settledMs - 1, sentAt, 1],
    [settledMs, sentAt + settledMs + 7, 7],
    [settledMs - 20, sentAt + settledMs + 7, 27],
  ])('%i ms after the send, due at %i: asked in %i ms', async (ageMs, dueAt, afterMs) => {
    const { progress, sent } = await ask([replayed], { ageMs, intent: asking({}, { dueAt }) });
    expect(progress).toEqual({ now: 'again', afterMs });
    expect(sent).toEqual([]);
  });

  test('a pause of writes that spend nothing blocks the probe', async () => {
    const held = { code: 'unauthorized', reason: 'no' };
    const { progress, sent } = await ask([replayed], { held });
    expect(progress).toEqual({ now: 'blocked', ...held });
    expect(sent).toEqual([]);
  });

  test('an accepted probe is the creation, and the lists that show it are read again', async () => {
    const data = { id: 7, name: 'x', cidr: '10.0.0.0/24' };
    const { recorded, forgotten } = await ask([answer(201, { data, task: null, replayed: true })]);
    expect(recorded.at(-1)?.stage).toMatchObject({ phase: 'accepted', answer: { id: '7' } });
    expect(forgotten).toHaveLength(1);
  });

  test.each<[string, WriteResult, object, number, number]>([
    ['a lost answer', lost, {}, 2 * second, 0],
    ['a lost answer after some silence', lost, { silentMs: 10 * second }, 12 * second, 0],
    ['a lost answer after a long silence', lost, { silentMs: 29 * minute }, minute, 0],
    ['a lost answer, with jitter', lost, { jitter: 1 }, 2_200, 0],
    ['a time to wait', answer(503, { retryAfterMs: 5 * second }), {}, 5 * second, 1],
    ['a time, of a fast API', answer(503, { retryAfterMs: 5 * second }), { timeScale: 60 }, 300 * second, 1],
    ['a shorter time to wait', answer(503, { retryAfterMs: 1 }), {}, 2 * second, 1],
    ['a server error', answer(500, { code: 'odd' }), {}, 2 * second, 1],
  ])('%s is asked again', async (_name, result, more, afterMs, answered) => {
    const { progress, last, marks, calls } = await ask([result], more);
    expect(progress).toEqual({ now: 'again', afterMs });
    expect(last).toEqual({ dueAt: sentAt + settledMs + afterMs });
    const began = 'silentMs' in more ? [] : [['i', 'silent']];
    expect(marks).toEqual([['gate', 'next'], ...began, ['i', 'due', afterMs]]);
    const told = calls.findLast(([name]) => name === 'report');
    expect(told?.[2]).toBe('waiting');
    expect(told?.[3]).toEqual(answered === 0 ? 'reset' : expect.stringMatching(/50[03]/));
    expect(told?.[4]).toEqual({ untilMs: sentAt + settledMs + afterMs });
  });

  test('after half an hour without an answer the run ends without the creation', async () => {
    const { progress, last } = await ask([lost], { silentMs: 30 * minute });
    expect(progress).toEqual({ now: 'blocked', code: 'key_not_answered', reason: 'reset' });
    expect(last).toMatchObject({ dueAt: sentAt + settledMs + minute });
    expect((await ask([lost], { silentMs: 30 * minute - 1 })).progress.now).toBe('again');
  });

  test.each([
    [401, { code: 'unauthorized' }, 'unauthorized'],
    [402, {}, 'http_402'],
    [403, { code: 'insufficient_privileges' }, 'insufficient_privileges'],
  ])('%i pauses the class, and a later run asks', async (status, more, code) => {
    const { progress, calls } = await ask([answer(status, more)]);
    expect(progress).toMatchObject({ now: 'blocked', code });
    expect(calls.filter(([name]) => name === 'pause')).toHaveLength(1);
  });

  test('a key that refuses both the original and the probe was used for another body', async () => {
    const conflict = { stage: 'asking', conflict: true };
    const { progress, last } = await ask([reused, reused], { intent: asking(conflict) });
    expect(progress).toMatchObject({ now: 'blocked', code: 'key_conflict' });
    expect(last).toMatchObject({ stage: { phase: 'blocked', blocked: { code: 'key_conflict' } } });
    expect(progress).toMatchObject({ reason: expect.stringMatching(/^another state or file sent/) });
    const fenced = await ask([replayed], { intent: asking(conflict) });
    expect(fenced.last).toMatchObject({ stage: questioned('fenced', 1) });
  });

  test.each([
    ['a reserved key: its resource was created under another key', replayed, /^another state bound/],
    [
      'a key whose reservation is fresh',
      answer(422, { invalidParams: [{ name: 'vdcsync_probe', reason: '' }] }),
      /^another state or file sent/,
    ],
  ])('%s', async (_name, second, reason) => {
    const intent = asking({ stage: 'asking', conflict: true });
    const { progress } = await ask([reused, second, replayed], { intent });
    expect(progress).toMatchObject({ code: 'key_conflict', reason: expect.stringMatching(reason) });
  });

  test('a creation that reads do not identify is replayed by a later run', async () => {
    const { run, recorded } = stubRun();
    const intent = asking();
    expect(await replayLater(run, intent)).toMatchObject({ now: 'blocked', code: 'key_not_answered' });
    expect(recorded).toMatchObject([{ stage: questioned('taken', 0), dueAt: sentAt }]);
  });

  describe('a creation that every send was refused with a 409', () => {
    const quota = answer(409, { code: 'quota_exceeded' });
    const refusedFirst = (more: object = {}, write: object = {}) =>
      asking(more, {
        ...{ detail: '409 quota_exceeded', lost: 0, ...write },
        unconfirmed: { why: 'conflict', question: { stage: 'asking', probes: 0, ...more } },
      });
    const lasting = { lasting: 'quota_exceeded' };
    const blocked = { now: 'blocked', code: 'quota_exceeded', reason: '409 quota_exceeded' };

    test('an unused key gets the same refusal: a later run sends the creation again', async () => {
      const { progress, last, sent } = await ask([quota, quota], { intent: refusedFirst(lasting) });
      expect(progress).toEqual(blocked);
      expect(last).toMatchObject({ stage: { phase: 'waiting', because: 'key_maybe_used' } });
      expect(sent).toEqual([
        [1, 'key-1'],
        [1, expect.stringContaining('spare')],
      ]);
    });

    test('it ends if it is no longer wanted', async () => {
      const { progress } = await ask([quota, quota], { intent: refusedFirst() });
      expect(progress).toMatchObject({ now: 'closed', outcome: 'refused', detail: '409 quota_exceeded' });
    });

    test.each<[string, Intent, readonly WriteResult[]]>([
      ['an unused key gets another refusal', refusedFirst(lasting), [quota, fresh]],
      ['an unused key gets another conflict', refusedFirst(lasting), [quota, answer(409, { code: 'busy' })]],
      ['the refusal is not a conflict', refusedFirst(lasting), [answer(404, { code: 'quota_exceeded' })]],
      ['an answer was lost', refusedFirst(lasting, { lost: 1 }), [quota]],
      ['the key has held an answer', refusedFirst({ ...lasting, stage: 'taken' }), [quota]],
      ['the original was refused again', refusedFirst({ ...lasting, conflict: true }), [quota]],
      ['the answer to the first send is unknown', asking(lasting), [quota]],
    ])('the key is asked again later: %s', async (_name, intent, answers) => {
      const { progress, sent, left } = await ask(answers, { intent });
      expect(progress).toMatchObject({ now: 'again' });
      expect([sent.length, left]).toEqual([answers.length, 0]);
    });

    test('a key that no probe can ask is left to a later run after the deadline', async () => {
      const behaviours = { create_network: { storesRefusals: false } };
      const again = { ...lasting, conflict: true };
      const at = (begunMs: number, intent: Intent) => ask([], { intent, behaviours, begunMs });
      const { progress, last } = await at(60 * minute, refusedFirst(again));
      expect(progress).toEqual(blocked);
      expect(last?.stage).toEqual({
        phase: 'unknown',
        unconfirmed: { why: 'conflict', question: { stage: 'open', probes: 0, ...lasting } },
      });
      const fenced = await ask([replayed], { intent: refusedFirst(again), begunMs: 60 * minute });
      expect(fenced.last).toMatchObject({ stage: questioned('fenced', 1) });
      const unnamed = await at(60 * minute, refusedFirst({ conflict: true }));
      expect(unnamed.progress).toMatchObject({ now: 'blocked', code: 'key_not_answered' });
      for (const [begunMs, intent] of [
        [minute, refusedFirst(again)],
        [60 * minute, refusedFirst(lasting)],
        [60 * minute, asking(again)],
      ] as const)
        expect((await at(begunMs, intent)).progress).toMatchObject({ now: 'again' });
    });
  });
});
