import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { canonicalJson, digestOf } from '../../../src/core/json.ts';
import type { World } from '../../../src/core/kind.ts';
import type { Operation } from '../../../src/core/plan.ts';
import type { WriteResult } from '../../../src/core/ports.ts';
import type { Intent } from '../../../src/core/state.ts';
import { beginIntent, contextOf, preimageOf } from '../../../src/engine/intents/begin.ts';
import {
  askAgain,
  askSuccessors,
  endReplaced,
  tryNextIncarnation,
  underFormerNames,
} from '../../../src/engine/intents/next-incarnation.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const keyOf = (write: object) => `vdcsync-${hash('sha256', canonicalJson(write as never), 'base64url')}`;
const entry = { value: { cidr: '10.0.0.0/24' }, protect: true };
const request = { name: 'create_network', path: {}, body: {} };
const networkX = { key: 'networks.x', kind: 'network', desired: entry };
const firewallX = { key: 'servers.x.firewall', kind: 'firewall', parent: 'servers.x', desired: entry };
const operationOf = (more: object = {}) =>
  ({ key: 'networks.x', kind: 'network', verb: 'create', changes: [], ...more }) as unknown as Operation;

/** A run that keeps the intents that begin, in a project with these resources. */
function beginning({
  subjects = [networkX] as readonly { readonly key: string }[],
  incarnations = {} as Readonly<Record<string, number>>,
  attempts = -1,
  /** Each record begins the next attempt. */
  counts = false,
  scope = undefined as string | undefined,
  bound = [] as readonly string[],
  random = 0,
  answers = [] as readonly WriteResult[],
  behaviour = { storesRefusals: true } as object,
  price = undefined as object | undefined,
  past = (own?: string): readonly Intent[] => [
    intentOf({ phase: 'closed', outcome: 'done', incarnation: '9', attempt: 0 }, own),
  ],
} = {}) {
  const made = stubRun({ ageMs: 100_000 });
  const log: unknown[] = [];
  const left = [...answers];
  const world = {
    settings: { drift: 'correct' },
    observed: new Map(subjects.map((each) => [each.key, { id: '1' }])),
    subjects: new Map(subjects.map((each) => [each.key, each])),
    idOf: (key: string) => (key === 'servers.x' ? '1' : undefined),
    childrenOf: () => [],
  };
  const run = runWith(made.run, {
    ...{ world, desired: { projectId: 4711, ...(scope === undefined ? {} : { scope }) } },
    bindings: new Map(bound.map((id) => ['networks.x', { id }])),
    kindOf: (name: Intent['kind']) => ({ ...made.run.kindOf(name), billing: { priceNow: () => price } }),
    facts: { exhaustedOf: (key: string) => [`exhausted ${key}`] },
    cache: { since: (at: number) => ({ at, apiNow: () => 1_000 + at }), forget: () => {} },
    begin: async (intent: Intent) => void log.push(intent),
    close: async (_intent: unknown, ended: { outcome: string }, changes: unknown) =>
      void log.push([ended.outcome, changes]),
    deps: {
      random: { next: () => random },
      store: {
        ...{ claimProject: async (id: number) => void log.push(`project ${id}`) },
        incarnation: async (key: string) => incarnations[key] ?? 0,
        lastAttempt: async (...given: unknown[]) => {
          log.push(given);
          if (!counts) return attempts;
          const begun = log.filter((each) => (each as Intent).incarnation === given[2]);
          return begun.length - 1;
        },
        intents: async () => past(scope),
        note: async () => ({ create_network: behaviour }),
      },
      writes: {
        ...{ digest: ({ name }: { name: string }) => `sent ${name}` },
        send: async () => left.shift(),
      },
    },
  });
  return { ...made, run, world: world as unknown as World, log };
}

