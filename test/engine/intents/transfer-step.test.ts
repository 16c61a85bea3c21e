import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/core/claims.ts';
import { digestOf } from '../../../src/core/json.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Binding, InPhase, Intent, StateChange } from '../../../src/core/state.ts';
import {
  boundBy,
  companionsOf,
  leftByFailed,
  movedFrom,
  recoveredIf,
  remainsOf,
} from '../../../src/engine/intents/bound-by.ts';
import {
  askerOf,
  endQuestion,
  endSuperseded,
  found,
  settled,
  takeOver,
} from '../../../src/engine/intents/transfer.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const bound = (key: string, kind: string, id: string, more: object = {}) =>
  ({
    ...{ key, kind, id, identity: {}, applied: null, keep: false, protect: false, boundAt: sentAt - 9 },
    ...more,
  }) as unknown as Binding;
const claimed = (kind: string, id: string, holder: object, identity: object = {}) =>
  ({ kind, id, identity, holder, at: 1 }) as Claim;
const created = (id = '7', more: object = {}) => ({
  phase: 'accepted',
  answer: { at: sentAt, id, facts: {}, to: 'this_send', end: 'reported', ...more },
});
const ip = { key: 'ips.x', kind: 'ip' };
const server = { key: 'servers.x', kind: 'server' };

/** The diff of a subject whose id another resource has now. */
const another = { verdict: { verdict: 'blocked', code: 'identity_changed' } };
const kinds = new Map([['ip', { diff: ({ diff = { verdict: {} } }: { diff?: object }) => diff }]]);

/** A run with these bindings, claims and open intents. Each resource is bound with the identity `a7` of its id. */
function running({
  bindings = [] as readonly Binding[],
  claims = [] as readonly Claim[],
  open = [] as readonly Intent[],
  subjects = [] as readonly { readonly key: string; readonly kind?: string; readonly diff?: object }[],
  settings = {} as object,
  scope = undefined as string | undefined,
  came = [] as readonly Binding[],
  ips = [] as readonly object[] | undefined,
  setting = undefined as true | undefined,
  isUnnamed = false,
} = {}) {
  const made = stubRun();
  const changes: StateChange[][] = [];
  const given: unknown[] = [];
  const byKey = new Map(bindings.map((each) => [each.key, each]));
  const run = runWith(made.run, {
    ...{ bindings: byKey, intents: new Map(open.map((each) => [each.key, each])) },
    claims: new Map(claims.map((each) => [`${each.kind} ${each.id}`, each])),
    desired: { settings, resources: subjects, ...(scope === undefined ? {} : { scope }) },
    world: {
      ...{ subjects: new Map(subjects.map((each) => [each.key, each])), ips: ips ?? [], observed: new Map() },
      settings: { drift: 'correct' },
      ...{
        keyOf: ({ kind, id }: Claim) => bindings.find((each) => each.kind === kind && each.id === id)?.key,
      },
    },
    deps: { kinds },
    read: async (read: (port: object) => unknown) =>
      ips === undefined ? undefined : read({ ips: async () => ips }),
    stopwatch: {
      ...{ mark: (...of: unknown[]) => void made.calls.push(['mark', ...of]) },
      until: (_id: string, moment: string, at: number) => (moment === 'due' ? at - sentAt : Number.NaN),
    },
    kindOf: (name: string) => ({
      ...{ name, setting },
      bind: (of: { id: string }) => {
        given.push(of);
        return { identity: isUnnamed ? {} : { address: `a${of.id}` }, applied: null, keep: false };
      },
      creation: {
        companions: (of: object) => {
          given.push(of);
          return came;
        },
      },
      preferences: { sent: ({ body }: { body: { chosen?: string } }) => body.chosen },
    }),
    close: async (_intent: unknown, ended: object, these: StateChange[]) => {
      made.ends.push({ ...ended });
      changes.push(these);
    },
  });
  return { ...made, run, changes, given };
}
type Given = NonNullable<Parameters<typeof running>[0]>;
const has = (...of: Parameters<typeof bound>) => ({ bindings: [bound(...of)] });
const keeps = (...of: Parameters<typeof claimed>) => ({ claims: [claimed(...of)] });
const ignoring = { settings: { unmanaged: 'ignore' } };

/** `bind ips.x 7`, `release ips.x gone`, `claim ip 7 found`, `next ips.x`. */
const shown = (changes: readonly StateChange[]) =>
  changes.map((each) => {
    switch (each.type) {
      case 'bind':
        return `bind ${each.binding.key} ${each.binding.id}`;
      case 'release':
        return `release ${each.key}${each.gone ? ' gone' : ''}`;
      case 'claim':
        return `claim ${each.claim.kind} ${each.claim.id} ${each.claim.holder.is}`;
      case 'next_incarnation':
        return `next ${each.key}`;
      default:
        return each.type;
    }
  });

