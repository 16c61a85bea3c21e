import { describe, expect, test } from 'vitest';
import type { WriteResult } from '../../../src/core/ports.ts';
import type { Intent } from '../../../src/core/state.ts';
import { advance, send } from '../../../src/engine/intents/settle.ts';
import { worldOf } from '../../plan/support.ts';
import { load } from '../../support/rig.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;
const hour = 60 * minute;
const accepted: WriteResult = {
  ...{ type: 'answer', status: 201, requestId: 'req_1', replayed: false },
  ...{ data: { id: 7, name: 'x', cidr: '10.0.0.0/24' }, task: null },
};
const lost: WriteResult = { type: 'ambiguous', reason: 'reset' };

const unknown = (stage: string, more: object = {}) =>
  intentOf({
    ...{ phase: 'unknown', idempotencyKey: 'key-1', sentAs: 'digest', dueAt: sentAt },
    unconfirmed: { why: 'lost', question: { stage, probes: 0 } },
    ...more,
  });
const waiting = (more: object = {}) =>
  intentOf({ phase: 'waiting', idempotencyKey: 'key-1', sentAs: 'digest', dueAt: sentAt, ...more });

/** A run whose clocks stand at this age of the write, and whose fence takes this long. */
function running({
  ageMs = hour,
  fenceMs = 0,
  result = accepted,
  held = undefined as object | undefined,
  isOwned = true as boolean | 'unknown',
  digest = 'digest',
  world = { subjects: new Map() } as object,
  bindings = new Map() as ReadonlyMap<string, object>,
  more = {},
} = {}) {
  const at = { now: sentAt + ageMs };
  const sent: unknown[][] = [];
  const observed: string[] = [];
  const spends: unknown[] = [];
  const stop = new AbortController();
  const made = { ...stubRun({ ageMs }), stale: [] as string[] };
  const run = runWith(made.run, {
    ...{ stop: stop.signal, halt: stop.signal, bindings, world: { childrenOf: () => [], ...world } },
    observe: async (key: string) => {
      observed.push(key);
      return { subjects: new Map() };
    },
    check: async () => {
      at.now += fenceMs;
      return 't';
    },
    facts: {
      pausedBy: (_request: unknown, spend: unknown) => {
        spends.push(spend);
        return held;
      },
    },
    cache: { since: () => ({ apiNow: () => at.now }), forget: () => void made.stale.push('read again') },
    stopwatch: {
      until: (_id: string, moment: string, due: number) => (moment === 'due' ? due - at.now : Number.NaN),
      since: (_id: string, _moment: string, from: number) => at.now - from,
      isMarked: () => false,
      mark: (_id: string, moment: string) => void made.stale.push(moment),
    },
    deps: {
      clock: { now: () => at.now, monotonic: () => at.now },
      store: isOwned === 'unknown' ? {} : { isOwned: () => isOwned },
      writes: {
        digest: () => digest,
        send: async (request: unknown, key: string, token: string, mayGo: () => boolean) => {
          sent.push([request, key, token]);
          return mayGo() ? result : { type: 'unsent', reason: 'it may not go' };
        },
      },
    },
    ...more,
  });
  const step = (intent: Intent) => advance(run, intent);
  return { ...made, run, step, sent, observed, spends, stop };
}

const serverError = { why: 'server_error', question: { stage: 'taken', probes: 3 } };
const open = { why: 'lost', question: { stage: 'open', probes: 0 } };