describe('src/engine/intents/begin.ts', () => {
  test('the context of a write has its resource, and the packages without capacity', () => {
    const { run, world } = beginning();
    const operation = operationOf();
    const context = { subject: networkX, observed: { id: '1' }, world, operation };
    expect(contextOf(run, operation, world)).toEqual({ ...context, exhausted: ['exhausted networks.x'] });
    expect(() => contextOf(run, operationOf({ key: 'ips.y' }), world)).toThrow('Unknown resource: ips.y');
  });

  test('the reads before a write are at most a minute old', async () => {
    const { run, world } = beginning();
    const kindOf = (preimage?: object) => () => ({ writes: { preimage } });
    const given: unknown[] = [];
    const preimage = async (...of: unknown[]) => {
      given.push(...of);
      return { ids: [] };
    };
    const withReads = { ...run, kindOf: kindOf(preimage) } as never;
    expect(await preimageOf(withReads, operationOf(), world)).toEqual({ ids: [] });
    expect(given).toMatchObject([{ operation: operationOf() }, { at: 40_000 }]);
    expect(await preimageOf({ ...run, kindOf: kindOf() } as never, operationOf(), world)).toEqual({});
  });

  const begin = async (given: Parameters<typeof beginning>[0], operation: object, more: object = {}) => {
    const { run, world, log } = beginning(given);
    const options = { world, preimage: {}, ...more };
    const intent = await beginIntent(run, operationOf(operation), request as never, options);
    return { intent, log };
  };

  const refused = (more: object = {}) => ({
    past: () => [intentOf({ phase: 'closed', outcome: 'void', because: 'taken', ...more })],
  });
  const keyOfDeletion = keyOf({
    ...{ projectId: 4711, key: 'networks.x', verb: 'delete' },
    ...{ incarnation: '0', attempt: 0 },
  });
  test.each<[string, object, object, object, object]>([
    ['a creation', {}, {}, {}, { phase: 'unknown', unconfirmed: { question: { conflict: true } } }],
    ['a question', {}, {}, { question: { stage: 'odd' } }, { unconfirmed: { question: { stage: 'odd' } } }],
    ['another creation', { idempotencyKey: 'other' }, {}, {}, { phase: 'sending' }],
    ['a deletion', { idempotencyKey: keyOfDeletion }, { verb: 'delete' }, {}, { phase: 'sending' }],
  ])('a key that has refused another request: %s', async (_name, more, operation, options, expected) => {
    const { intent } = await begin(refused(more), operation, options);
    expect(intent).toMatchObject(expected);
  });

  test('the record of a creation', async () => {
    const { intent, log } = await begin({ attempts: 2, random: 0.7 }, {});
    const write = { projectId: 4711, key: 'networks.x', verb: 'create', incarnation: '0', attempt: 3 };
    expect(intent).toEqual({
      ...{ id: 'b'.repeat(16), key: 'networks.x', kind: 'network', verb: 'create', changes: [] },
      ...{
        incarnation: '0',
        attempt: 3,
        idempotencyKey: keyOf(write),
        request,
        sentAs: 'sent create_network',
      },
      ...{
        basis: digestOf(entry.value),
        entry,
        preimage: {},
        phase: 'sending',
        sends: 1,
        lost: 0,
        detail: '',
      },
      ...{ createdAt: sentAt + 100_000, firstSentAt: sentAt + 100_000, firstSentApiAt: 1_000 },
      ...{ lastSentAt: sentAt + 100_000, lastSentApiAt: 1_000, dueAt: sentAt + 100_000 },
    });
    expect(log).toEqual([['networks.x', 'create', '0'], 'project 4711', intent]);
  });
  const replacement = { replacement: 'delete networks.x~1' };
  const none = [{ key: 'networks.x', kind: 'network' }];
  const put = { key: 'servers.x.firewall', kind: 'firewall', verb: 'update' };
  const ofServer = { 'servers.x': 3, 'servers.x.firewall': 2 };
  const serverX = { key: 'servers.x', kind: 'server', desired: entry };
  const partX = (name: string, kind: string, more: object = {}) =>
    ({ ...firewallX, key: `servers.x.${name}`, kind, ...more }) as typeof firewallX;
  const withParts = [
    ...[serverX, firewallX, partX('backup', 'backup'), partX('iso', 'drive')],
    partX('left', 'firewall', { desired: undefined }),
    { ...firewallX, key: 'servers.y.firewall', parent: 'servers.y' },
  ];
  const created = { key: 'servers.x', kind: 'server' };
  const cardX = partX('network_interfaces.n', 'network_interface');
  const priced = { price: { known: '17.00' } };
  const deletion = { ...replacement, verb: 'delete' };
  const unsent = { bound: ['9'], past: () => [], incarnations: { 'networks.x': 4 } };
  const ofWall = { subjects: [firewallX], incarnations: ofServer };
  const ofCard = { subjects: [cardX], past: () => [], incarnations: { 'servers.x': 3, [cardX.key]: 2 } };
  const retired = { ...priced, subjects: [{ ...serverX, key: 'servers.x~1' }] };
  const third = { incarnation: '3' };
  const beside = { ...third, elsewhere: 2 };
  const inX = (incarnation: string) => ({ incarnation, parentId: '1' });
  const fifth = { incarnation: '0', elsewhere: 5, replaces: '9' };
  const parts = { parts: [firewallX.key, 'servers.x.iso'] };
  const goes = { ...deletion, ...created, key: 'servers.x~1' };
  const makes = { ...put, verb: 'create' };
  const makesCard = { key: cardX.key, kind: cardX.kind };
  test.each<[string, NonNullable<Parameters<typeof beginning>[0]>, object, object, object]>([
    ['that replaces another, under a key that was never sent', unsent, replacement, {}, fifth],
    ['that has waited', {}, {}, { queuedAt: sentAt + 99_000 }, { queuedAt: sentAt + 99_000 }],
    ['that has hardly waited', {}, {}, { queuedAt: sentAt + 99_001 }, {}],
    ['of a server, with the parts that it gets', { subjects: withParts }, created, {}, parts],
    ['of a later incarnation inside a server', ofWall, makes, { ahead: 1 }, inX('3.3')],
    ['of a replaced one', { bound: ['9'] }, { ...replacement, verb: 'delete' }, {}, { incarnation: '0' }],
    ['of an incarnation that is given', { attempts: 4 }, {}, { numbered: third }, { ...third, attempt: 5 }],
    ['of an incarnation with others in another scope', {}, {}, { numbered: beside }, beside],
    ['of a creation inside a server that has the key of another one', ofCard, makesCard, {}, inX('3.2')],
    ['of a deletion that a creation follows', priced, deletion, {}, { freed: '17.00' }],
    ['of a creation that follows a deletion', priced, replacement, {}, {}],
    ['of a deletion that no creation follows', priced, { verb: 'delete' }, {}, {}],
    ['of the deletion of a retiring server', retired, goes, {}, {}],
    ['without an entry', { subjects: none }, {}, {}, { basis: digestOf(null) }],
  ])('the record %s', async (_name, given, operation, more, expected) => {
    const { intent } = await begin(given, operation, more);
    expect(intent).toMatchObject(expected);
    const partial = ['replaces', 'parentId', 'recovers', 'unconfirmed', 'queuedAt', 'parts', 'freed'];
    for (const field of partial) expect(Object.hasOwn(intent, field)).toBe(field in expected);
    const isEntry = intent.verb !== 'delete' && given.subjects !== none;
    expect(intent.entry).toEqual(isEntry ? entry : undefined);
  });

  test('an entry that moved names its earlier key', async () => {
    const moved = [{ ...networkX, desired: { ...entry, moved: 'networks.y', managed: true } }];
    expect((await begin({ subjects: moved }, {})).intent.entry).toEqual({ ...entry, moved: 'networks.y' });
  });

  test('the key of a write: with the scope of the spec, and with a nonce for a write that is repeated', async () => {
    const write = { projectId: 4711, key: 'networks.x', verb: 'create', incarnation: '0', attempt: 0 };
    const keys = async (given: object, operation: object) =>
      (await begin(given, operation)).intent.idempotencyKey;
    expect(await keys({ scope: 'b' }, {})).toBe(keyOf({ ...write, scope: 'b' }));
    const nonce = '0'.repeat(16);
    expect(await keys({}, { verb: 'update' })).toBe(keyOf({ ...write, verb: 'update', nonce }));
    expect(await keys({}, { verb: 'delete' })).toBe(keyOf({ ...write, verb: 'delete' }));
    const created = { ...write, key: put.key, incarnation: '0.0', nonce };
    expect(await keys({ subjects: [firewallX] }, { ...put, verb: 'create' })).toBe(keyOf(created));
  });
});

