import { describe, expect, test } from 'vitest';
import { nextPreference } from '../../../src/engine/intents/capacity.ts';
import {
  awaitEnd,
  block,
  close,
  closeAndRetry,
  closeBlocked,
  giveUp,
  goOn,
  minutes,
  questionAbout,
  after as reasonAfter,
  sentPreference,
  unbrokenRow,
  unresolved,
  warn,
} from '../../../src/engine/intents/endings.ts';
import { notThere } from '../../../src/engine/intents/not-there.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;
const hour = 60 * minute;
const absent = { outcome: 'absent', text: 'it is gone' } as const;
const ended = (outcome: string, more: object = {}) =>
  intentOf({ phase: 'closed', outcome, id: 'x', ...more });

/** A run that keeps the changes of each end. */
function ending(more: { readonly past?: readonly object[] } = {}) {
  const changes: (readonly unknown[])[] = [];
  const asked: unknown[] = [];
  const made = stubRun();
  const close2 = async (_intent: unknown, _ended: unknown, given: readonly unknown[]) =>
    void changes.push(given);
  const intents = async (of: unknown) => {
    asked.push(of);
    return more.past ?? [];
  };
  const run = runWith(made.run, { close: close2, deps: { store: { intents } } });
  return { run, changes, asked };
}
const kept = { type: 'next_incarnation', key: 'networks.x' } as never;

