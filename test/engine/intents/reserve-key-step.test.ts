import { describe, expect, test } from 'vitest';
import type { WriteResult } from '../../../src/core/ports.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import {
  endIfReserved,
  endReservation,
  isReservation,
  reservationOf,
  reserve,
} from '../../../src/engine/intents/reserve-key.ts';
import { reserveUnreached, unreachedKeys } from '../../../src/engine/run/unreached-keys.ts';
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

const minute = 60_000;
const unaskable = { create_network: { storesRefusals: false } };
const probed = { name: 'create_network', path: {}, body: {}, probe: 2 };

const bindingOf = (more: object = {}) =>
  ({
    key: 'networks.x',
    kind: 'network',
    id: '33',
    formerKeys: ['networks.old'],
    boundAt: sentAt,
    ...more,
  }) as unknown as Binding;
/** A record of the past of `networks.x`. */
const pastOf = (more: object = {}) =>
  intentOf({ phase: 'closed', outcome: 'void', because: 'reserved', request: probed, ...more });

/** A run in whose state `networks.x` has the network that was created under `networks.old`. */
function reserving({
  answers = [] as readonly WriteResult[],
  bindings = [bindingOf()] as readonly Binding[],
  open = [] as readonly Intent[],
  past = [] as readonly Intent[],
  ageMs = 0,
  behaviours = { create_network: behaviour } as object,
  held = undefined as object | undefined,
  /** The entry of the first binding. */
  entry = {} as object,
  scope = undefined as string | undefined,
  mode = {} as object,
} = {}) {
  const made = stubRun({ ageMs });
  const left = [...answers];
  const sent: unknown[] = [];
  const log: unknown[] = [];
  const texts: unknown[] = [];
  const attempts = new Map<string, number>();
  const intents = new Map(open.map((each) => [each.key, each]));
  const { key, kind } = bindings[0] ?? bindingOf();
  const desired = { key, kind, managed: true, value: { name: 'x' }, named: true, ...entry };
  const subject = { key, kind, desired };
  const keep = (intent: Intent) => void intents.set(intent.key, intent);
  const run = runWith(made.run, {
    intents,
    ...{ mode, desired: { projectId: 4711, digest: 'd', ...(scope === undefined ? {} : { scope }) } },
    bindings: new Map(bindings.map((each) => [each.key, each])),
    world: { subjects: new Map([[subject.key, subject]]), observed: new Map(), childrenOf: () => [] },
    facts: { pausedBy: (_request: unknown, spend: string) => (spend === 'none' ? held : undefined) },
    stopwatch: {
      since: (_id: string, _moment: string, at: number) => at,
      isMarked: () => false,
      mark: () => {},
    },
    begin: async (intent: Intent) => {
      log.push(`begin ${intent.key} ${intent.incarnation}.${intent.attempt} for ${intent.recovers}`);
      keep(intent);
    },
    update: async (intent: Intent, { stage, ...more }: { readonly stage?: object }) => {
      const next = { ...intent, ...more, ...stage } as Intent;
      keep(next);
      return next;
    },
    close: async (intent: Intent, { outcome, because, text }: Record<string, unknown>) => {
      texts.push(text);
      log.push([outcome, because].filter((each) => each !== undefined).join(' '));
      intents.delete(intent.key);
      if (outcome !== 'void') attempts.set(intent.key, intent.attempt);
    },
    deps: {
      profile: { timeScale: 1 },
      store: {
        intents: async (of: { readonly key: string }) => past.filter((each) => each.key === of.key),
        note: async () => behaviours,
        putNote: async () => {},
        claimProject: async () => {},
        lastAttempt: async (key: string) => attempts.get(key) ?? -1,
      },
      writes: {
        send: async ({ name, probe }: { readonly name: string; readonly probe?: unknown }) => {
          sent.push(probe);
          expect(name).toBe('create_network');
          return left.shift();
        },
      },
    },
  });
  return { run, sent, log, texts, left };
}

async function reserved(given: Parameters<typeof reserving>[0]) {
  const { run, left, sent, log } = reserving(given);
  await reserve(run, bindingOf());
  expect(left).toEqual([]);
  return { sent, log };
}

const begun = 'begin networks.x 0.0 for networks.x';