describe('src/engine/intents/next-incarnation.ts', () => {
  const fence: WriteResult = { type: 'answer', status: 422, requestId: 'r', replayed: true };
  const taken: WriteResult = { ...fence, status: 409, code: 'reused', replayed: false };
  const fresh: WriteResult = {
    ...{ ...fence, replayed: false, code: 'no' },
    invalidParams: [{ name: 'vdcsync_probe', reason: '' }],
  };
  const fenced = [fresh, fence];
  const storesRefusals = { storesRefusals: true, reuse: { status: 409, code: 'reused' } };
  const conflict = (why?: string) =>
    intentOf({
      ...{ phase: 'unknown', attempt: 0, basis: digestOf(entry.value), changes: [{ field: 'cidr' }] },
      ...{ sends: 4, lastSentAt: sentAt + 7, lastSentApiAt: 5, preimage: { ids: [] } },
      ...(why === undefined ? {} : { unconfirmed: { why, question: { stage: 'taken', probes: 1 } } }),
    });
  const play = async (answers: readonly WriteResult[], intent = conflict('lost'), given: object = {}) => {
    const made = beginning({ answers, behaviour: storesRefusals, ...given });
    const then = await tryNextIncarnation(made.run, intent);
    const begun = made.log.filter((each) => typeof each === 'object' && each !== null && 'key' in each);
    const ends = made.log.filter((each) => Array.isArray(each) && each.length === 2);
    return { ...made, then, begun: begun as Intent[], ends };
  };
  const nextIncarnation = ['void', [{ type: 'next_incarnation', key: 'networks.x' }]];

  test.each([
    ['an edit', conflict('lost'), { subjects: [{ ...networkX, desired: { value: {}, protect: false } }] }],
    ['an entry that has left the spec', conflict('lost'), { subjects: [] }],
  ])('%s does not begin again', async (_name, intent, given) => {
    const { then, log } = await play([], intent, given);
    expect(then).toBe(intent);
    expect(log).toEqual([]);
  });

  test.each<[string, readonly WriteResult[]]>([
    ['a used key', [taken]],
    ['a replayed acceptance', [{ ...fence, status: 201 }]],
  ])('%s of the next incarnation shows that an earlier state replaced the resource', async (_name, answers) => {
    const { then, begun, ends } = await play(answers);
    expect(then).toMatchObject({ now: 'closed', outcome: 'void', retryAfterMs: 0 });
    expect(ends).toEqual([['void', []], nextIncarnation]);
    const question = { stage: 'asking', probes: 0 };
    expect(begun).toMatchObject([
      {
        ...{ incarnation: '1', phase: 'unknown', unconfirmed: { why: 'lost', question } },
        ...{ verb: 'create', changes: [{ field: 'cidr' }], preimage: { ids: [] } },
      },
    ]);
  });

  test('a used key of the next incarnation of a server leaves a server that no answer names', async () => {
    const server = { key: 'servers.x', kind: 'server' };
    const intent = intentOf({ ...conflict('lost'), ...server, idempotencyKey: undefined });
    const { ends } = await play([taken], intent, { subjects: [{ ...server, desired: entry }] });
    const holder = { is: 'unidentified', key: 'servers.x', incarnation: '0' };
    const changes = [
      { type: 'next_incarnation', key: 'servers.x' },
      { type: 'claim', claim: { kind: 'project', id: 'servers.x', holder } },
    ];
    expect(ends.at(-1)).toMatchObject(['void', changes]);
  });

  test.each<[string, readonly WriteResult[], object, string]>([
    ['an unused key', fenced, {}, 'absent'],
    ['a fresh acceptance', [{ ...fence, status: 201, replayed: false }], {}, 'void'],
  ])('%s of the next incarnation keeps the question about the present one', async (_name, answers, given, outcome) => {
    const { then, begun, ends, recorded } = await play(answers, conflict('refused'), given);
    expect(ends).toEqual([
      ['void', []],
      [outcome, []],
    ]);
    const unconfirmed = { why: 'refused', question: { stage: 'taken', probes: 0, conflict: true } };
    expect(then).toMatchObject({
      incarnation: '0',
      phase: 'unknown',
      sends: 4,
      lastSentAt: sentAt + 7,
      unconfirmed,
    });
    expect(begun[1]).toMatchObject({ incarnation: '0', unconfirmed: { why: 'lost' } });
    expect(recorded.at(-1)).toMatchObject({ stage: { unconfirmed } });
  });

  test('a fenced key of the next incarnation leads to its next attempt, and at most eight are asked', async () => {
    const { then, begun, ends } = await play([fence, taken]);
    expect(then).toMatchObject({ now: 'closed', outcome: 'void' });
    expect(begun.map(({ incarnation }) => incarnation)).toEqual(['1', '1']);
    expect(ends).toEqual([['void', []], ['absent', []], nextIncarnation]);

    const attempts = (await play(Array(20).fill(fence), conflict('lost'), { counts: true })).begun;
    expect(attempts.map(({ incarnation, attempt }) => `${incarnation}/${attempt}`)).toEqual([
      ...Array.from({ length: 8 }, (_, at) => `1/${at}`),
      expect.stringMatching(/^0/),
    ]);
  });

  test('without a reason, the first answer counts as lost', async () => {
    expect((await play(fenced, conflict())).then).toMatchObject({ unconfirmed: { why: 'lost' } });
  });

  test('the record of a replacement and of a recovery remains one', async () => {
    const replaced = { ...conflict('lost'), replaces: '9', recovers: 'networks.y' } as Intent;
    const { begun } = await play(fenced, replaced, { bound: ['9'] });
    expect(begun).toMatchObject([
      { replaces: '9', recovers: 'networks.y', incarnation: '2' },
      { replaces: '9', recovers: 'networks.y', incarnation: '0' },
    ]);
    expect((await play(fenced, conflict('lost'), { bound: ['9'] })).begun[0]).not.toHaveProperty('replaces');
  });

  const edited = { ...request, body: { cidr: 'new' } };
  const blocked = { code: 'key_conflict', reason: 'no', candidates: [] };
  const asked = (more: object = {}) =>
    intentOf({ ...conflict('lost'), phase: 'blocked', blocked, basis: 'sha256:before', ...more });
  const again = async (intent: Intent, answers: readonly WriteResult[] = [taken], given: object = {}) => {
    const made = beginning({ answers, behaviour: storesRefusals, ...given });
    const asks: unknown[] = [];
    const writes = {
      request: ({ subject }: { subject: { desired?: object } }) => {
        if (subject.desired === undefined) throw new Error('no entry');
        return edited;
      },
    };
    const run = runWith(made.run, {
      kindOf: () => ({ timing: { urgency: 1 }, writes: 'writes' in given ? given.writes : writes }),
      facts: {
        pausedBy: (_request: unknown, spend: string) =>
          spend === 'none' && 'held' in given ? {} : undefined,
      },
      observe: async (of: string) => void asks.push(of),
    });
    await askAgain(run, intent);
    return made.log.flatMap((each) => {
      if (Array.isArray(each)) return each.length === 2 ? [each] : [];
      return typeof each === 'object' ? [each] : [];
    });
  };

  test('a conflict of an edited entry asks for the answer to the present entry', async () => {
    const [end, begun, ...rest] = await again(asked({ recovers: 'networks.y' }));
    expect([end, rest]).toEqual([['void', []], []]);
    const unconfirmed = { why: 'lost', question: { stage: 'taken', probes: 0 } };
    expect(begun).toMatchObject({
      request: edited,
      preimage: { ids: [] },
      recovers: 'networks.y',
      unconfirmed,
    });
    expect((await again(asked()))[1]).toMatchObject({ recovers: 'networks.x', basis: digestOf(entry.value) });
  });

  const refusing = {
    request: () => {
      throw new Error('it needs another one');
    },
  };
  test.each<[string, Intent, readonly WriteResult[], object]>([
    ['of a write that is not blocked', asked({ phase: 'unknown', blocked: undefined }), [taken], {}],
    ['of a replacement', asked({ replaces: '9' }), [taken], {}],
    ['of the same entry', asked({ basis: digestOf(entry.value) }), [taken], {}],
    ['under an old key', asked({ firstSentAt: sentAt - 24 * 3_600_000 }), [taken], {}],
    ['whose request is not possible yet', asked(), [taken], { writes: refusing }],
    ['while its class is paused', asked(), [taken], { held: true }],
    ['of a key that is free by now', asked(), [fence], {}],
  ])('a conflict %s remains', async (_name, intent, answers, given) => {
    expect(await again(intent, answers, given)).toEqual([]);
  });

  test('a conflict without a mark asks too, and keeps the number of its sends', async () => {
    expect(await again(asked({ unconfirmed: undefined }))).toHaveLength(2);
    const made = beginning({ answers: [taken], behaviour: storesRefusals });
    const kindOf = () => ({ timing: {}, writes: { request: () => edited } });
    await askAgain(runWith(made.run, { kindOf }), asked());
    expect(made.recorded.at(-1)).toEqual({ sends: 4, lastSentAt: sentAt + 7, lastSentApiAt: 5 });
  });

  const serverX = { key: 'servers.x', kind: 'server', desired: entry };
  const found = { key: 'servers.x', kind: 'server', id: '1', recovered: 'found' };
  /** A run with bound servers, whose next keys give these answers. */
  function bound(answers: readonly WriteResult[], more: object) {
    const given = {
      bindings: [found],
      ips: [] as readonly number[],
      open: [] as never[],
      attempts: -1,
      subjects: [serverX],
      held: false,
      possible: true,
      setting: false,
      verdicts: ['create', 'create'],
      observed: {} as object | undefined,
      claims: [] as [string, unknown][],
      shown: false,
      ...more,
    };
    const made = beginning({
      answers,
      behaviour: storesRefusals,
      attempts: given.attempts,
      subjects: given.subjects,
    });
    const changes: unknown[] = [];
    const asked: unknown[] = [];
    const left = [...given.verdicts];
    const run = runWith(made.run, {
      world: {
        ...made.run.world,
        ipsOf: (id: string) => (id === '1' ? given.ips : []),
        observed: new Map(given.shown ? [['servers.x', { id: '1' }]] : []),
      },
      bindings: new Map(given.bindings.map((each) => [each.key, each])),
      intents: new Map(given.open),
      claims: new Map(given.claims),
      kindOf: () => ({
        timing: {},
        setting: given.setting,
        writes: {
          request: ({ subject }: { subject: { desired: object } }) => {
            if (!given.possible) throw new Error('it needs another one');
            return subject.desired && request;
          },
        },
      }),
      facts: {
        pausedBy: (_request: unknown, spend: string) => (spend === 'none' && given.held ? {} : undefined),
      },
      read: async (read: () => unknown) => {
        const seen = await read();
        return given.observed && seen;
      },
      observe: async (_key: string, at: number) => {
        asked.push(['observed', at]);
        left.shift();
      },
      change: async (these: readonly unknown[]) => void changes.push(...these),
      deps: {
        clock: { ...made.run.deps.clock, sleep: async (ms: number) => void asked.push(['slept', ms]) },
        kinds: new Map([
          [
            'server',
            {
              diff: () => {
                const [verdict, verb] = left[0]?.split(' ') ?? [];
                return { verdict: { verdict, verb } };
              },
            },
          ],
        ]),
        store: {
          note: async () => ({ create_network: storesRefusals }),
          lastAttempt: async (...of: [never, never, never]) => {
            asked.push(of);
            return given.attempts;
          },
        },
      },
    });
    return { made, run, changes, asked };
  }

  const unnamed = {
    ...{ kind: 'project', id: 'servers.x', identity: {} },
    holder: { is: 'unidentified', key: 'servers.x', incarnation: '1' },
  };
  const known = { ...found, recovered: undefined };
  const withValue = (value: object) => ({ ...serverX, desired: { kind: 'server', value } });
  const claimedAs = (holder: object = {}) => ({
    bindings: [],
    subjects: [withValue({})],
    claims: [['server 1', { id: '1', holder: { is: 'found', key: 'servers.x', ...holder } }]],
  });
  const other = { ...found, key: 'servers.y', id: '2' };
  const twoFound = { bindings: [found, other], subjects: [serverX, { ...serverX, key: 'servers.y' }] };
  test.each<[string, readonly WriteResult[], object, readonly string[], boolean]>([
    ['an address that shows the server', [taken], { ips: [1] }, [], false],
    ['a network', [taken], { bindings: [{ ...found, kind: 'network' }] }, [], false],
    ['a known server', [taken], { bindings: [known] }, [], false],
    ['a claimed one', [taken], claimedAs(), ['void'], true],
    ['a claimed one that has left the spec', [taken], { ...claimedAs(), subjects: [] }, [], false],
    ['a server that is recorded', [taken], { claims: [['project servers.x', unnamed]] }, [], false],
    ['a server without an entry', [taken], { subjects: [] }, [], false],
    ['a class that is paused', [taken], { held: true }, [], false],
    ['a request that needs another resource', [taken], { possible: false }, [], false],
    ['a second server', [fresh, fence, taken], twoFound, ['absent', 'void'], true],
  ])('the next incarnation of a found server: %s', async (_name, answers, more, ends, isNew) => {
    const { made, run, changes, asked } = bound(answers, more);
    expect(await askSuccessors(run)).toBe(isNew);
    const closed = made.log.flatMap((each) => (Array.isArray(each) && each.length === 2 ? [each[0]] : []));
    expect(closed).toEqual(ends);
    expect(changes).toEqual([]);
    const recorded = made.log.flatMap((each) =>
      Array.isArray(each) && each.length === 2 ? (each[1] as readonly unknown[]) : [],
    );
    expect(recorded).toHaveLength(isNew ? 1 : 0);
    const claim = { ...unnamed, at: expect.any(Number) };
    if (isNew && !('bindings' in more)) expect(recorded).toEqual([{ type: 'claim', claim }]);
    for (const each of asked)
      expect(each).toMatchObject(
        [/^servers/, 'create', '1'].map((of) => (typeof of === 'string' ? of : expect.stringMatching(of))),
      );
    const begun = made.log.filter((each) => typeof each === 'object' && each !== null && 'key' in each);
    for (const each of begun)
      expect(each).toMatchObject({
        verb: 'create',
        recovers: expect.any(String),
        changes: [],
        unconfirmed: { question: { stage: 'asking' } },
      });
  });

  test.each<[string, readonly WriteResult[], object, boolean]>([
    ['a used key of a blocked creation', [taken], { verdicts: ['blocked create', 'blocked create'] }, true],
    ['an unused key', [fresh, fence], {}, false],
    ['a key that was asked', [taken], { attempts: 0 }, false],
    ['no entry', [taken], { subjects: [] }, false],
    ['a server that a failed creation left', [taken], { shown: true, verdicts: ['blocked create'] }, false],
    ['a server that the second read shows', [taken], { verdicts: ['create', 'unchanged'] }, false],
    ['no second read', [taken], { observed: undefined }, false],
  ])('the binding of a server that is gone: %s', async (name, answers, more, ends) => {
    const { made, run, changes, asked } = bound(answers, more);
    await endReplaced(run, { key: 'servers.x' as never, kind: 'server' });
    const recorded = made.log.flatMap((each) => (Array.isArray(each) && each.length === 2 ? each[1] : []));
    expect(recorded).toEqual([]);
    expect(changes).toEqual(
      ends
        ? [
            {
              type: 'release',
              key: 'servers.x',
              gone: true,
              reason: 'another state has replaced the resource',
            },
          ]
        : [],
    );
    const isRead = ends || name.includes('second');
    expect(asked.filter((each) => (each as unknown[])[0] === 'slept')).toEqual(
      isRead ? [['slept', 60_000]] : [],
    );
  });
});