describe('src/engine/intents/endings.ts', () => {
  test('an end makes the changes that it is given, and no others', async () => {
    const { run, changes, asked } = ending();
    await close(run, intentOf({}), absent);
    await closeBlocked(run, intentOf({}), absent, 'odd');
    await closeBlocked(run, intentOf({}), absent, 'odd', { changes: [kept] });
    await closeAndRetry(run, intentOf({}), { ...absent, code: 'odd', most: 1 });
    await closeAndRetry(run, intentOf({}), { ...absent, code: 'odd', most: 0, changes: [kept] });
    await closeAndRetry(run, intentOf({}), { ...absent, code: 'odd', most: 1, changes: [kept] });
    expect(changes).toEqual([[], [], [kept], [], [kept], [kept]]);
    await unbrokenRow(run, intentOf({}), () => true);
    expect(asked[0]).toEqual({ key: 'networks.x', limit: 50 });
    expect(asked.at(-1)).toEqual({ key: 'networks.x', limit: 2_000 });
  });

  test('a write that waits for another write names it', () => {
    const other = 'ips.a' as never;
    expect(awaitEnd(other)).toEqual({ now: 'again', afterMs: 5_000, until: other });
    expect(unresolved(other)).toMatchObject({ now: 'blocked', code: 'unresolved_create' });
    expect(sentPreference(stubRun().run, intentOf({}))).toBeUndefined();
    expect(() =>
      warn(stubRun({ more: { deps: { clock: { now: () => 0 } } } }).run, other, 'drift', ''),
    ).not.toThrow();
  });

  const resize = {
    ...{ key: 'servers.x', kind: 'server', verb: 'update' },
    request: { name: 'resize_server', path: { id: 1 }, body: { cores: 4 } },
  };
  const bound = new Map([['servers.x', { key: 'servers.x', id: '1', applied: {} }]]);
  test.each([
    ['failed', resize, bound, true],
    ['done', resize, bound, false],
    ['refused', resize, bound, false],
    ['absent', { ...resize, verb: 'delete' }, bound, false],
    ['absent', resize, new Map(), false],
    ['absent', { ...resize, kind: 'firewall' }, bound, false],
    ['absent', { ...resize, kind: 'ip' }, bound, false],
  ])('an update that ends as %s is sent again if no read shows it (%#)', async (outcome, write, bindings, doubts) => {
    const changes: (readonly unknown[])[] = [];
    const close2 = async (_intent: unknown, _ended: unknown, given: readonly unknown[]) =>
      void changes.push(given);
    const { run } = stubRun({ more: { bindings, close: close2 } });
    const kept = { type: 'next_incarnation', key: 'servers.x' } as never;
    await close(run, intentOf(write), { outcome, text: '' } as never, { changes: [kept] });
    const binding = expect.objectContaining({ key: 'servers.x', id: '1' });
    const doubt = expect.objectContaining({ type: 'bind', binding });
    expect(changes).toEqual([doubts ? [doubt, kept] : [kept]]);
  });

  test('a write that is given up keeps the last answer of the API', () => {
    expect(reasonAfter('why', intentOf({ detail: '' }))).toBe('why');
    expect(reasonAfter('why', intentOf({}))).toBe('no answer; given up later: why');
    const blocked = { code: 'odd', reason: 'the answer', candidates: [] };
    expect(reasonAfter('why', intentOf({ phase: 'blocked', blocked }))).toBe(
      'the answer; given up later: why',
    );
  });

  test('a question keeps the known effect of the write', async () => {
    const { run, recorded } = stubRun();
    const unconfirmed = { why: 'lost', question: { stage: 'asking', probes: 0 } };
    const intent = intentOf({ phase: 'unknown', unconfirmed });
    expect(await block(run, intent, 'odd', 'why', { until: 'file' })).toEqual({
      ...{ now: 'blocked', code: 'odd', reason: 'why' },
    });
    const blocked = { code: 'odd', reason: 'why', candidates: [], until: 'file' };
    expect(recorded).toEqual([{ stage: { phase: 'blocked', blocked, unconfirmed } }]);
  });

  test('a step is due only if it has a time', async () => {
    const { run, calls } = stubRun();
    expect(await goOn(run, intentOf({}), { lost: 1 })).toEqual({ now: 'again', afterMs: 0 });
    expect(calls).toEqual([]);
    expect(await goOn(run, intentOf({}), { dueAt: 5 }, 7)).toEqual({ now: 'again', afterMs: 7 });
    expect(calls).toEqual([['mark', 'i', 'due', 7]]);
  });

  test.each([
    ['create', 'whether the new network is ready'],
    ['update', 'whether the network has changed'],
    ['delete', 'whether the network is gone'],
    ['adopt', 'the network'],
  ])('the question of %s', (verb, question) => {
    expect(questionAbout(intentOf({ verb }))).toBe(question);
  });

  test.each([
    [['absent', 'failed', 'absent', 'absent'], 3, 'blocked'],
    [['absent', 'failed', 'refused'], 2, 'closed'],
  ])('after %j, with %i in all: %s', async (outcomes, most, now) => {
    const { run } = stubRun({ past: outcomes.map((each) => ended(each)) });
    const progress = await closeAndRetry(run, intentOf({}), { ...absent, code: 'not_there', most });
    expect(progress).toMatchObject(now === 'closed' ? { now, retryAfterMs: 0 } : { now, code: 'not_there' });
  });

  test('ends of another verb or of an earlier resource do not count', async () => {
    const others = [ended('absent', { verb: 'delete' }), ended('absent', { incarnation: '9' })];
    const { run } = stubRun({ past: others });
    const progress = await closeAndRetry(run, intentOf({}), { ...absent, code: 'not_there', most: 1 });
    expect(progress).toMatchObject({ now: 'closed' });
  });

  test('a row ends at the first attempt with another end, and excludes the attempt itself', async () => {
    const past = [ended('absent', { id: 'i' }), ended('absent'), ended('done'), ended('absent')];
    const { run } = stubRun({ past });
    const isAbsent = (each: object) => (each as { outcome?: string }).outcome === 'absent';
    expect(await unbrokenRow(run, intentOf({}), isAbsent)).toEqual([past[1]]);
    expect(await unbrokenRow(run, intentOf({}), () => true)).toHaveLength(3);
    expect(await unbrokenRow(run, intentOf({}), () => false)).toEqual([]);
  });

  test('a warning is an event; minutes are rounded', () => {
    const events: unknown[] = [];
    const { run } = stubRun();
    warn(
      { ...run, deps: { ...run.deps, onEvent: (each) => void events.push(each) } },
      'ips.x' as never,
      'drift',
      'so',
    );
    const warning = { code: 'drift', key: 'ips.x', message: 'so' };
    expect(events).toEqual([{ type: 'warning', at: sentAt, warning }]);
    expect([minutes(89_000), minutes(91_000)]).toEqual(['1 min', '2 min']);
  });
});

