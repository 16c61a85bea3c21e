import { describe, expect, test } from 'vitest';
import type { Conclusive, WriteResult } from '../../../src/core/ports.ts';
import type { WhyUnknown } from '../../../src/core/state.ts';
import { record, spendOf } from '../../../src/engine/intents/record.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { intentOf, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;
const said = (status: number, more: Partial<Conclusive> = {}): Conclusive => ({
  ...{ type: 'answer', status, requestId: 'req_1', replayed: false },
  ...more,
});
const lost: WriteResult = { type: 'ambiguous', reason: 'reset' };
const unconfirmed = (why: WhyUnknown, stage = 'asking', more: object = {}) => ({
  phase: 'unknown',
  unconfirmed: { why, question: { stage, probes: 0, ...more } },
});
const put = { key: 'servers.x.firewall', kind: 'firewall', verb: 'update' };
const unsent: WriteResult = { type: 'unsent', reason: '' };
const unreadable = said(200, { malformed: 'x' });
const refusal = said(422, { code: 'no' });
const doubted = { phase: 'waiting', because: 'key_maybe_used' };
const remove = { verb: 'delete', request: { name: 'delete_network', path: { id: 1 } } };

/** The progress after the result of a send, and all that it records. */
async function stepOf(
  result: WriteResult,
  write: object = {},
  ageMs = 0,
  past: readonly object[] = [],
  more: { readonly more?: object; readonly claims?: readonly object[] } = {},
) {
  const { run, recorded, ends, calls } = stubRun({ ageMs, past, ...more });
  const progress = await record(run, intentOf(write), result);
  return { progress, recorded, ends, calls };
}

const lostAt = (stage: string, more: object = {}) => unconfirmed('lost', stage, more);
const unreadableAt = (stage: string) => unconfirmed('unreadable', stage);
const behindGateway = unconfirmed('gateway_error');
const thrice = { probes: 3 };
const refusedByKey = unconfirmed('reused', 'asking', { conflict: true });
const again = (afterMs: number, stage: object, more: object = {}) => ({
  progress: { now: 'again', afterMs },
  recorded: [{ stage, ...more }],
});