describe('src/engine/intents/reserve-key.ts: one step', () => {
  test('the key of the entry is reserved by the second probe', async () => {
    const log = [begun, 'void reserved'];
    expect(await reserved({ answers: [fresh, replayed] })).toEqual({ sent: [2, 2], log });
  });

  test.each<[string, object, string | undefined]>([
    ['a reservation', {}, 'reserved'],
    ['a key that another state used', { because: 'used_elsewhere' }, 'used_elsewhere'],
    ['a reservation without an end', { because: undefined }, undefined],
    ['a reservation that the API cannot keep', { because: 'unaskable' }, undefined],
    ['a question', { request: { ...probed, probe: undefined } }, undefined],
    ['a reservation of another incarnation', { incarnation: '1' }, undefined],
    ['a reservation in another scope', { idempotencyKey: 'other' }, undefined],
    ['the creation of the resource', { request: {}, answer: { id: '33' } }, 'reserved'],
    ['the creation of another resource', { request: {}, answer: { id: '34' } }, undefined],
    ['the deletion of it', { verb: 'delete', request: {}, answer: { id: '33' } }, undefined],
  ])('%s', async (_name, record, expected) => {
    const { run } = reserving({ past: [pastOf(record)] });
    expect(await reservationOf(run, bindingOf())).toBe(expected);
  });

  test.each<[string, object]>([
    ['with an open write', { open: [intentOf({ phase: 'accepted' })] }],
    ['while all requests are paused', { held: { code: 'unauthorized', reason: 'why' } }],
    ['whose API has shown that it stores no refusals', { behaviours: unaskable }],
  ])('the key of an entry %s is not reserved', async (_name, given) => {
    expect(await reserved(given)).toEqual({ sent: [], log: [] });
  });

  test('an entry without a request, such as one that has left the spec, is left out', async () => {
    const { run, sent } = reserving();
    await reserve(run, bindingOf({ key: 'networks.w' }));
    expect(sent).toEqual([]);
  });

  const unnamed = answer(422, { invalidParams: [] });
  const reservesNext = ['absent', 'begin networks.x 0.1 for networks.x', 'void reserved'];
  test.each<[string, readonly WriteResult[], readonly unknown[], readonly string[]]>([
    ['no answer', [lost], [2], ['void']],
    ['no answer after the key was found used', [reused, lost], [2, 1], ['void']],
    ['a creation of another state', [answer(201, { replayed: true })], [2], ['void used_elsewhere']],
    ['the answer to a request of another state', [reused, reused], [2, 1], ['void used_elsewhere']],
    [
      'a question of another state, whose next attempt is reserved',
      [reused, replayed, fresh, replayed],
      [2, 1, 2, 2],
      reservesNext,
    ],
  ])('%s', async (_name, answers, sent, log) => {
    expect(await reserved({ answers })).toEqual({ sent, log: [begun, ...log] });
  });

  test('an API that stores no refusals keeps no reservation', async () => {
    const { log } = await reserved({ behaviours: {}, answers: [unnamed, unnamed] });
    expect(log).toEqual([begun, 'void unaskable']);
  });

  test('a reservation without an answer ends with that text', async () => {
    const { run, texts } = reserving({ answers: [lost] });
    await reserve(run, bindingOf());
    expect(texts).toEqual(['the API did not answer for this idempotency key']);
  });

  /** A question to a key that holds the answer to another request. */
  const conflicting = {
    phase: 'unknown',
    unconfirmed: { why: 'lost', question: { probes: 1, conflict: true } },
  };
  test.each<[string, object, readonly WriteResult[], readonly string[]]>([
    ['that another state has reserved', conflicting, [replayed], ['void reserved']],
    ['that this probe reserves', conflicting, [fresh, replayed], []],
    ['that holds another answer', conflicting, [reused], []],
    ['without a conflict', { ...conflicting, unconfirmed: { why: 'lost' } }, [], []],
  ])('an open question to a key %s', async (_name, question, answers, ends) => {
    const open = intentOf({ ...question, recovers: 'networks.x' });
    const { run, log, texts, sent, left } = reserving({ open: [open], answers });
    await endIfReserved(run, open);
    expect([log, left]).toEqual([ends, []]);
    expect(sent).toEqual(answers.map(() => 2));
    expect(texts).toEqual(ends.map(() => 'the key is reserved: its resource was created under another key'));
    expect(run.intents.has(open.key)).toBe(ends.length === 0);
  });

  test('a reservation that an earlier process left ends', async () => {
    const open = intentOf({ request: probed });
    expect(isReservation(open)).toBe(true);
    expect(isReservation(intentOf({}))).toBe(false);
    const { run, log } = reserving({ open: [open] });
    expect(await endReservation(run, open)).toMatchObject({ now: 'closed', outcome: 'void' });
    expect(log).toEqual(['void']);
  });

  test.each([
    ['none'],
    ['another'],
  ])('a reservation that has ended, with %s in its place, is not changed', async (which) => {
    const open = which === 'none' ? [] : [intentOf({ id: 'j', request: probed })];
    const { run, log } = reserving({ open });
    expect(await endReservation(run, intentOf({ request: probed }))).toEqual({ now: 'again', afterMs: 0 });
    expect(log).toEqual([]);
  });
});