describe('src/engine/intents/endings.ts', () => {
  const unconfirmed = (why: string) => ({
    phase: 'unknown',
    unconfirmed: { why, question: { stage: 'asking', probes: 0 } },
  });
  const wall = { kind: 'firewall', key: 'servers.x.firewall' };
  const doubted = { phase: 'waiting', because: 'key_maybe_used' };
  test.each([
    ['a write that was refused', {}, { now: 'closed', outcome: 'refused' }],
    ['an unconfirmed purchase', { kind: 'ip', key: 'ips.x', ...unconfirmed('lost') }, { now: 'blocked' }],
    ['an unconfirmed firewall', { ...wall, ...unconfirmed('lost') }, { now: 'closed', outcome: 'absent' }],
    ['a lost deletion', { verb: 'delete', ...unconfirmed('lost') }, { now: 'closed', outcome: 'absent' }],
    ['a creation with an unconfirmed key', doubted, { now: 'again', afterMs: 0 }],
  ])('%s', async (_name, write, progress) => {
    const { run, ends, recorded } = stubRun();
    expect(await giveUp(run, intentOf(write), 'why', { retryAfterMs: 5 })).toMatchObject(progress);
    if (progress.now === 'closed') expect(ends).toMatchObject([{ text: 'no answer; given up later: why' }]);
    if (progress.now === 'again')
      expect(recorded).toMatchObject([
        { stage: { phase: 'unknown', unconfirmed: { why: 'conflict' } }, detail: 'why' },
      ]);
    if (progress.now === 'blocked')
      expect(recorded).toMatchObject([
        {
          stage: {
            blocked: { code: 'outcome_unknown', reason: expect.stringContaining('the answer was lost') },
          },
        },
      ]);
  });

  test('the operation begins again if the caller asks for it', async () => {
    const { run } = stubRun();
    expect(await giveUp(run, intentOf({}), 'why', { retryAfterMs: 5 })).toMatchObject({ retryAfterMs: 5 });
    expect(await giveUp(run, intentOf({}), 'why')).not.toHaveProperty('retryAfterMs');
  });
});