describe('src/engine/intents/settle.ts', () => {
  test.each([
    ['without an answer', intentOf({ lost: 2 }), { why: 'lost', question: { stage: 'asking', probes: 0 } }],
    ['that was unconfirmed before', intentOf({ lost: 2, unconfirmed: serverError }), serverError],
  ])('a send %s may have been sent', async (_name, intent, unconfirmed) => {
    const { step, recorded } = running();
    expect(await step(intent)).toEqual({ now: 'again', afterMs: 0 });
    expect(recorded).toEqual([{ stage: { phase: 'unknown', unconfirmed }, lost: 3 }]);
  });

  test('a waiting write is sent no earlier than it is due', async () => {
    const due = { dueAt: sentAt + hour + 5 };
    for (const intent of [waiting(due), unknown('taken', due)]) {
      const { step, sent, observed } = running();
      expect(await step(intent)).toEqual({ now: 'again', afterMs: 5 });
      expect([sent, observed]).toEqual([[], []]);
    }
  });

  test('a taken key is sent again at the moment when it is due', async () => {
    const { step, sent } = running();
    await step(unknown('taken', { dueAt: sentAt + hour }));
    expect(sent).toHaveLength(1);
  });

  test('an accepted and a superseded write wait for their reads', async () => {
    const dueAt = sentAt + hour + 10;
    const answer = { at: sentAt, id: '7', facts: {}, to: 'this_send', end: 'failed' };
    const wait = { now: 'again', afterMs: 10 };
    expect(await running().step(intentOf({ phase: 'accepted', answer, dueAt }))).toEqual(wait);
    const superseded = { phase: 'superseded', by: 'networks.y', former: { facts: {} }, dueAt };
    expect(await running().step(intentOf(superseded))).toEqual(wait);
    const ofGone = { key: 'servers.x.firewall', kind: 'firewall', parentId: '1', ...superseded };
    const { step } = running({ world: { subjects: new Map(), idOf: () => undefined } });
    expect(await step(intentOf(ofGone))).toEqual(wait);
  });

  test('reads about an update wait until its request has timed out', async () => {
    const put = { key: 'servers.x.firewall', kind: 'firewall', verb: 'update' };
    const { step, sent } = running({ ageMs: 10_000 });
    expect(await step(unknown('taken', put))).toEqual({ now: 'again', afterMs: 40_000 });
    expect(sent).toEqual([]);
  });

  /** A run whose observation still asks for the network. */
  const wanting = (given: NonNullable<Parameters<typeof running>[0]> = {}) => {
    const world = worldOf(load('networks: {x: {cidr: 10.1.0.0/24}}\n'));
    const more = {
      ...{ observe: async () => world, world, held: () => undefined },
      line: ({ key }: { key: string }) => new Set([key]),
    };
    return running({ ...given, more });
  };
  test('a waiting write that is still wanted is sent at the moment when it is due', async () => {
    const { step, sent } = wanting();
    await step(waiting({ dueAt: sentAt + hour }));
    expect(sent).toHaveLength(1);
  });

  test.each([
    ['key_too_old', {}, { ageMs: 24 * hour }, 'key_too_old'],
    ['no_capacity', { because: 'no_capacity' }, { ageMs: 24 * hour }, 'no_capacity'],
    [
      'key_too_old, with an unconfirmed key',
      { because: 'key_maybe_used' },
      { ageMs: 24 * hour },
      'key_too_old',
    ],
  ])('a waiting write takes a new key: %s', async (_name, more, given, because) => {
    const { step, sent, ends } = wanting(given);
    expect(await step(waiting(more))).toMatchObject({ now: 'closed', retryAfterMs: 0 });
    expect([sent, ends]).toMatchObject([[], [{ outcome: 'refused', because }]]);
  });

  test('a waiting deletion is not sent while the creation after it is paused', async () => {
    const live = { id: 3, name: 'x', cidr: '10.1.0.0/24', server_count: 0 };
    const parts = { networks: [live], observed: new Map([['networks.x', { id: '3', live }]]) };
    const binding = { key: 'networks.x', kind: 'network', id: '3', identity: {}, applied: null };
    const file = load('networks: {x: {cidr: 10.2.0.0/24}}\n');
    const world = worldOf(file, parts as never, [binding as never]);
    const holder = {
      is: 'paused',
      scope: 'operation',
      kind: 'network',
      verb: 'create',
      code: 'odd',
      token: 't',
    };
    const claims = [{ kind: 'project', id: 'p', identity: {}, at: 1, holder }];
    const store = { ...stubRun({ claims }).run.deps.store, isOwned: () => true };
    const more = { observe: async () => world, world, held: () => undefined, line: () => new Set() };
    const cache = {
      since: () => ({ apiNow: () => 1, project: async () => world.project }),
      forget: () => {},
    };
    const { run, sent } = running({ more: { ...more, cache } });
    Object.assign(run.deps, { store });
    const changes = [{ path: 'cidr', from: '10.1.0.0/24', to: '10.2.0.0/24' }];
    const request = { name: 'delete_network', path: { id: 3 } };
    const deletion = waiting({ verb: 'delete', request, changes });
    expect(await advance(run, deletion)).toMatchObject({ now: 'blocked', code: 'odd' });
    expect(sent).toEqual([]);
  });

  test('a question ends with the resource that a read shows', async () => {
    const found = { verdict: 'done', id: '7', certain: true };
    const blocked = { code: 'not_there', reason: 'no', candidates: [] };
    const intent = intentOf({ phase: 'blocked', blocked });
    const answered = (read: object | undefined) =>
      running({
        world: { subjects: new Map(), networks: [] },
        more: { read: async () => read, intents: new Map([['networks.x', intent]]) },
      }).step(intent);
    expect(await answered(undefined)).toMatchObject({ now: 'blocked', code: 'not_there' });
    expect(await answered(found)).toMatchObject({ now: 'closed', outcome: 'done' });
  });

  test('a waiting write that is not wanted any more ends, and may begin again', async () => {
    const { step, observed, ends, sent } = running();
    expect(await step(waiting())).toMatchObject({ now: 'closed', outcome: 'refused', retryAfterMs: 0 });
    expect(observed).toEqual(['networks.x']);
    expect([ends.length, sent]).toEqual([1, []]);
  });

  test('a deletion is observed again, also after a lost answer', async () => {
    const request = { name: 'delete_network', path: { id: 1 } };
    const unconfirmed = { why: 'lost', question: { stage: 'asking', probes: 0 } };
    const { step, observed } = running();
    const doubted = waiting({ verb: 'delete', request, phase: 'waiting', unconfirmed });
    expect(await step(doubted)).toMatchObject({ now: 'closed' });
    expect(observed).toEqual(['networks.x']);
  });

  test('a pause of the class of the write leaves it open', async () => {
    const held = { code: 'unpaid', reason: 'no' };
    const { step, sent, spends } = running({ held });
    expect(await step(unknown('taken'))).toEqual({ now: 'blocked', ...held });
    expect([sent, spends]).toEqual([[], ['adds']]);
  });

  test('a taken key gets the original bytes again, which are recorded before the send', async () => {
    const { step, sent, recorded, observed } = running();
    const intent = unknown('taken', { sends: 2 });
    expect(await step(intent)).toEqual({ now: 'again', afterMs: 0 });
    expect(sent).toEqual([[intent.request, 'key-1', 't']]);
    expect(observed).toEqual([]);
    const { unconfirmed } = intent as unknown as { unconfirmed: object };
    const sending = { phase: 'sending', unconfirmed };
    expect(recorded[0]).toEqual({
      ...{ stage: sending, sends: 3 },
      ...{ lastSentAt: sentAt + hour, lastSentApiAt: sentAt + hour },
    });
    expect(recorded[1]?.stage).toMatchObject({ phase: 'accepted', answer: { id: '7' } });
  });

  test('nothing is sent once the run has to stop', async () => {
    const { step, sent, stop } = running();
    stop.abort();
    await expect(step(unknown('taken'))).rejects.toThrow();
    expect(sent).toEqual([]);
  });

  test('an observation that is too old by the end of the fence is made again', async () => {
    const late = running({ fenceMs: 30_001 });
    expect(await late.step(unknown('taken'))).toEqual({ now: 'again', afterMs: 0 });
    expect(late.sent).toEqual([]);
    const early = running({ fenceMs: 30_000 });
    await early.step(unknown('taken'));
    expect(early.sent).toHaveLength(1);
  });

  test.each([
    ['a request that would differ', waiting({ unconfirmed: open }), { digest: 'other' }, 'profile_changed'],
    ['a key that ages in the fence', unknown('taken'), { ageMs: 23 * hour - 1, fenceMs: 1 }, 'key_too_old'],
  ])('%s is not sent under an unconfirmed key', async (_name, intent, given, code) => {
    const { step, sent, recorded } = running(given);
    expect(await step(intent)).toMatchObject({ now: 'blocked', code });
    expect(sent).toEqual([]);
    expect(recorded).toMatchObject([{ stage: { phase: 'blocked', blocked: { code } } }]);
  });

  test('a request that would differ is not sent under a key that holds an answer: lists decide', async () => {
    const { step, sent, recorded } = running({ digest: 'other' });
    expect(await step(unknown('taken'))).toMatchObject({ now: 'again' });
    expect(sent).toEqual([]);
    expect(recorded).toMatchObject([
      { stage: { phase: 'unknown', unconfirmed: { question: { stage: 'open' } } } },
    ]);
  });

  test.each([
    ['a key that is young again', hour, 'key_too_old', {}, true],
    ['a key that is too old', 23 * hour, 'key_too_old', {}, false],
    ['another question', hour, 'outcome_unknown', {}, false],
    ['a write that was certainly not sent', hour, 'key_too_old', { unconfirmed: undefined }, false],
  ])('%s, after the age of the key has blocked the write', async (_name, ageMs, code, more, goesOn) => {
    const { step, recorded } = running({ ageMs });
    const question = { code, reason: '', candidates: ['9'] };
    const intent = { ...unknown('taken'), phase: 'blocked', blocked: question, ...more } as never;
    const { unconfirmed } = intent as { unconfirmed: object };
    expect(await step(intent)).toMatchObject(goesOn ? { now: 'again' } : { now: 'blocked', code });
    expect(recorded).toEqual(goesOn ? [{ stage: { phase: 'unknown', unconfirmed } }] : []);
  });

  test.each([
    ['asking', 1, { now: 'again' }, 'queued'],
    ['fenced', 1, { now: 'again', afterMs: 10 }, undefined],
    ['fenced', 0, { now: 'again', afterMs: 10 }, undefined],
    ['open', 1, { now: 'again', afterMs: 10 }, undefined],
    ['open', 0, { now: 'closed', outcome: 'void' }, undefined],
  ] as const)('a key that is %s, sent %i times', async (stage, sends, progress, told) => {
    const late = { dueAt: sentAt + hour + 10 };
    const { step, calls, sent } = running({
      more:
        stage === 'asking'
          ? {
              facts: {
                pausedBy: (_: unknown, spend: string) =>
                  spend === 'none' ? { code: 'unauthorized', reason: '' } : undefined,
              },
            }
          : {},
    });
    const intent = unknown(stage, { sends, ...(stage === 'asking' ? {} : late) });
    const ended = await step(intent);
    if (stage === 'asking') expect(ended).toMatchObject({ now: 'blocked', code: 'unauthorized' });
    else expect(ended).toMatchObject(progress);
    expect(calls.find(([name]) => name === 'report')?.[2]).toBe(told);
    expect(sent).toEqual([]);
  });

  test('a fenced key that a new state asked about holds no answer, unless the state has sent to it', async () => {
    const asked = { recovers: 'networks.x', dueAt: sentAt + hour + 10 };
    const { step, ends } = running();
    expect(await step(unknown('fenced', { ...asked, sends: 0 }))).toMatchObject({ outcome: 'absent' });
    expect(ends).toMatchObject([{ outcome: 'absent', text: 'the idempotency key holds no answer' }]);
    const sent = await running().step(unknown('fenced', { ...asked, sends: 1 }));
    expect(sent).toEqual({ now: 'again', afterMs: 10 });
  });

  test('a key that is too old is not asked: reads decide, or nothing was sent', async () => {
    const old = { ageMs: 23 * hour };
    const late = { dueAt: sentAt + 23 * hour + 10 };
    expect(await running(old).step(unknown('asking', late))).toEqual({ now: 'again', afterMs: 10 });
    const never = await running(old).step(unknown('asking', { ...late, sends: 0 }));
    expect(never).toMatchObject({ now: 'closed', outcome: 'void' });
  });

  test('a reservation that was left open ends without a request', async () => {
    const left = unknown('asking', { request: { name: 'create_network', path: {}, body: {}, probe: 2 } });
    const { step, sent } = running({ more: { intents: new Map([[left.key, left]]) } });
    expect(await step(left)).toMatchObject({ now: 'closed', outcome: 'void' });
    expect(sent).toEqual([]);
  });

  test('a closed write has no next step', async () => {
    await expect(running().step(intentOf({ phase: 'closed' }))).rejects.toThrow('closed');
  });

  const inside = { key: 'servers.x.firewall', kind: 'firewall', parentId: '1', verb: 'update' };
  const backup = { ...inside, key: 'servers.x.backup', kind: 'backup', verb: 'create' };
  const address = { ...inside, key: 'servers.x.public_ipv4', kind: 'ip', verb: 'delete' };
  const asksOperator = { now: 'blocked', code: 'outcome_unknown' };
  const isAbsent = { now: 'closed', outcome: 'absent' };
  const blocked = { code: 'odd', reason: '', candidates: [] };
  const refused = { ...blocked, until: 'file' };
  const isBlocked = { now: 'blocked', code: 'odd' };
  const ofServer = (id: string | undefined) => ({ world: { subjects: new Map(), idOf: () => id } });
  test.each([
    ['the same', '1', inside, { now: 'again' }],
    ['the same, and the write is blocked', '1', { ...inside, blocked }, isBlocked],
    ['gone, and the write is blocked', undefined, { ...inside, blocked }, isAbsent],
    ['gone, and the API refused the entry', undefined, { ...inside, blocked: refused }, isBlocked],
    ['gone, and a backup is blocked', undefined, { ...backup, blocked }, isBlocked],
    ['gone, and a backup was bought', undefined, backup, asksOperator],
    ['gone, and a backup waits', undefined, { ...backup, phase: 'waiting' }, isAbsent],
    ['gone, and its address stays', undefined, address, { now: 'again' }],
    ['itself', undefined, { ...inside, key: 'servers.x', kind: 'server' }, { now: 'again' }],
  ])('the server of the write is %s', async (_name, id, write, progress) => {
    const { step } = running(ofServer(id));
    const phase = 'blocked' in write ? 'blocked' : 'sending';
    expect(await step(intentOf({ phase, ...write }))).toMatchObject(progress);
  });

  test.each<[string, () => boolean, boolean | 'unknown', string]>([
    ['no owner that is known', () => true, 'unknown', 'accepted'],
    ['another owner', () => true, false, 'waiting'],
  ])('a send with %s', async (_name, isValid, isOwned, phase) => {
    const { run, sent, recorded } = running({ isOwned });
    const intent = intentOf({ idempotencyKey: 'key-1', because: 'key_maybe_used' });
    await send(run, intent, 't', isValid);
    expect(sent).toEqual([[intent.request, 'key-1', 't']]);
    expect(recorded[0]?.stage).toMatchObject({ phase });
    if (phase === 'waiting')
      expect(recorded[0]).toMatchObject({ dueAt: sentAt + hour, detail: 'it may not go', stage: {} });
  });

  test('a write that was not sent keeps its earlier unconfirmed stage', async () => {
    const unconfirmed = { why: 'lost', question: { stage: 'taken', probes: 0 } };
    for (const [given, stage] of [
      [
        { phase: 'waiting', because: 'key_maybe_used' },
        { phase: 'waiting', because: 'key_maybe_used' },
      ],
      [{ phase: 'waiting' }, { phase: 'waiting' }],
      [
        { phase: 'unknown', unconfirmed },
        { phase: 'unknown', unconfirmed },
      ],
    ] as const) {
      const { run, recorded } = running();
      await send(run, intentOf({ idempotencyKey: 'key-1', ...given }), 't', () => false);
      expect(recorded[0]?.stage).toEqual(stage);
    }
  });

  test('a send is valid for a minute, and its result is recorded', async () => {
    const asked: number[] = [];
    const { run, recorded, calls, stale } = running({ result: lost });
    const intent = intentOf({ idempotencyKey: 'key-1' });
    await send(run, intent, 't', (ms) => asked.push(ms) > 0);
    expect(asked).toEqual([minute]);
    expect(recorded[0]).toMatchObject({ stage: { phase: 'unknown' }, lost: 1 });
    expect(calls[0]).toEqual(['report', intent, 'sent', 'create_network key-1']);
    expect(stale.slice(0, 2)).toEqual(['sent', 'read again']);
  });
});