describe('src/engine/run/unreached-keys.ts: one step', () => {
  /** The network of `networks.x` was created under `networks.old`. */
  const made = (more: object = {}) =>
    intentOf({ key: 'networks.old', phase: 'closed', outcome: 'done', ...more });
  const bare = { key: 'servers.x', kind: 'server', formerKeys: undefined };
  const paused = { code: 'unauthorized', reason: 'why' };
  const hour = 60 * minute;

  type Given = Parameters<typeof reserving>[0] & { readonly binding?: object };
  const given = ({ binding = {}, ...more }: Given) => ({
    ...{ bindings: [bindingOf(binding)], past: [made()] },
    ...more,
  });
  const listed = async (more: Given) =>
    (await unreachedKeys(reserving({ held: paused, ...given(more) }).run)).map(({ key, from }) => [
      key,
      from,
    ]);

  const old = [['networks.x', 'networks.old']];
  const elsewhere = [['servers.x', 'elsewhere']];
  const image = { key: 'server_images.x', kind: 'server_image', formerKeys: undefined };
  const found = { outcome: 'absent', because: 'found', answer: { id: '34' } };
  const another = { key: 'networks.x', incarnation: '1' };
  const itsOwn = { binding: { formerKeys: undefined }, past: [made({ key: 'networks.x' })] };
  const usedByOthers = [made(), pastOf({ because: 'used_elsewhere' })];

  test.each<[string, Given, readonly (readonly string[])[]]>([
    ['that `moved` leads to', { entry: { moved: 'networks.old' } }, []],
    ['whose rename is inferred', { entry: { moved: 'networks.old', isInferred: true } }, old],
    ['next to one that has left', { bindings: [bindingOf(), bindingOf({ key: 'networks.w' })] }, old],
    ['created under its own key', { past: [made({ key: 'networks.x' })] }, []],
    ['created nearly 23 hours ago', { ageMs: 23 * hour - 1 }, old],
    ['created 23 hours ago', { ageMs: 23 * hour }, []],
    ['created in the future of a clock that was set back', { ageMs: -hour }, old],
    ['found again', { past: [made(found)] }, old],
    ['found under an earlier key, in any incarnation', { past: [made({ ...found, incarnation: '1' })] }, old],
    ['found under its own key', { past: [made(), made({ ...found, key: 'networks.x' })] }, []],
    ['after one of another incarnation', { past: [made(), made({ ...found, ...another })] }, old],
    ['whose creation answered its id', { past: [made({ outcome: 'failed', answer: { id: '33' } })] }, old],
    ['after the creation of another one', { past: [made({ answer: { id: '34' } })] }, []],
    ['after another write', { past: [made({ verb: 'delete' })] }, []],
    ['of an unmanaged entry', { entry: { managed: false } }, []],
    ['named by its id', { entry: { id: '33' } }, []],
    ['that the state holds', { entry: { id: '33', held: {} } }, old],
    ['inside a server', { binding: { key: 'servers.x.firewall', kind: 'firewall' } }, []],
    ['created before the scope', { ...itsOwn, scope: 'blue' }, [['networks.x', 'scope']]],
    ['created elsewhere, whose request cannot be made', { binding: bare, held: undefined }, elsewhere],
    ['created elsewhere, nearly 23 hours ago', { binding: bare, ageMs: 23 * hour - 1 }, elsewhere],
    ['created elsewhere, 23 hours ago', { binding: bare, ageMs: 23 * hour }, []],
    ['created elsewhere, of an unlisted kind', { binding: image }, [['server_images.x', 'elsewhere']]],
    ['of the last hour, in a daemon', { binding: bare, mode: { repeating: {} }, ageMs: hour - 1 }, elsewhere],
    ['of an hour ago, in a daemon', { binding: bare, mode: { repeating: {} }, ageMs: hour }, []],
    ['with an earlier key, in a daemon', { mode: { repeating: {} }, ageMs: 2 * hour }, old],
    ['whose key is reserved', { past: [made(), pastOf()] }, []],
    ['whose key others used', { past: usedByOthers }, [['networks.x', 'used_elsewhere']]],
    ['whose key no run has tried to reserve', { held: undefined }, []],
    ['whose key was tried once', { held: undefined, past: [made(), pastOf({ because: undefined })] }, old],
  ])('a resource %s', async (_name, more, expected) => {
    expect(await listed(more)).toEqual(expected);
  });

  test('an apply reserves the keys that it can reserve, once', async () => {
    const { run, sent, log } = reserving(given({ answers: [replayed] }));
    await reserveUnreached(run);
    expect([sent, log]).toEqual([[2], [begun, 'void reserved']]);
    const again = reserving(given({ past: [made(), pastOf()] }));
    await reserveUnreached(again.run);
    expect([again.sent, again.log]).toEqual([[], []]);
  });
});