describe('src/engine/intents/not-there.ts', () => {
  const accepted = (to: string, more: object = {}) => ({
    phase: 'accepted',
    answer: { at: sentAt, id: '7', to, end: 'reported', facts: {}, ...more },
  });
  const replay = (more: object = {}) => accepted('unknown_send', more);
  const past = (count: number, more: object = replay()) =>
    Array.from({ length: count }, (_, at) => ended('absent', { ...more, phase: 'closed', id: `${at}` }));
  const storing = { storesRefusals: true };
  async function see(
    write: object,
    before: readonly object[],
    evidence: object = {},
    behaviour: object = storing,
  ) {
    const made = stubRun({ past: before });
    const changes: unknown[] = [];
    const run = runWith(made.run, {
      facts: {
        pausedBy: (_: unknown, spend: string) =>
          'held' in behaviour && spend === 'none' ? { code: 'x', reason: '' } : undefined,
      },
      close: async (_intent: unknown, given: object, all: readonly unknown[]) => {
        made.ends.push(given as never);
        changes.push(...all);
      },
      deps: { store: { note: async () => ({ create_network: behaviour }) } },
    });
    const progress = await notThere({ run, intent: intentOf(write) }, {
      verdict: 'not_done',
      ...evidence,
    } as never);
    return { progress, changes, ends: made.ends };
  }
  const next = [{ type: 'next_incarnation', key: 'networks.x' }];

  const again = { now: 'closed', retryAfterMs: 0 };
  const asks = { now: 'blocked', code: 'not_there' };
  const mayMark = { storesRefusals: false };
  const made = accepted('this_send');
  const failed = (of: object) => ended('failed', { ...of, phase: 'closed', outcome: 'failed' });
  test.each<[string, object, readonly object[], object, object?, object?]>([
    ['a third absence, of an API that may mark too much', replay(), past(2), asks, {}, mayMark],
    ['a second absence, of an API that may mark too much', replay(), past(1), again, {}, mayMark],
    ['a third absence, while writes are paused', replay(), past(2), asks, {}, { ...storing, held: true }],
    ['a fifth absence, not all replayed', replay(), [...past(2), ...past(2, made)], again],
    ['a replay without a task that reports no end', replay({ end: 'unreported' }), [], asks],
    ['a replay with a task', replay({ end: 'unreported', taskId: 't' }), [], again],
    ['a resource that may exist', made, [], asks, { gone: false }],
    ['a resource beside stray ones', made, [], asks, { gone: true, strays: true }],
    ['an absence after another end', made, [failed(made)], again, { gone: true }],
    ['a fifth absence after other ends', replay(), Array(4).fill(failed(replay())), again],
    ['a second absence', made, past(1), asks, { gone: true }],
  ])('%s', async (_name, write, before, expected, evidence, behaviour) => {
    const { progress, changes, ends } = await see(write, before, evidence, behaviour);
    expect(progress).toMatchObject(expected);
    expect(changes).toEqual(progress.now === 'closed' ? next : []);
    if (progress.now === 'closed') expect(ends).toMatchObject([{ outcome: 'absent' }]);
  });

  test('a deletion or a setting is sent again, three times', async () => {
    const deletion = { verb: 'delete', ...accepted('this_send') };
    const setting = { kind: 'firewall', key: 'servers.x.firewall', ...accepted('this_send') };
    for (const write of [deletion, setting]) {
      const ends = (count: number) => past(count, { ...write, phase: 'closed' });
      expect((await see(write, ends(2))).progress).toMatchObject({ now: 'closed', retryAfterMs: 0 });
      expect((await see(write, ends(3))).progress).toMatchObject({ now: 'blocked', code: 'not_there' });
    }
  });

  test('a deletion that is replayed three times may be replayed further', async () => {
    const deletion = { verb: 'delete', ...replay({ end: 'unreported' }) };
    const { progress } = await see(deletion, past(2), {}, { storesRefusals: false });
    expect(progress).toMatchObject({ now: 'closed' });
  });

  test('a deletion that is only replayed names the count, a creation the ids', async () => {
    const deletion = { verb: 'delete', ...replay() };
    const reason = async (write: object) =>
      ((await see(write, past(4))).progress as { reason?: string }).reason;
    expect(await reason(deletion)).toContain('5 times');
    expect(await reason(replay())).toContain('7, 7, 7, 7, 7');
  });
});