describe('src/engine/intents/transfer.ts', () => {
  /** The progress of a creation that ends with the resource 7, and its changes. */
  const settle = async (write: object, given: Given = {}, damage?: string, facts: object = {}) => {
    const intent = intentOf({ ...created(), ...write });
    const made = running({ ...given, open: [...(given.open ?? []), intent] });
    const progress = await settled(made.run, intent, { id: '7', facts }, damage);
    const text =
      progress.now === 'again'
        ? `again ${progress.afterMs}${progress.until === undefined ? '' : ` ${progress.until}`}`
        : progress.now === 'closed'
          ? progress.outcome
          : progress.code;
    return { ...made, progress, text: [text, ...shown(made.changes[0] ?? [])].join(', ') };
  };
  const sent = (to: string) => created('7', { to });
  const earlier = { boundAt: sentAt - 1 };
  const ofFile = { is: 'ignored', by: 'file' };
  const ofOperator = { is: 'ignored', by: 'operator' };
  const a7 = { address: 'a7' };
  const backup = { key: 'servers.x.backup', kind: 'backup' };
  const unknown = { ...ip, ...sent('unknown_send') };
  const releasedFrom = (formerKey: string, ...formerKeys: string[]) => ({
    ...{ is: 'released', by: 'file', formerKey },
    ...(formerKeys.length > 0 && { formerKeys }),
  });
  test.each([
    ['this state has not seen the end of the server before', '1', 'unknown_send', 'found', true],
    ['there was no server before', '0', 'unknown_send', 'found', false],
  ])('a created server is marked: %s', async (_name, incarnation, to, recovered, isAnother) => {
    const { changes } = await settle({ ...server, incarnation, ...sent(to) });
    expect(changes[0]?.[0]).toMatchObject({ type: 'bind', binding: { key: 'servers.x', id: '7' } });
    const [first] = changes[0] ?? [];
    expect(first?.type === 'bind' && first.binding.recovered).toBe(recovered);
    const claims = (changes[0] ?? []).flatMap((each) => (each.type === 'claim' ? [each.claim.holder] : []));
    expect(claims).toEqual(isAnother ? [{ is: 'unidentified', key: 'servers.x', incarnation: '0' }] : []);
  });

  const y7 = (more: object = {}) => has('ips.y', 'ip', '7', more);
  const server8 = has('servers.x', 'server', '8');
  const answeredY = (more: object) => ({
    open: [intentOf({ ...ip, ...created('7'), key: 'ips.y', ...more })],
  });
  const later = { firstSentAt: sentAt + 1 };
  const serverBy = (to: string) => ({ ...server, ...sent(to) });
  const server7 = has('servers.x', 'server', '7');
  const ignoredServer = keeps('server', '7', ofOperator);
  const usedAgain = { ...ignoredServer, ips: [{ id: 1, address: 'a1', server_id: 7 }] };
  const unanswered = { ...ip, phase: 'unknown', answer: undefined };
  const bindsServer = 'bind servers.x 7';
  const replayed = { ...serverBy('unknown_send'), replaces: '7' };
  const takesOver = 'done, release servers.x, bind servers.x~8 8, bind servers.x 7';
  const bindsX = 'done, bind ips.x 7';
  const takesY = 'done, release ips.y gone, bind ips.x 7';
  const replay = { ...ip, ...sent('earlier_send') };
  test.each<[string, object, Given, string]>([
    ['a question', { ...ip, recovers: 'ips.x' }, {}, 'absent, claim ip 7 found'],
    ['an id that an update found', { ...ip, verb: 'update' }, y7(), bindsX],
    ['an id that a later key has', ip, y7({ boundAt: sentAt + 1 }), 'bound_already'],
    ['the same id again', ip, has('ips.x', 'ip', '7'), bindsX],
    ['a part of a new server', { ...ip, parentId: '2' }, has('ips.x', 'ip', '8', { parentId: '1' }), bindsX],
    ['a replacement', { ...server, replaces: '8' }, server8, takesOver],
    ['a replacement of another one', { ...server, replaces: '9' }, server8, 'bound_already'],
    [
      'a replacement with the same id',
      { ...server, replaces: '7' },
      server7,
      `done, next servers.x, ${bindsServer}`,
    ],
    ['a replacement whose key was answered with the replaced one', replayed, server7, 'void, next servers.x'],
    ['an answer to another key', ip, answeredY(later), 'again 5000 ips.y'],
    ['a question about another key', ip, answeredY({ ...later, phase: 'blocked' }), 'bound_already'],
    ['a replay', replay, y7({ identity: a7, ...earlier }), takesY],
    ['one that another key has', unknown, y7({ identity: a7, ...earlier }), 'key_conflict, bind ips.y 7'],
    ['a replay where all others are ignored', replay, ignoring, bindsX],
    ['a network where all others are ignored', sent('unknown_send'), ignoring, 'done, bind networks.x 7'],
    ['an address that the spec ignores with its server', unknown, keeps('ip', '7', ofFile, a7), bindsX],
    ['another address with the id', unknown, keeps('ip', '7', ofOperator, { address: 'b' }), bindsX],
    ['an address that was found', unknown, keeps('ip', '7', { is: 'found' }, a7), bindsX],
    ['released', unknown, keeps('ip', '7', releasedFrom('ips.y'), a7), 'key_conflict, claim ip 7 released'],
    ['an ignored address without an answer', unanswered, keeps('ip', '7', ofOperator, a7), bindsX],
    ['an address that no read shows', unknown, { isUnnamed: true }, bindsX],
    ['an ignored server', serverBy('unknown_send'), ignoredServer, 'key_conflict, claim server 7 ignored'],
    ['an ignored server whose id is used again', serverBy('unknown_send'), usedAgain, `done, ${bindsServer}`],
  ])('%s', async (_name, write, given, expected) => {
    expect((await settle(write, given)).text).toBe(expected);
  });

  test('an id that was given to another key meanwhile is not bound', async () => {
    const intent = intentOf({ ...ip, ...created('7') });
    for (const [open, isAgain] of [
      [[], true],
      [[intentOf({ ...ip, ...created('8') })], true],
      [[intentOf({ ...ip, phase: 'superseded' })], true],
      [[intent], false],
    ] as const) {
      const progress = await settled(running({ open }).run, intent, { id: '7' });
      expect(progress).toMatchObject(isAgain ? { now: 'again', afterMs: 0 } : { now: 'closed' });
    }
    const unanswered = intentOf(ip);
    expect(await settled(running({ open: [unanswered] }).run, unanswered, { id: '7' })).toMatchObject({
      now: 'closed',
    });
    const shownByRead = intentOf({ ...ip, ...created('8') });
    expect(await settled(running().run, shownByRead, { id: '7' })).toMatchObject({ now: 'closed' });
  });

  test('a damaged resource is bound as tainted, next to the resource that it should have replaced', async () => {
    const tainted = await settle(ip, { came: [bound('ips.z', 'ip', '9')] }, 'broken');
    expect(tainted.text).toBe('tainted, bind ips.x 7, bind ips.z 9');
    expect(tainted.changes[0]?.map((each) => each.type === 'bind' && each.binding.tainted)).toEqual([
      'broken',
      undefined,
    ]);
    expect(tainted.ends).toEqual([{ outcome: 'failed', text: 'broken' }]);
    const replacing = await settle({ ...server, replaces: '8' }, has('servers.x', 'server', '8'), 'broken');
    expect(replacing.text).toBe('tainted, bind servers.x~7 7');
    const text = 'tainted, bind servers.x.backup 7, next servers.x.backup';
    expect((await settle(backup, {}, 'broken')).text).toBe(text);
  });

  test('the end names the preference that was sent', async () => {
    expect((await settle({ ...ip, request: { body: { chosen: 'l40s-1' } } })).ends).toEqual([
      { outcome: 'done', text: 'gpu_package l40s-1' },
    ]);
    for (const verb of ['create', 'delete'])
      expect((await settle({ ...ip, verb })).ends).toEqual([{ outcome: 'done', text: '' }]);
    for (const [verb, text] of [
      ['create', 'found under its idempotency key'],
      ['update', ''],
    ])
      expect((await settle({ ...unknown, verb })).ends).toEqual([{ outcome: 'done', text }]);
    const { changes } = await settle({ ...ip, verb: 'delete' }, has('ips.x', 'ip', '7'));
    expect(changes[0]).toMatchObject([{ reason: 'deleted' }]);
  });

  const addressOf = (name: string) => ({ entry: { value: { public_ipv4: { ip: name } }, protect: false } });
  const holds = (...ids: number[]) => ({ addresses: ids.map((id) => ({ id, address: `a${id}` })) });
  const two = [
    bound('ips.a', 'ip', '51', { identity: { address: 'a51' }, applied: 'one', protect: true }),
    bound('ips.b', 'ip', '52', { identity: { address: 'a52' }, applied: 'two' }),
    bound('servers.y.public_ipv4', 'ip', '53'),
    bound('networks.n', 'network', '54'),
  ];
  const exchange = ['release ips.a', 'release ips.b', 'bind ips.a 52', 'bind ips.b 51'];
  test.each<[string, object, object, readonly string[]]>([
    ['another free address', addressOf('a'), holds(52), exchange],
    ['the address of another server', addressOf('a'), holds(53), []],
    ['an address that the entry does not name', {}, holds(52), []],
  ])('a server that got %s', async (_name, write, facts, expected) => {
    const { changes } = await settle({ ...server, ...write }, { bindings: two }, undefined, facts);
    expect(shown(changes[0] ?? [])).toEqual([...expected, 'bind servers.x 7']);
    if (expected.length === 0) return;
    const reasons = changes[0]?.flatMap((each) => (each.type === 'release' ? each.reason : []));
    expect(reasons).toEqual(['exchanged with ips.b', 'exchanged with ips.a']);
    const binding = { key: 'ips.a', id: '52', identity: { address: 'a52' }, applied: 'two', protect: true };
    expect(changes[0]?.[2]).toMatchObject({ binding });
    const damaged = await settle({ ...server, ...write }, { bindings: two }, 'broken', facts);
    expect(shown(damaged.changes[0] ?? [])).toEqual([...expected, 'bind servers.x 7']);
    const changed = await settle(
      { ...server, ...write, verb: 'update' },
      { bindings: two },
      undefined,
      facts,
    );
    expect(shown(changed.changes[0] ?? [])).toEqual(['bind servers.x 7']);
  });

  test('a refused answer names its holder, and the remedies', async () => {
    const reasonOf = async (write: object, given: Given) => (await settle(write, given)).progress;
    const before = await settle(ip, has('ips.x', 'ip', '8'));
    expect(before.recorded).toMatchObject([{ stage: { blocked: { candidates: ['7'] } } }]);
    expect((await settle(unknown, ignoring)).ends).toMatchObject([{ outcome: 'void', because: 'found' }]);
    expect((await settle(replayed, server7)).ends).toMatchObject([{ outcome: 'void', because: 'taken' }]);
    const owned = await reasonOf(unknown, y7({ identity: a7, ...earlier }));
    expect(owned).toMatchObject({
      now: 'blocked',
      reason: expect.stringMatching(/key of ips\.x before, and address a7 is bound to ips\.y$/),
      remedies: [{ path: 'project' }, { command: 'adopt', args: ['ips.x', '7'] }],
    });
    const ignored = await reasonOf(unknown, keeps('ip', '7', ofOperator, a7));
    expect(ignored).toMatchObject({ reason: expect.stringMatching(/address a7 is ignored$/) });
    expect(ignored).toMatchObject({
      remedies: [
        {},
        { command: 'adopt', args: ['ips.x', '7'], when: 'if the resource belongs to this spec' },
      ],
    });
    const unnamed = await reasonOf(
      { ...server, ...sent('unknown_send') },
      { settings: { unmanaged: 'ignore' }, scope: 'b' },
    );
    expect(unnamed).toMatchObject({
      reason: expect.stringMatching(/`unmanaged: ignore` ignores server a7$/),
    });
  });

  const forget = (key: string) => ({ type: 'run', command: 'forget', args: [key] });
  const restored = (key: string) => [
    { type: 'run', command: 'adopt', args: ['ips.x', '7'] },
    { type: 'edit', path: key, entry: 'restore' },
  ];
  const removed = { type: 'edit', path: 'ips.y', entry: 'remove' };
  const mistake = { when: 'if ips.y is bound to it by mistake' };
  test.each<[string, string, object, object]>([
    ['an entry', 'ips.y', {}, { ...removed, ...mistake, next: [forget('ips.y'), ...restored('ips.y')] }],
    [
      'an entry that an apply would delete',
      'ips.y',
      { prune: true },
      { path: 'settings', set: { prune: false }, next: [removed, forget('ips.y'), ...restored('ips.y')] },
    ],
    [
      'a part of a server',
      'servers.y.public_ipv4',
      {},
      { ...forget('servers.y.public_ipv4'), next: restored('servers.y.public_ipv4') },
    ],
  ])('the holder releases a resource that it is bound to by mistake: %s', async (_name, key, settings, remedy) => {
    const subjects = [{ key, kind: 'ip', desired: {} }];
    const owner = has(key, 'ip', '7', { identity: a7, ...earlier });
    const { progress } = await settle(unknown, { ...owner, subjects, settings });
    expect(progress).toMatchObject({ remedies: [{ path: 'project' }, remedy] });
  });

  const claims7 = 'absent, claim ip 7 found';
  const foundFor = (holder: object, ...entries: string[]) => ({
    ...keeps('ip', '7', { is: 'found', ...holder }),
    subjects: entries.map((key) => ({ key })),
  });
  const [also, remembersX] = ['void, claim ip 7 found', { formerKeys: ['ips.x'] }];
  const remembers = { by: 'operator', formerKeys: ['ips.x'] };
  test.each<[string, Given, string, object?, object?]>([
    ['an object found before', foundFor({ key: 'ips.x' }, 'ips.x'), claims7],
    ['an object that is left over', keeps('ip', '7', { is: 'leftover', formerKey: 'ips.y' }), 'void'],
    ['one found for another entry', foundFor({ key: 'ips.y' }, 'ips.y', 'ips.z'), also, remembersX],
    ['one found for another line', foundFor({ key: 'ips.a', askedFor: 'ips.y' }, 'ips.y'), also, remembersX],
    ['one found for an entry that has left', foundFor({ key: 'ips.y' }, 'ips.z'), claims7, { key: 'ips.x' }],
    [
      'one found in another scope',
      foundFor({ key: 'ips.y', scope: 'b' }, 'ips.y'),
      claims7,
      { key: 'ips.x' },
    ],
    ['an ignored object', keeps('ip', '7', ofOperator), 'void, claim ip 7 ignored', remembers],
    ['an ignored one, answered before', keeps('ip', '7', { ...ofOperator, formerKeys: ['ips.x'] }), 'void'],
    ['an object that the spec ignores', keeps('ip', '7', ofFile), claims7],
    ['an object that was released from the key', keeps('ip', '7', releasedFrom('ips.x')), 'void'],
    ['an object of the same key', has('ips.x', 'ip', '7'), 'void'],
    [
      'a bound object whose id was given to another',
      { ...has('ips.y', 'ip', '7'), subjects: [{ key: 'ips.y', kind: 'ip', diff: another }] },
      'absent, release ips.y gone, claim ip 7 found',
    ],
    ['an object of another kind', has('networks.y', 'network', '7'), claims7],
    ['a free one of the line', {}, claims7, { key: 'ips.x', askedFor: 'ips.new' }, { recovers: 'ips.new' }],
  ])('a question is answered with %s', async (_name, given, expected, more = {}, write = {}) => {
    const { run, changes, ends } = running(given);
    const progress = await found(run, intentOf({ ...ip, ...write }), '7');
    expect(progress).toMatchObject({ now: 'closed', retryAfterMs: 0 });
    expect([(ends[0] as { outcome: string }).outcome, ...shown(changes[0] ?? [])].join(', ')).toBe(expected);
    const [change] = changes[0] ?? [];
    expect(
      change?.type === 'bind' ? change.binding : change?.type === 'claim' ? change.claim.holder : {},
    ).toMatchObject(more);
    expect(ends[0]).toMatchObject({ because: 'found' });
  });

  test('an object that another entry names is found, and its key is used', async () => {
    const { run, changes, ends } = running();
    const progress = await found(run, intentOf(ip), '7', { namedBy: 'ips.y' as never });
    expect(progress).toMatchObject({ now: 'closed' });
    expect(ends).toMatchObject([
      { outcome: 'void', because: 'taken', text: expect.stringMatching(/^ips.y names 7/) },
    ]);
    expect(shown(changes[0] ?? [])).toEqual(['claim ip 7 found', 'next ips.x']);
  });

  test('a found object keeps its task, its scope, and whether it may have replaced another', async () => {
    const { run, changes } = running({ scope: 'b' });
    await found(run, intentOf({ ...server, incarnation: '1' }), '7', { taskId: 'task' as never });
    await found(running().run, intentOf(ip), '7');
    const holder = { is: 'found', key: 'servers.x', scope: 'b', taskId: 'task' };
    const other = { is: 'unidentified', key: 'servers.x', incarnation: '0' };
    expect(changes[0]).toEqual([
      { type: 'claim', claim: { kind: 'server', id: '7', identity: {}, holder, at: sentAt } },
      { type: 'next_incarnation', key: 'servers.x' },
      {
        type: 'claim',
        claim: { kind: 'project', id: 'servers.x', identity: {}, holder: other, at: expect.any(Number) },
      },
    ]);
    const plain = running();
    await found(plain.run, intentOf(ip), '7');
    expect(plain.changes[0]).toMatchObject([{ claim: { holder: { is: 'found', key: 'ips.x' } } }]);
    expect(Object.keys((plain.changes[0]?.[0] as { claim: Claim }).claim.holder)).toEqual(['is', 'key']);
  });

  const formerly = { ...bound('ips.y', 'ip', '7'), formerKeys: ['ips.x' as ResourceKey] };
  test.each<[string, object, Binding | undefined, readonly string[], string | undefined]>([
    ['its entry', { recovers: 'ips.x' }, undefined, ['ips.x'], 'ips.x'],
    ['an entry with that earlier key', { recovers: 'ips.x' }, formerly, ['ips.y'], 'ips.y'],
    ['a binding that has left', { recovers: 'ips.x', key: 'ips.z' }, formerly, [], 'ips.y'],
    [
      'its own entry, once that has left',
      { recovers: 'ips.x', key: 'ips.z' },
      formerly,
      ['ips.z'],
      undefined,
    ],
    ['another entry', { recovers: 'ips.w' }, formerly, ['ips.y'], undefined],
    ['nothing', {}, formerly, ['ips.y'], undefined],
  ])('a question is about %s', (_name, asked, binding, entries, asker) => {
    const resources = entries.map((key) => ({ key }));
    const run = {
      bindings: new Map(binding && [[binding.key, binding]]),
      desired: { resources },
      world: { subjects: new Map(resources.map((desired) => [desired.key, { desired }])) },
    };
    expect(askerOf(run as never, intentOf(asked))?.key).toBe(asker);
  });

  test('an answered question ends, and its key stays with the holder', async () => {
    const { run, changes, ends } = running();
    expect(await endQuestion(run, intentOf(ip), bound('ips.y', 'ip', '7'))).toMatchObject({
      outcome: 'done',
    });
    expect(changes[0]).toMatchObject([{ binding: { key: 'ips.y', formerKeys: ['ips.x'] } }]);
    expect(ends).toHaveLength(1);
  });

  const own = { key: 'ips.x', kind: 'ip', id: '7', identity: {} } as never;
  const other = (more: object) => intentOf({ ...ip, ...created('7'), id: 'o', key: 'ips.y', ...more });
  const image = { kind: 'server_image', entry: { value: { name: '7' }, protect: false } };
  const opens = (more: object) => ({ open: [other(more)] });
  const byY = [{ key: 'ips.y' }];
  const sameTime = opens(created('7', { at: 1 }));
  test.each<[string, Given, object, boolean, object]>([
    ['an answer at the same time, without its own', sameTime, {}, false, { key: 'ips.y' }],
    ['a binding of the same moment', y7({ boundAt: sentAt }), {}, false, byY],
    ['a name that the request gave', y7(), image, false, []],
    ['a name of an address', y7(), { entry: image.entry }, false, byY],
    ['a name without an entry', y7(), { kind: 'server_image' }, false, byY],
    ['a backup', y7(), { kind: 'backup' }, false, []],
  ])('%s', async (_name, given, write, isFresh, expected) => {
    const { run } = running(given);
    expect(await takeOver(run, intentOf({ ...ip, ...write }), own, isFresh)).toMatchObject(expected);
    if (Array.isArray(expected))
      expect(await takeOver(running(given).run, intentOf({ ...ip, ...write }), own, isFresh)).toHaveLength(
        expected.length,
      );
  });

  test('a binding with another identity is of a resource that is gone', async () => {
    const later = bound('ips.y', 'ip', '7', { boundAt: sentAt + 1, identity: { address: 'b' } });
    const { run, calls } = running({ bindings: [later] });
    const seen = { key: 'ips.x', kind: 'ip', id: '7', identity: a7 } as never;
    expect(await takeOver(run, intentOf(ip), seen)).toMatchObject([{ key: 'ips.y' }]);
    expect(calls).toEqual([['supersede', 'ips.y', 'ips.x']]);
  });

  test('a superseded creation keeps its id and facts, and is read a minute later', async () => {
    const facts = { address: 'a7' };
    const { run, recorded, calls } = running({
      open: [other({ ...created('7', { facts }), firstSentAt: sentAt - 1 })],
    });
    await takeOver(run, intentOf(ip), own);
    const dueAt = sentAt + 60_000;
    expect(recorded).toEqual([
      { stage: { phase: 'superseded', by: 'ips.x', former: { id: '7', facts } }, dueAt },
    ]);
    expect(calls).toEqual([
      ['supersede', 'ips.y', 'ips.x'],
      ['mark', 'o', 'due', 60_000],
    ]);
  });

  const superseded = (former: object, more: object = {}) =>
    intentOf({
      ...server,
      phase: 'superseded',
      by: 'servers.y',
      former,
      dueAt: sentAt,
      ...more,
    }) as InPhase<'superseded'>;
  const held = [
    { id: 51, address: 'a51', server_id: null },
    { id: 52, address: 'a52', server_id: null },
    { id: 53, address: 'a51', server_id: 9 },
  ];
  test('the address of a superseded creation is released with its key', async () => {
    const end = async (intent: InPhase<'superseded'>, given: Given = {}) => {
      const made = running({ ips: held, came: [bound('servers.x.public_ipv4', 'ip', '51')], ...given });
      return { ...made, progress: await endSuperseded(made.run, intent) };
    };
    const address = { id: '7', facts: { address: 'a51' } };
    const ended = await end(superseded(address));
    expect(ended.progress).toMatchObject({ now: 'closed', outcome: 'absent' });
    expect(ended.ends).toMatchObject([{ outcome: 'absent', because: 'gone' }]);
    expect(shown(ended.changes[0] ?? [])).toEqual(['next servers.x', 'bind servers.x.public_ipv4 51']);
    expect(ended.given).toMatchObject([
      { id: '7', facts: { addresses: [{ id: 51, address: 'a51' }] }, subject: { key: 'servers.x' } },
    ]);
    expect((ended.given[0] as { facts: { addresses: object[] } }).facts.addresses).toHaveLength(1);
    const replacing = await end(superseded(address, { replaces: '8' }));
    expect(replacing.given).toMatchObject([{ subject: { key: 'servers.x~7' } }]);
    for (const former of [{ facts: { address: 'a51' } }, { id: '7', facts: {} }])
      expect(shown((await end(superseded(former))).changes[0] ?? [])).toEqual(['next servers.x']);
    expect((await end(superseded(address, { dueAt: sentAt + 5 }))).progress).toEqual({
      now: 'again',
      afterMs: 5,
    });
    const exchanged = running();
    const run = runWith(exchanged.run, { read: async () => undefined });
    expect(await endSuperseded(run, superseded(address))).toEqual({ now: 'again', afterMs: 0 });
  });
});

