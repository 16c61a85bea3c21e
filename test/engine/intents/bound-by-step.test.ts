import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { WriteResult } from '../../../src/core/ports.ts';
import type { Intent } from '../../../src/core/state.ts';
import {
  awaitServer,
  coverable,
  isExposedUntilEnd,
  needsFirewall,
  refusedEarly,
  sendAfterCreation,
  sendIfReset,
  serverIdOf,
  serverInCreation,
  withServer,
} from '../../../src/engine/intents/bound-by.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;
const server = 'servers.a' as ResourceKey;
const wall = 'servers.a.firewall' as ResourceKey;

/** The accepted creation of a server whose task has not ended. */
const creation = (answer: object = {}, more: object = {}) =>
  intentOf({
    ...{ id: 'made', key: server, kind: 'server', phase: 'accepted' },
    answer: { at: sentAt, id: '7', facts: {}, to: 'this_send', end: 'reported', ...answer },
    ...more,
  });
/** The firewall of that server. */
const sent = (more: object = {}) =>
  intentOf({ id: 'wall', key: wall, kind: 'firewall', parentId: '7', lastSentAt: sentAt, ...more });

interface Given {
  readonly open?: readonly Intent[];
  /** The binding of the server. */
  readonly bound?: { readonly id: string; readonly boundAt?: number };
  readonly declared?: boolean;
  readonly firewallAfterMs?: number;
  readonly marked?: readonly string[];
  readonly ageMs?: number;
  /** The id of the server in reads. */
  readonly seen?: string;
}

function running({
  open = [creation()],
  bound,
  declared = true,
  marked = [],
  ageMs = 0,
  seen,
  ...more
}: Given = {}) {
  const made = stubRun();
  const { firewallAfterMs = 0 } = more;
  const closed: unknown[] = [];
  const firewall = {
    key: wall,
    kind: 'firewall',
    parent: server,
    ...(declared ? { desired: { managed: true, value: { enabled: true } } } : {}),
  };
  const world = {
    subjects: new Map<string, object>([[wall, firewall]]),
    childrenOf: (key: string) => (key === server ? [firewall] : []),
    idOf: (key: string) => (key === server ? seen : `id of ${key}`),
    observed: new Map([server, wall, 'servers.b'].map((key) => [key, {}])),
  };
  const run = runWith(made.run, {
    world,
    intents: new Map(open.map((each) => [each.key, each])),
    bindings: new Map(bound === undefined ? [] : [[server, bound]]),
    gate: { firewallAfterMs },
    kindOf: () => ({ timing: { deadlineMs: 30 * minute } }),
    stopwatch: {
      since: (_id: string, moment: string, at: number) =>
        moment === 'accepted' ? sentAt + ageMs - at : Number.NaN,
      isMarked: (id: string, moment: string) => marked.includes(`${id} ${moment}`),
      mark: (id: string, moment: string) => void made.calls.push(['mark', id, moment]),
    },
    close: async (_intent: Intent, ended: object) => void closed.push(ended),
  });
  return { run, world, closed, calls: made.calls };
}

describe('src/engine/intents/bound-by.ts: a server in creation', () => {
  test.each<[string, Given, string | undefined]>([
    ['at its deadline', { ageMs: 30 * minute }, '7'],
    ['past its deadline', { ageMs: 30 * minute + 1 }, undefined],
    ['whose answer is missing', { open: [creation({}, { phase: 'unknown' })] }, undefined],
    ['that another send created', { open: [creation({ to: 'unknown_send' })] }, undefined],
    ['whose end reads show', { open: [creation({ end: 'read' })] }, undefined],
  ])('%s: its id', (_name, given, id) => {
    const { run } = running(given);
    expect(serverInCreation(run, server)).toBe(id);
    expect(coverable(run, server)).toBe(id);
  });

  test.each<[string, Given, string | undefined]>([
    ['before the end', { firewallAfterMs: 1 }, undefined],
    ['after the end', { firewallAfterMs: 1, marked: ['made ended'] }, '7'],
    ['after a refusal', { firewallAfterMs: 1, marked: ['made ended', 'made refused_early'] }, undefined],
  ])('an API that refuses firewalls until the end gets one %s', (_name, given, id) => {
    expect(coverable(running(given).run, server)).toBe(id);
  });

  test.each<[string, Given, string | undefined]>([
    ['in creation past its deadline', { ageMs: 31 * minute }, '7'],
    ['that does not exist', { open: [] }, undefined],
  ])('the id of a server %s', (_name, given, id) => {
    expect(serverIdOf(running(given).run, server)).toBe(id);
  });

  test('the world with a new server has no observation of the old one, and of its parts', () => {
    const { world } = running();
    const changed = withServer(world as never, server, '7');
    expect([...changed.observed.keys()]).toEqual(['servers.b']);
    expect([server, 'servers.b'].map((each) => changed.idOf(each as ResourceKey))).toEqual([
      '7',
      'id of servers.b',
    ]);
  });

  test.each<[string, Given, object, boolean]>([
    ['an API that refuses firewalls until the end', { firewallAfterMs: 1 }, {}, true],
    ['an API that accepts firewalls at once', {}, {}, false],
    ['a deletion', { firewallAfterMs: 1, bound: { id: '3' } }, { verb: 'delete' }, false],
    ['a server without a firewall', { firewallAfterMs: 1, declared: false }, {}, false],
    ['a firewall that is sent', { firewallAfterMs: 1, open: [creation(), sent()] }, {}, false],
  ])('%s: the server is exposed until the end of its creation', (_name, given, more, is) => {
    expect(isExposedUntilEnd(running(given).run, creation({}, more))).toBe(is);
  });

  test.each<[string, Given, object, boolean]>([
    ['a firewall that is not sent', {}, {}, true],
    ['an accepted firewall', { open: [sent({ phase: 'accepted', answer: {} })] }, {}, false],
    ['a firewall of a server that is deleted', {}, { verb: 'delete' }, false],
  ])('a created server with %s needs its firewall', (_name, given, more, is) => {
    expect(needsFirewall(running(given).run, creation({}, more))).toBe(is);
  });
});