describe('src/engine/intents/record.ts', () => {
  test.each<[string, WriteResult, object, object]>([
    ['no connection', unsent, {}, again(1_000, { phase: 'waiting' }, { dueAt: sentAt + 1_000 })],
    ['a third missing connection', unsent, { sends: 3 }, again(4_000, { phase: 'waiting' })],
    ['an unclear conflict', said(409, { code: 'odd' }), {}, again(5_000, doubted)],
    ['429 to a write with an unconfirmed key', said(429), doubted, again(0, doubted)],
    ['429 to a lost write', said(429), unconfirmed('lost', 'taken'), again(0, unconfirmed('lost', 'taken'))],
    ['a lost answer', lost, {}, again(50_000, unconfirmed('lost'), { lost: 1, dueAt: sentAt + 50_000 })],
    [
      'an answer that is lost again',
      lost,
      { lost: 1, ...lostAt('taken', thrice) },
      again(50_000, lostAt('taken', thrice), { lost: 2 }),
    ],
    ['a lost answer to a PUT', lost, { ...put, ...lostAt('taken') }, again(50_000, lostAt('asking'))],
    ['a lost answer after a gateway error', lost, behindGateway, again(50_000, behindGateway)],
    [
      'a lost answer after an unreadable one',
      lost,
      unreadableAt('taken'),
      again(50_000, unreadableAt('taken')),
    ],
    ['a lost answer after a conflict', lost, unconfirmed('conflict'), again(50_000, unconfirmed('lost'))],
    ['a 5xx', said(500), {}, again(50_000, unconfirmed('server_error'), { lost: 1, requestId: 'req_1' })],
    ['an unreadable answer', unreadable, {}, again(1_000, unconfirmed('unreadable', 'taken'), { lost: 1 })],
    [
      'a third unreadable answer',
      unreadable,
      { lost: 2, ...unreadableAt('taken') },
      again(1_000, unreadableAt('open')),
    ],
    ['a third server error', said(500), { lost: 2 }, again(50_000, unconfirmed('server_error', 'asking'))],
    [
      'a refusal that may mean a used key',
      refusal,
      {},
      again(1_000, unconfirmed('refused', 'taken'), { lost: 0 }),
    ],
    ['a refusal of the resend', refusal, lostAt('taken'), again(1_000, refusedByKey, { lost: 0 })],
    ['404 to a deletion', said(404), remove, again(50_000, unconfirmed('not_found'), { lost: 0 })],
  ])('%s', async (_name, result, write, step) => {
    expect(await stepOf(result, write)).toMatchObject({ ...step, ends: [] });
  });

  test('a question without a conflict has no mark of one', async () => {
    const { recorded } = await stepOf(refusal);
    expect(recorded[0]?.stage).toEqual(unconfirmed('refused', 'taken'));
    expect((await stepOf(lost)).recorded[0]).not.toHaveProperty('requestId');
    const { recorded: waiting } = await stepOf(unsent);
    expect(waiting[0]?.stage).toEqual({ phase: 'waiting' });
    expect(waiting[0]).not.toHaveProperty('requestId');
  });

  const busy = said(409, { code: 'server_busy' });
  const odd = said(409, { code: 'odd' });
  const blockedBy = (code: string, ends: readonly object[] = []) => ({
    progress: { now: 'blocked', code },
    ends,
  });
  const closed = (ended: object = { outcome: 'refused' }) => ({
    progress: { now: 'closed', retryAfterMs: 0 },
    ends: [ended],
  });
  const late = 10 * minute + 1;
  const lasting = { stage: unconfirmed('conflict', 'asking', { lasting: 'odd' }) };
  test.each<[string, WriteResult, object, number, object]>([
    ['for ten minutes', busy, {}, 10 * minute, { progress: { now: 'again' } }],
    ['for longer', busy, {}, late, blockedBy('server_busy')],
    [
      'by a used key for longer',
      odd,
      {},
      late,
      { progress: { now: 'again', afterMs: 0 }, recorded: [{}, lasting] },
    ],
    ['for longer, a deletion by a used key', odd, remove, late, blockedBy('odd', [{ outcome: 'refused' }])],
  ])('refused %s', async (_name, result, write, ageMs, step) => {
    expect(await stepOf(result, write, ageMs)).toMatchObject(step);
  });

  const replayed = { phase: 'closed', outcome: 'refused', because: 'replayed' };
  const rows = (count: number) => Array.from({ length: count }, (_, at) => ({ ...replayed, id: `${at}` }));
  const stored = said(422, { code: 'no', replayed: true, title: 'No' });
  const forField = said(422, { code: 'no', invalidParams: [{ name: 'cidr', reason: '' }] });
  const asksFile = { stage: { phase: 'blocked', blocked: { until: 'file', parameters: ['cidr'] } } };
  const broken = [...rows(48), { id: 'x', phase: 'closed', outcome: 'done' }, ...rows(48)];
  const unpaid = said(402, { code: 'unpaid' });
  test.each<[string, WriteResult, object, readonly object[], object]>([
    ['for a field', forField, {}, [], { ...blockedBy('no'), recorded: [{}, asksFile] }],
    ['404', said(404, { code: 'gone' }), {}, [], blockedBy('gone', [{ outcome: 'refused' }])],
    ['for one token', said(403, { ofToken: true }), {}, [], closed()],
    ['by a stored answer', stored, {}, [], closed({ outcome: 'refused', because: 'replayed' })],
    ['by a 50th stored answer', stored, {}, rows(49), blockedBy('no')],
    ['by stored answers, but not in a row', stored, {}, broken, { progress: { now: 'closed' } }],
    [
      '402 to a write with an unconfirmed key',
      unpaid,
      doubted,
      [],
      { ...blockedBy('unpaid'), recorded: [{ stage: unconfirmed('conflict') }] },
    ],
  ])('refused %s', async (_name, result, write, past, step) => {
    expect(await stepOf(result, write, 0, past)).toMatchObject(step);
  });

  test('a refusal of the spec names no parameters if the API names none', async () => {
    const { recorded } = await stepOf(said(410, { code: 'no' }));
    expect(recorded[0]).toEqual({ requestId: 'req_1', stage: { phase: 'sending' } });
    expect(recorded[1]?.stage).toMatchObject({ blocked: { until: 'file' } });
    const { blocked = {} } = (recorded[1]?.stage ?? {}) as { blocked?: object };
    expect(blocked).not.toHaveProperty('parameters');
  });

  const data = { id: 7, name: 'x', cidr: '10.0.0.0/24' };
  const task = { id: 't-1', terminal: false } as NonNullable<Conclusive['task']>;
  const replay = said(202, { data, task, replayed: true });
  const recovering = { ...unconfirmed('lost'), recovers: 'networks.x' };
  test.each<[string, Conclusive, object, object]>([
    ['without a task', said(201, { data, task: null }), {}, { id: '7', to: 'this_send', end: 'reported' }],
    ['202 without a task', said(202, { data, task: null }), {}, { to: 'this_send', end: 'unreported' }],
    ['200 with a task', said(200, { data, task }), {}, { taskId: 't-1', end: 'reported' }],
    ['by a replay', replay, {}, { to: 'unknown_send' }],
    ['by a replay to a resend', replay, unconfirmed('lost'), { to: 'earlier_send' }],
    ['by a replay to the question of a new state', replay, recovering, { to: 'unknown_send' }],
  ])('accepted %s', async (_name, result, write, answer) => {
    const { progress, recorded } = await stepOf(result, write);
    expect(progress).toEqual({ now: 'again', afterMs: 0 });
    expect(recorded).toMatchObject([
      { stage: { phase: 'accepted', answer: { at: sentAt, ...answer } }, requestId: 'req_1' },
    ]);
  });

  test('an answer without a task or an id records neither', async () => {
    const { recorded } = await stepOf(said(200), { ...remove });
    expect(recorded[0]?.stage).toStrictEqual({
      phase: 'accepted',
      answer: { at: sentAt, apiAt: sentAt, facts: {}, to: 'this_send', end: 'reported' },
    });
  });

  test.each([
    ['server', 'create', 'adds'],
    ['server', 'update', 'none'],
    ['firewall', 'create', 'none'],
  ] as const)('the spending of %s %s, which the spec does not ask for: %s', (kind, verb, spend) => {
    expect(spendOf(stubRun().run, intentOf({ kind, verb }))).toBe(spend);
  });

  test('the spending of an update is that of the difference, such as a larger size', () => {
    const subject = { key: 'servers.x', kind: 'server', desired: { managed: true, value: {} } };
    const spend = (verb: string, drafted: object) => {
      const diff = { verdict: { verdict: 'update', changes: [] }, ...drafted };
      const kind = { ...kinds.get('server'), diff: () => diff };
      const world = {
        ...{ subjects: new Map([['servers.x', subject]]), observed: new Map(), settings: {} },
        childrenOf: () => [],
      };
      const run = { ...stubRun().run, world, deps: { kinds: new Map([['server', kind]]) } };
      return spendOf(run as never, intentOf({ key: 'servers.x', kind: 'server', verb }));
    };
    expect(spend('update', { spend: 'adds' })).toBe('adds');
    expect(spend('update', {})).toBe('none');
    expect(spend('delete', { spend: 'adds' })).toBe('reduces');
  });

  test('a deletion waits no longer than that of a server', async () => {
    const busy = said(409, { code: 'busy' });
    const gone = {
      verb: 'delete',
      kind: 'iso',
      key: 'isos.x',
      request: { name: 'delete_iso', path: { id: 'u' } },
    };
    const deadlineMs = kinds.get('server')?.timing.deadlineMs ?? 0;
    expect((await stepOf(busy, gone, deadlineMs)).progress.now).toBe('again');
    expect((await stepOf(busy, gone, deadlineMs + 1)).progress.now).toBe('blocked');
    const added = { kind: 'iso', key: 'isos.x', request: { name: 'add_iso', path: {}, body: {} } };
    expect((await stepOf(busy, added, deadlineMs + 1)).progress.now).toBe('again');
  });

  test('an answer is reported, and a lost answer is not', async () => {
    expect((await stepOf(said(500))).calls).toContainEqual(['answered', 'networks.x', 'req_1']);
    expect((await stepOf(lost)).calls.map(([name]) => name)).not.toContain('answered');
  });

  test('each wait is reported with its end and the code of the refusal', async () => {
    const reports = async (result: WriteResult, write: object, wait: object) =>
      expect((await stepOf(result, write)).calls).toContainEqual([
        ...['report', expect.anything(), 'waiting', expect.any(String)],
        wait,
      ]);
    const until = expect.objectContaining({ untilMs: sentAt + 3_000, code: 'server_busy' });
    await reports(said(409, { code: 'server_busy', retryAfterMs: 3_000 }), {}, until);
    await reports(said(404, { code: 'gone' }), remove, { untilMs: sentAt + 50_000, code: 'gone' });
    await reports(lost, {}, { untilMs: sentAt + 50_000 });
  });

  test('a firewall waits for as long as the creation of its server may take', async () => {
    const bound = { kind: 'server', boundAt: sentAt - 5 * minute, id: '1' };
    const more = { more: { bindings: new Map([['servers.x', bound]]) } };
    const busy = said(409, { code: 'server_busy' });
    const at = async (ageMs: number) => (await stepOf(busy, put, ageMs, [], more)).progress.now;
    const deadlineMs = (kinds.get('server')?.timing.deadlineMs ?? 0) - 5 * minute;
    expect(await at(deadlineMs)).toBe('again');
    expect(await at(deadlineMs + 1)).toBe('blocked');
  });

  const firewall = {
    ...{ key: 'servers.x.firewall', kind: 'firewall', parent: 'servers.x' },
    desired: { managed: true, value: { enabled: true } },
  };
  const created = {
    key: 'servers.x',
    kind: 'server',
    request: { name: 'create_server', path: {}, body: {} },
  };
  const aServer = said(202, { data: { id: 7 }, task });
  async function exposing(result: Conclusive, afterMs: number, children: readonly object[] = [firewall]) {
    const grace = new Set<string>();
    const expected: string[] = [];
    const gate = { firewallAfterMs: afterMs, expect: (key: string) => void expected.push(key) };
    const world = { subjects: new Map(), childrenOf: () => children, ipsOf: () => [], idOf: () => undefined };
    const { calls } = await stepOf(result, created, 0, [], { more: { gate, grace, world } });
    const exposed = calls.filter(([name]) => name === 'expose').map(([, ...given]) => given);
    return { exposed, grace: [...grace], expected, afterMs: gate.firewallAfterMs };
  }

  test('an accepted server is exposed, and its firewall gets a turn at once', async () => {
    expect(await exposing(aServer, 0)).toEqual({
      exposed: [['servers.x', 0, true]],
      grace: ['servers.x.firewall'],
      expected: ['servers.x.firewall'],
      afterMs: 0,
    });
    expect((await exposing({ ...aServer, replayed: true }, 0)).exposed).toEqual([['servers.x', 0, false]]);
    expect(await exposing(aServer, 0, [])).toMatchObject({ grace: [], expected: [] });
  });

  test('if the API refuses an early firewall, the firewall waits for the end of the task', async () => {
    expect(await exposing(aServer, 1)).toMatchObject({
      grace: [],
      expected: ['servers.x.firewall'],
      afterMs: 9,
    });
  });

  const made = said(201, { data, task: null });
  const names = (calls: readonly (readonly unknown[])[]) => calls.map(([name]) => name);

  test('only the creation of a server exposes one, and each acceptance is marked', async () => {
    const resize = {
      ...created,
      verb: 'update',
      request: { name: 'resize_server', path: { id: 7 }, body: {} },
    };
    for (const write of [{}, resize]) {
      const { calls } = await stepOf(made, write);
      expect(names(calls)).not.toContain('expose');
      expect(calls).toContainEqual(['mark', 'i', 'accepted']);
    }
  });

  test('a resource whose id another key had is taken over, unless the answer is old', async () => {
    const bindings = new Map([
      ['networks.old', { key: 'networks.old', kind: 'network', id: '7', identity: {} }],
    ]);
    const more = { more: { bindings } };
    const release = expect.objectContaining({ type: 'release', key: 'networks.old' });
    expect((await stepOf(made, {}, 0, [], more)).calls).toContainEqual(['run.change', [release]]);
    for (const [result, write] of [
      [{ ...made, replayed: true }, {}],
      [made, { verb: 'update' }],
      [said(201, { task: null }), {}],
    ] as const)
      expect(names((await stepOf(result, write, 0, [], more)).calls)).not.toContain('run.change');
    expect(names((await stepOf(made)).calls)).not.toContain('run.change');
  });

  test('a write that an earlier one was sent after is superseded', async () => {
    const answer = { at: sentAt, id: '7', facts: {}, to: 'this_send', end: 'reported' };
    const other = intentOf({
      id: 'other',
      key: 'networks.old',
      phase: 'accepted',
      answer,
      firstSentAt: sentAt + 1,
    });
    const more = { more: { intents: new Map([['networks.old', other]]) } };
    const { calls, recorded } = await stepOf(made, {}, 0, [], more);
    expect(calls).toContainEqual(['supersede', 'networks.old', 'networks.x']);
    expect(recorded[0]?.stage).toMatchObject({ phase: 'superseded', by: 'networks.x' });
  });

  test('an accepted write ends the pause of its class, an old answer does not', async () => {
    const holder = {
      is: 'paused',
      scope: 'spending',
      kind: 'ip',
      verb: 'create',
      code: 'unpaid',
      reason: '',
    };
    const claims = [{ kind: 'project', id: 'spending', identity: {}, at: 0, holder }];
    const unclaim = [expect.objectContaining({ type: 'unclaim' })];
    const lifted = ['change', unclaim, sentAt];
    expect((await stepOf(made, {}, 0, [], { claims })).calls).toContainEqual(lifted);
    const replayed = { ...made, replayed: true };
    expect(names((await stepOf(replayed, {}, 0, [], { claims })).calls)).not.toContain('change');
  });

  test('an answer against the document of the API is a warning', async () => {
    const { calls } = await stepOf(said(202, { data, task: null }));
    const warning = {
      code: 'contract_breach',
      key: 'networks.x',
      message: expect.stringMatching(/^create_network: /),
    };
    expect(calls).toContainEqual(['event', { type: 'warning', at: sentAt, warning }]);
    expect(names((await stepOf(made)).calls)).not.toContain('event');
  });

  test('a refusal pauses its class, with its code and reason, only if it is about more than the write', async () => {
    const unpaid = said(402, { code: 'unpaid', title: 'Unpaid' });
    const told = expect.objectContaining({ code: 'unpaid', reason: expect.stringContaining('Unpaid') });
    for (const write of [{}, unconfirmed('lost')])
      expect((await stepOf(unpaid, write)).calls).toContainEqual([
        'pause',
        'spending',
        expect.anything(),
        told,
      ]);
    expect(names((await stepOf(said(404, { code: 'gone' }))).calls)).not.toContain('pause');
  });

  test('a firewall that is refused before the end of the creation of its server is sent again', async () => {
    const world = { subjects: new Map([['servers.x.firewall', { parent: 'servers.x' }]]) };
    const more = { more: { world, gate: { firewallAfterMs: 0 } } };
    const early = { ...put, parentId: '7' };
    const { progress, ends } = await stepOf(said(409, { code: 'server_busy' }), early, 0, [], more);
    expect(progress).toMatchObject({ now: 'closed', retryAfterMs: 0 });
    expect(ends).toMatchObject([{ outcome: 'refused' }]);
  });

  test('a package without capacity makes room for the next one', async () => {
    const exhausted: unknown[] = [];
    const value = { gpu_package: ['a', 'b'] };
    const more = {
      world: { subjects: new Map([['servers.x', { desired: { value } }]]), childrenOf: () => [] },
      facts: { exhaustedOf: () => [], exhaust: (_key: string, all: unknown) => void exhausted.push(all) },
    };
    const gpu = { ...created, request: { name: 'create_server', path: {}, body: { gpu_package: 'a' } } };
    const { progress } = await stepOf(said(409, { code: 'no_gpu_capacity' }), gpu, 0, [], { more });
    expect(progress).toMatchObject({ now: 'closed', retryAfterMs: 0 });
    expect(exhausted).toEqual([['a']]);
  });

  const question = (more: object = {}) =>
    intentOf({ phase: 'closed', outcome: 'void', recovers: 'networks.x', ...more });
  test.each<[string, WriteResult, object, readonly object[], boolean]>([
    ['without an answer', said(402, { code: 'unpaid' }), {}, [question()], true],
    ['without an answer, for another token', said(401, { code: 'no' }), {}, [question()], true],
    ['that was answered', said(402, { code: 'unpaid' }), {}, [question({ outcome: 'absent' })], false],
    ['that another key had', said(402, { code: 'unpaid' }), {}, [question({ because: 'taken' })], false],
    ['that is no question', said(402, { code: 'unpaid' }), {}, [question({ recovers: undefined })], false],
    ['that was never asked', said(402, { code: 'unpaid' }), {}, [], false],
    ['of an update', said(402, { code: 'unpaid' }), { verb: 'update' }, [question()], false],
  ])('a refusal of the token after a question %s', async (_name, result, write, past, isDoubted) => {
    const { recorded, ends } = await stepOf(result, write, 0, past);
    expect(ends).toHaveLength(isDoubted ? 0 : 1);
    expect(recorded.some(({ stage }) => stage !== undefined && 'unconfirmed' in stage)).toBe(isDoubted);
  });

  test('a refusal of the spec after a question without an answer is no refusal of the token', async () => {
    const [after, without] = [await stepOf(refusal, {}, 0, [question()]), await stepOf(refusal)];
    expect(after.recorded).toEqual(without.recorded);
  });
});