describe('src/engine/intents/capacity.ts', () => {
  const asks = (...packages: string[]) => ({
    subjects: new Map([['servers.x', { desired: { value: { gpu_package: packages } } }]]),
  });
  const sent = (name: string, more: object = {}) =>
    intentOf({
      ...{ key: 'servers.x', kind: 'server', phase: 'sending' },
      request: { name: 'create_server', path: {}, body: { gpu_package: name } },
      ...more,
    });
  async function refuse({
    tried = [] as string[],
    list = ['a', 'b'],
    past = [] as object[],
    ageMs = 0,
    more = {},
    name = 'a',
  } = {}) {
    const exhausted: unknown[] = [];
    const made = stubRun({
      ageMs,
      past,
      more: {
        world: asks(...list),
        facts: {
          exhaustedOf: () => tried,
          exhaust: (_key: string, all: unknown) => void exhausted.push(all),
        },
      },
    });
    const progress = await nextPreference(made.run, sent(name, more), 'no capacity');
    return { progress, exhausted, ...made };
  }
  const because = 'no_capacity';

  test('the next preference is tried at once', async () => {
    const { progress, exhausted, ends } = await refuse();
    expect(progress).toMatchObject({ now: 'closed', outcome: 'refused', retryAfterMs: 0 });
    expect(exhausted).toEqual([['a']]);
    expect(ends).toEqual([{ outcome: 'refused', because, text: 'no capacity' }]);
  });

  test('after the last preference, the list begins again after a pause', async () => {
    const { progress, exhausted, calls } = await refuse({ tried: ['a'], name: 'b' });
    expect(progress).toMatchObject({ now: 'closed', retryAfterMs: minute });
    expect(exhausted).toEqual([[]]);
    const wait = { untilMs: sentAt + minute, deadlineMs: sentAt + 24 * hour, code: 'no_gpu_capacity' };
    const told = calls.filter(([step]) => step === 'report');
    expect(told).toEqual([['report', expect.anything(), 'waiting', 'gpu_package a, b: no capacity', wait]]);
  });

  test('a single preference waits under its key', async () => {
    const { progress, recorded, calls, ends } = await refuse({ list: ['a'] });
    expect(progress).toEqual({ now: 'again', afterMs: minute });
    const stage = { phase: 'waiting', because };
    expect(recorded).toEqual([{ stage, dueAt: sentAt + minute, detail: 'no capacity' }]);
    expect([ends, calls[0]?.[3]]).toEqual([[], 'gpu_package a: no capacity']);
  });

  const refusal = (more: object = {}) => ended('refused', { because, id: 'x', sends: 1, ...more });
  test.each([
    [1, ['a'], [], minute],
    [2, ['a'], [], 2 * minute],
    [3, ['a'], [], 4 * minute],
    [1, ['a', 'b'], [refusal()], minute],
    [1, ['a', 'b'], [refusal(), refusal(), refusal()], 2 * minute],
    [1, ['a', 'b'], [refusal(), ended('done'), refusal(), refusal()], minute],
    [30, ['a'], [], 15 * minute],
  ])('the pause after %i sends of %j, with %j before', async (sends, list, past, afterMs) => {
    const name = list.at(-1) ?? '';
    const { progress } = await refuse({ list, past, name, tried: list.slice(0, -1), more: { sends } });
    expect(
      'retryAfterMs' in progress ? progress.retryAfterMs : 'afterMs' in progress && progress.afterMs,
    ).toBe(afterMs);
  });

  test('a creation whose entry or kind has no list waits under its key', async () => {
    const more = { facts: { exhaustedOf: () => [], exhaust: () => {} } };
    for (const [kind, subject] of [
      ['server', undefined],
      ['server', {}],
      ['network', { desired: { value: {} } }],
    ] as const) {
      const world = { subjects: new Map(subject && [['servers.x', subject]]) };
      const { run } = stubRun({ more: { ...more, world } });
      expect(await nextPreference(run, sent('a', { kind }), 'no capacity')).toMatchObject({ now: 'again' });
    }
  });

  test('the operator decides a day after the first refusal of the row', async () => {
    const first = refusal({ createdAt: sentAt - hour });
    const at = async (ageMs: number, past: object[]) => (await refuse({ ageMs, past, list: ['a'] })).progress;
    expect(await at(24 * hour, [])).toMatchObject({ now: 'again' });
    expect(await at(24 * hour + 1, [])).toMatchObject({ now: 'blocked', code: 'no_gpu_capacity' });
    expect(await at(23 * hour, [first])).toMatchObject({ now: 'again' });
    expect(await at(23 * hour + 1, [first])).toMatchObject({ now: 'blocked' });
  });

  test('an entry that has left the spec has no other preference', async () => {
    expect((await refuse({ list: [] })).progress).toMatchObject({ now: 'again' });
    expect(sentPreference(stubRun().run, sent('a'))).toBe('a');
  });
});