describe('src/engine/intents/bound-by.ts: a firewall in the creation of its server', () => {
  const answer = (status: number, more: object = {}) =>
    ({ type: 'answer', status, requestId: 'r', replayed: false, ...more }) as WriteResult;

  test.each<[string, Given, object, boolean]>([
    ['before the binding', { bound: { id: '7', boundAt: sentAt + 1 } }, {}, true],
    ['with the binding', { bound: { id: '7', boundAt: sentAt } }, {}, false],
    ['to the server before', { bound: { id: '3', boundAt: sentAt + 1 } }, {}, false],
    ['without a server', {}, { parentId: undefined }, false],
    ['as another part', {}, { kind: 'backup' }, false],
  ])('sent %s: early', async (_name, given, more, is) => {
    const { run, closed, calls } = running(given);
    const intent = sent(more);
    expect(await refusedEarly(run, intent, answer(409))).toEqual(
      is ? { now: 'closed', outcome: 'refused', detail: expect.any(String), retryAfterMs: 0 } : undefined,
    );
    expect(closed).toHaveLength(is ? 1 : 0);
    expect([run.gate.firewallAfterMs, calls]).toEqual(
      is ? [9, [['mark', 'made', 'refused_early']]] : [0, []],
    );
    expect(awaitServer(run, intent) !== undefined).toBe(is && given.bound === undefined);
    const reset = running(given);
    expect((await sendIfReset(reset.run, intent)) !== undefined).toBe(is);
    expect([reset.run.gate.firewallAfterMs, reset.closed]).toEqual(
      is
        ? [9, [{ outcome: 'absent', text: 'the firewall was reset when the creation of its server ended' }]]
        : [0, []],
    );
  });

  test.each<[WriteResult, string | undefined]>([
    [answer(404, { detail: 'no card', code: 'x' }), 'no card'],
    [answer(409, { code: 'server_busy' }), 'server_busy'],
    [answer(409), '409'],
    [answer(409, { replayed: true }), undefined],
    [answer(422), undefined],
  ])('refused with %j', async (result, reason) => {
    const { run, closed } = running();
    await refusedEarly(run, sent(), result);
    const text = `the server is still being created: ${reason}`;
    expect(closed).toEqual(reason === undefined ? [] : [{ outcome: 'refused', text }]);
  });

  test('refused after the creation, the firewall is sent again', async () => {
    const { run, closed, calls } = running({ open: [] });
    expect(await refusedEarly(run, sent(), answer(409))).toMatchObject({ now: 'closed' });
    expect([closed.length, calls]).toEqual([1, []]);
  });

  test('the firewall is sent again once after a reset', async () => {
    const { run } = running();
    expect(await sendIfReset(run, sent())).toMatchObject({ now: 'closed', retryAfterMs: 0 });
    run.deps.store.intents = async () => [sent({ phase: 'closed', outcome: 'absent' })];
    expect(await sendIfReset(run, sent())).toMatchObject({ now: 'blocked', code: 'not_there' });
  });

  test('the firewall follows the time that creations took, or the next moment', async () => {
    const { run } = running();
    await sendAfterCreation(run);
    expect(run.gate.firewallAfterMs).toBe(9);
    run.deps.tasks.earliest = async () => 0;
    await sendAfterCreation(run);
    expect(run.gate.firewallAfterMs).toBe(1);
  });

  test('the firewall waits for the end of the creation, whose task is named', () => {
    const { run, calls } = running({ open: [creation({ taskId: 'task-1' })] });
    expect(awaitServer(run, sent())).toEqual({ now: 'again', afterMs: 5_000 });
    expect(calls).toEqual([['report', expect.anything(), 'task', 'task-1']]);
    const second = running();
    awaitServer(second.run, sent());
    expect(second.calls).toEqual([['report', expect.anything(), 'task', 'of its server']]);
    expect(awaitServer(running({ open: [] }).run, sent())).toBeUndefined();
  });
});