describe('src/engine/intents/next-incarnation.ts: the requests under earlier names', () => {
  const named = (name: string) => ({ name: 'create_server', path: {}, body: { name } }) as const;
  const asks = (more: object, line: readonly string[], sent = named('b')) => {
    const resource = {
      key: 'servers.c',
      kind: 'server',
      named: false,
      value: { name: 'c' },
      ...more,
    } as never;
    const subject = { key: 'servers.c', kind: 'server', desired: resource };
    const { run } = beginning({ subjects: [subject] });
    const of = runWith(run, {
      line: () => new Set(line),
      kindOf: () => ({
        writes: {
          request: ({ subject: { desired } }: { subject: { desired: { value: { name: string } } } }) => {
            if (desired.value.name === 'odd') throw new Error('not possible');
            return named(desired.value.name);
          },
        },
      }),
    });
    return underFormerNames(of, resource, intentOf({ key: 'servers.b', request: sent })).map(
      ({ body }) => (body as { name: string }).name,
    );
  };
  const line = ['servers.c', 'servers.b', 'servers.a'];
  test.each<[string, object, readonly string[], readonly string[]]>([
    ['are those of the other earlier keys, and last the request itself', {}, line, ['a', 'b']],
    ['are none of an entry with a name', { named: undefined }, line, []],
    ['are none that cannot be made', {}, ['servers.c', 'servers.b', 'servers.odd'], []],
  ])('%s', (_name, more, keys, expected) => {
    expect(asks(more, keys)).toEqual(expected);
  });

  test('are none that equal the request', () => {
    expect(asks({}, line, named('a'))).toEqual([]);
  });
});