describe('src/engine/intents/bound-by.ts', () => {
  const entry = { value: { name: 'x' }, protect: true };
  const bind = (write: object, given: Given = {}, more: object = {}) => {
    const made = running(given);
    const of = { id: '7', under: 'ips.x' as ResourceKey, ...more };
    const changes = boundBy(made.run, intentOf({ ...ip, ...write }), of);
    return { ...made, changes, binding: (changes[0] as { binding: Binding }).binding };
  };

  test('the binding of a created resource', () => {
    const { binding, given } = bind({ entry: { ...entry, moved: 'ips.old' }, parentId: '1' });
    expect(binding).toEqual({
      ...{ key: 'ips.x', kind: 'ip', id: '7', parentId: '1', identity: { address: 'a7' }, applied: null },
      ...{ keep: false, protect: true, boundAt: sentAt, formerKeys: ['ips.old'] },
    });
    const asked = { id: '7', asked: entry.value, request: { name: 'create_network' } };
    expect(given[0]).toMatchObject({ ...asked, subject: { key: 'ips.x', kind: 'ip' }, facts: {} });
    const plain = bind({}).binding;
    expect([plain.protect, Object.keys(plain)]).toEqual([
      false,
      ['key', 'kind', 'id', 'identity', 'applied', 'keep', 'protect', 'boundAt'],
    ]);
    const subject = { key: 'ips.x', kind: 'ip', desired: { protect: false } };
    expect(bind({ entry }, { subjects: [subject] }).binding.protect).toBe(false);
    expect(bind({}, { subjects: [subject] }).given[0]).toMatchObject({ subject });
    expect(movedFrom(undefined)).toEqual({});
  });

  const ofA = { facts: { address: 'a' } };
  test.each<[string, object, object, object]>([
    ['the answer named the resource', created('7', ofA), {}, ofA.facts],
    ['the answer named another', created('8', ofA), {}, {}],
  ])('the facts of the binding, where %s', (_name, write, more, facts) => {
    const { given } = bind(write, {}, more);
    expect(given.map((each) => (each as { facts: object }).facts)).toEqual([facts, facts]);
  });

  const unknown = created('7', { to: 'unknown_send' });
  test('only the entry that asked for a replacement protects the new resource', () => {
    const value = { name: 'x' };
    const desired = { protect: true, value };
    const of = (write: object) =>
      bind(write, { subjects: [{ key: 'ips.x', kind: 'ip', desired } as never] }).binding.protect;
    const asked = { entry: { value, protect: false } };
    expect(of({ ...asked, basis: 'sha256:before' })).toBe(true);
    expect(of({ ...asked, replaces: '8', basis: 'sha256:before' })).toBe(false);
    expect(of({ ...asked, replaces: '8', basis: digestOf(value) })).toBe(true);
    expect(of({ replaces: '8', basis: 'sha256:before' })).toBe(true);
  });

  test('a resource that the operator named, or an unknown answer, may be older', () => {
    const older = (write: object, more: object) =>
      (bind(write, {}, more).given[0] as { mayBeOlder: unknown }).mayBeOlder;
    expect(older(created('7'), {})).toBe(false);
    expect([older(unknown, {}), older(created('7'), { byOperator: true })]).toEqual([true, true]);
  });

  const isRecovered = has('ips.x', 'ip', '7', { recovered: 'found' });
  test.each<[string, object, Given, unknown?, object?]>([
    ['an unknown answer', unknown, {}, 'found'],
    ['an update of a recovered resource', { verb: 'update' }, isRecovered, 'found'],
  ])('a resource is recovered after %s: %#', (_name, write, given, recovered, more) => {
    const { changes } = bind(write, { ...given, came: [bound('ips.z', 'ip', '9')] }, more);
    expect(changes.map((each) => each.type === 'bind' && each.binding.recovered)).toEqual([
      recovered,
      recovered,
    ]);
  });

  test('only bindings are marked as recovered, and a backup starts the next incarnation', () => {
    const next = { type: 'next_incarnation', key: 'ips.x' as ResourceKey } as const;
    expect(recoveredIf('found', [next])).toEqual([next]);
    expect(recoveredIf(undefined, [next])).toEqual([next]);
    expect(shown(bind({ kind: 'backup', key: 'servers.x.backup' }).changes)).toEqual([
      'bind ips.x 7',
      'next servers.x.backup',
    ]);
  });

  test('the resources that belong to a created resource, and to no other key', () => {
    const came = [
      bound('servers.x.public_ipv4', 'ip', '51'),
      bound('servers.x.public_ipv4', 'ip', '52'),
      bound('servers.x.public_ipv4', 'ip', '53'),
    ];
    const open = [intentOf({ ...ip, ...created('52'), key: 'ips.y' })];
    const bindings = [bound('ips.z', 'ip', '53')];
    const made = running({ came, open, bindings, subjects: [{ ...server, key: 'servers.x' }] });
    const write = intentOf({ ...server, ...created('7'), entry, preimage: { ids: [] } });
    expect(shown(companionsOf(made.run, write, '7', {}))).toEqual(['bind servers.x.public_ipv4 51']);
    const context = {
      id: '7',
      asked: entry.value,
      preimage: { ids: [] },
      facts: {},
      named: true,
      at: sentAt,
    };
    expect(made.given).toMatchObject([{ ...context, subject: { ...server, key: 'servers.x' } }]);
    companionsOf(made.run, write, '8', {}, 'servers.x~8' as ResourceKey);
    expect(made.given[1]).toMatchObject({ named: false, subject: { key: 'servers.x~8', kind: 'server' } });
    const own = running({ came, bindings: [bound('servers.x', 'ip', '51')] });
    expect(companionsOf(own.run, write, '7', {})).toHaveLength(3);
    const none = { ...own.run, kindOf: () => ({}) } as unknown as typeof own.run;
    expect(companionsOf(none, write, '7', {})).toEqual([]);
    expect(companionsOf({ ...none, kindOf: () => ({ creation: {} }) } as never, write, '7', {})).toEqual([]);
    expect(running().given).toEqual([]);
    const other = running({ came });
    companionsOf(other.run, write, '7', {});
    expect(other.given).toMatchObject([{ subject: { key: 'servers.x', kind: 'server' } }]);
  });

  test('a failed creation leaves the addresses that its answer named', () => {
    const came = [bound('servers.x.public_ipv4', 'ip', '51')];
    const left = { addresses: [{ id: 51, address: 'a51' }] };
    const { run, given } = running({ came });
    const failed = intentOf({ ...server, ...created('7'), replaces: '8' });
    expect(leftByFailed(run, failed, left)).toHaveLength(1);
    expect(given).toMatchObject([{ id: '7', facts: left, subject: { key: 'servers.x~7' } }]);
    expect(leftByFailed(run, failed, undefined)).toEqual([]);
    expect(leftByFailed(run, intentOf(server), left)).toEqual([]);
    expect(remainsOf({ key: 'servers.x' as ResourceKey }, '7')).toBe('servers.x');
  });
});
