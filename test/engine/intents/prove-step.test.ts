import { describe, expect, test } from 'vitest';
import type { WriteRequest, WriteResult } from '../../../src/core/ports.ts';
import { isProvable, knownChecks, prove, provedBefore } from '../../../src/engine/intents/prove.ts';
import { kinds as registered } from '../../../src/reconcilers/registry.ts';
import { answer, runWith, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;
const refused = (...names: readonly string[]) =>
  answer(422, { code: 'invalid', invalidParams: names.map((name) => ({ name, reason: 'no' })) });
const alone = refused('vdcsync_probe');
const conflict = (code: string) => answer(409, { code });
const accepted = answer(202);
const lost: WriteResult = { type: 'ambiguous', reason: 'reset' };
const known = { create_server: { refusesUnknown: true, asked: ['name', 'cores'], checks: ['cores'] } };
const request = { name: 'create_server', path: {}, body: { name: 'a', cores: 2 } } as WriteRequest;

interface Given {
  readonly answers?: readonly WriteResult[];
  readonly note?: unknown;
  readonly request?: WriteRequest;
  readonly marked?: Readonly<Record<string, number>>;
  readonly replace?: unknown;
  readonly timeScale?: number;
  readonly verb?: string;
  readonly key?: string;
}

interface Recorded {
  readonly idempotencyKey: string;
  readonly request: WriteRequest;
  readonly answer?: { readonly text: string };
}

/** A run over a project in which the server is replaced by the request, and the API answers in turn. */
function running({ answers = [], note = known, marked = {}, timeScale = 1, ...given }: Given) {
  const left = [...answers];
  const log: unknown[] = [];
  const made = stubRun();
  const fields = { cores: [5, 7] };
  const server = {
    ...{ key: 'servers.a', kind: 'server', binding: { id: '1' } },
    desired: {
      key: 'servers.a',
      kind: 'server',
      position: { file: 'a.yaml', line: 4, column: 3 },
      fields,
      value: { replace: 'replace' in given ? given.replace : 'allowed' },
    },
  };
  const address = { key: 'servers.a.public_ipv4', kind: 'ip', parent: 'servers.a' };
  const kinds = new Map([
    [
      'server',
      {
        ...registered.get('server'),
        diff: () => ({ verdict: { verdict: 'replace', reason: '', changes: [], order: 'delete_first' } }),
        writes: { request: () => given.request ?? request },
        order: { goneBefore: () => [] },
      },
    ],
  ]);
  const world = {
    subjects: new Map<string, object>([
      ['servers.a', server],
      ['servers.a.public_ipv4', address],
    ]),
    settings: {},
    observed: new Map(),
    childrenOf: () => [],
  };
  const run = runWith(made.run, {
    desired: { projectId: 4711 },
    world,
    kindOf: () => kinds.get('server'),
    stopwatch: {
      isMarked: (_id: string, moment: string) => moment in marked,
      since: (_id: string, moment: string) => marked[moment] ?? 0,
      mark: (id: string, moment: string) => void log.push(`${moment} ${id}`),
    },
    deps: {
      kinds,
      profile: { timeScale },
      store: {
        note: async (name: string) => (name === 'proof_reach' ? note : undefined),
        putNote: async (name: string, value: unknown) => void log.push({ [name]: value }),
        claimProject: async (id: number) => void log.push(`project ${id}`),
        change: async ([change]: [{ type: string; key: string; proof?: Recorded }]) => {
          const { idempotencyKey, request: sent, answer: said } = change.proof ?? {};
          const [, spare] = /^(vdcsync-spare)-/.exec(idempotencyKey ?? '') ?? [];
          const what = said === undefined ? 'record' : `answer ${said.text}`;
          log.push(`${what} (${change.type} ${change.key} ${sent?.probe} ${spare})`);
        },
      },
      writes: {
        digest: ({ name, probe }: WriteRequest) => `${name} ${probe}`,
        send: async ({ probe }: WriteRequest) => {
          log.push(`send ${probe}`);
          return left.shift();
        },
      },
    },
  });
  return { run, world: world as never, log, calls: made.calls };
}

describe('src/engine/intents/prove.ts: one step', () => {
  test.each<[string, readonly WriteResult[], object]>([
    ['nothing', [lost], { is: 'unanswered', reason: 'reset', afterMs: 5_000 }],
    ['a time to wait', [answer(429, { retryAfterMs: 7_000 })], { is: 'unanswered', afterMs: 7_000 }],
  ])('an API that refuses %s', async (_name, answers, expected) => {
    const { run, log } = running({ answers });
    expect(await prove(run, 'servers.a' as never, request)).toMatchObject(expected);
    expect(log.filter((each) => String(each).startsWith('send'))).toEqual(['send proof']);
  });

  test('the request is recorded before it is sent, and its answer after it', async () => {
    const { run, log } = running({ answers: [alone] });
    await prove(run, 'servers.a' as never, request);
    const of = '(proof servers.a proof vdcsync-spare)';
    expect(log).toEqual([
      ...['project 4711', `record ${of}`, 'send proof'],
      `answer 422 invalid · vdcsync_probe: no ${of}`,
    ]);
    const second = running({ answers: [lost] });
    await prove(second.run, 'servers.a' as never, request);
    expect(second.log.at(-1)).toContain('answer reset (proof servers.a proof vdcsync-spare)');
  });

  test('an API that accepts a proof gets no other one', async () => {
    const { run, log } = running({ answers: [accepted] });
    expect(await prove(run, 'servers.a' as never, request)).toMatchObject({
      ...{ is: 'refused', code: 'contract_breach', parameters: [] },
      reason: expect.stringContaining('check the client area'),
    });
    const kept = { ...known.create_server, refusesUnknown: false, checks: [] };
    expect(log.at(-1)).toEqual({ proof_reach: { create_server: kept } });
    const note = { create_server: kept };
    const next = running({ note });
    expect(await prove(next.run, 'servers.a' as never, request)).toEqual({
      ...{ is: 'proved', unproven: ['name', 'cores'] },
    });
    expect(next.log).toEqual([]);
    expect(await knownChecks(next.run.deps.store)).toEqual({ create_server: [] });
  });

  const reach = (asked: readonly string[], checks: readonly string[], refusesUnknown = true) => ({
    proof_reach: { create_server: { refusesUnknown, asked, checks } },
  });
  const asksName = { create_server: { refusesUnknown: true, asked: ['name'], checks: ['name'] } };
  const ofBoth = [refused('vdcsync_probe', 'cores'), alone];
  const bothReached = reach(['name', 'cores'], ['name', 'cores']);
  const noneProven = { is: 'proved', unproven: ['name', 'cores'] };
  const field = { invalidParams: [{ name: 'vdcsync_probe', reason: 'no' }] };
  test.each<[string, unknown, readonly WriteResult[], object, object?]>([
    ['was asked about another field', asksName, ofBoth, { is: 'proved', unproven: [] }, bothReached],
    ['refuses the payment', {}, [answer(402, { code: 'unpaid' })], { is: 'refused', code: 'unpaid' }],
    ['refuses the scope of the token, and names the field', {}, [answer(403, field)], noneProven],
    ['has a conflict', {}, [conflict('quota')], { ...noneProven, is: 'conflict' }],
  ])('the calibration of an API that %s', async (_name, note, answers, expected, kept) => {
    const { run, log } = running({ note, answers });
    expect(await prove(run, 'servers.a' as never, request)).toMatchObject(expected);
    expect(log.filter((each) => String(each).startsWith('send'))[0]).toBe('send impossible');
    expect(log.filter((each) => typeof each === 'object')).toEqual(kept === undefined ? [] : [kept]);
  });

  test('the calibration keeps the reach of other writes, and leaves out a field without a value', async () => {
    const other = { create_iso: { refusesUnknown: true, asked: ['url'], checks: [] } };
    const { run, log } = running({ note: other, answers: [alone, alone] });
    const body = { name: 'a', image: undefined };
    await prove(run, 'servers.a' as never, { ...request, body: body as never });
    expect(log).toContainEqual({
      proof_reach: { ...other, create_server: { refusesUnknown: true, asked: ['name'], checks: [] } },
    });
  });

  const noted = (more: object) => ({ create_server: { ...known.create_server, ...more } });
  test.each<[string, unknown, object]>([
    ['nothing', undefined, {}],
    ['null', null, {}],
    ['a reach without an answer about the field', noted({ refusesUnknown: undefined }), {}],
    ['fields of which one is no text', noted({ asked: ['a', 1] }), {}],
  ])('a note that holds %s', async (_name, note, expected) => {
    expect(await knownChecks({ note: async () => note as never })).toEqual(expected);
  });

  test.each([
    [null, false],
    ['x', false],
  ])('a request with the body %j can be proved: %s', (body, is) => {
    expect(isProvable({ ...request, body } as never)).toBe(is);
  });
});

describe('src/engine/intents/prove.ts: before a deletion', () => {
  const beforeDeletion = async (given: Given) => {
    const played = running(given);
    const { key = 'servers.a', verb = 'delete' } = given;
    const progress = await provedBefore(played.run, played.world, { key, verb } as never);
    return { ...played, progress };
  };
  const proved = 'proved create_server proof';

  test('a proof permits the deletion, and counts for ten minutes', async () => {
    const first = await beforeDeletion({ answers: [alone] });
    expect([first.progress, first.log.at(-1)]).toEqual([undefined, proved]);
    expect((await beforeDeletion({ marked: { proved: 10 * minute } })).log).toEqual([]);
    expect((await beforeDeletion({ marked: { proved: 10 * minute + 1 }, answers: [alone] })).log).toContain(
      'send proof',
    );
    expect((await beforeDeletion({ marked: { silent: 0 }, answers: [alone] })).log).toContain('send proof');
  });

  test.each<[string, Given]>([
    ['a resource that does not exist', { key: 'servers.b' }],
    ['the address of a server', { key: 'servers.a.public_ipv4' }],
    ['a creation without a body', { request: { name: 'create_server', path: {} } as never }],
  ])('%s needs no proof', async (_name, given) => {
    const { progress, log } = await beforeDeletion(given);
    expect([progress, log]).toEqual([undefined, []]);
  });

  const quota = (order: string) => ({ answers: [conflict('quota')], replace: { order } });
  test.each<[string, Given, boolean]>([
    ['a quota, and the file asks for this order', quota('delete_first'), true],
    ['a quota, and the file asks for the other order', quota('create_first'), false],
    ['a quota, and the file asks for no order', { ...quota(''), replace: undefined }, false],
  ])('a conflict about %s', async (_name, given, permits) => {
    const { progress, log } = await beforeDeletion(given);
    if (permits) expect([progress, log.at(-1)]).toEqual([undefined, proved]);
    else
      expect([progress, log.includes(proved)]).toMatchObject([
        {
          ...{ now: 'blocked', code: 'quota', reason: '409 quota. Nothing was deleted' },
          remedies: [
            { type: 'edit', path: 'servers.a', set: { replace: { order: 'delete_first' } } },
            { type: 'outside', text: 'end the conflict in the client area', next: [{ command: 'apply' }] },
          ],
        },
        false,
      ]);
  });

  test('a refused value deletes nothing, and its field has to be corrected', async () => {
    const { progress, log, calls } = await beforeDeletion({ answers: [refused('vdcsync_probe', 'cores')] });
    expect(progress).toMatchObject({ now: 'blocked', code: 'invalid' });
    expect(progress).toMatchObject({
      reason: '422 invalid · cores: no. Nothing was deleted',
      remedies: [{ path: 'servers.a', choose: { cores: [] }, at: ['a.yaml:5:7'] }],
    });
    expect(log).not.toContain(proved);
    expect(calls.map(([name]) => name)).toEqual(['report']);
  });

  test('a refusal for the payment pauses its class', async () => {
    const { progress, calls } = await beforeDeletion({ answers: [answer(402, { code: 'unpaid' })] });
    expect(progress).toEqual({ now: 'blocked', code: 'unpaid', reason: '402 unpaid' });
    expect(calls.map(([name]) => name)).toContain('pause');
  });

  test('without an answer the proof is sent again, for ten minutes', async () => {
    const first = await beforeDeletion({ answers: [lost], timeScale: 2 });
    expect(first.progress).toEqual({ now: 'again', afterMs: 10_000 });
    expect(first.log.at(-1)).toBe('silent create_server proof');
    const second = await beforeDeletion({ answers: [lost], marked: { silent: 10 * minute - 1 } });
    expect(second.progress).toEqual({ now: 'again', afterMs: 5_000 });
    expect(second.log.at(-1)).toContain('answer reset (proof servers.a proof vdcsync-spare)');
    expect(second.calls.map(([name, , stage]) => [name, stage])).toEqual([
      ['report', 'checking'],
      ['report', 'waiting'],
    ]);
    expect(second.calls.at(-1)?.slice(3)).toEqual(['reset', { untilMs: sentAt + 5_000 }]);
    const last = await beforeDeletion({ answers: [lost], marked: { silent: 10 * minute } });
    expect(last.progress).toEqual({
      ...{ now: 'blocked', code: 'key_not_answered', reason: 'reset. Nothing was deleted' },
    });
  });
});
