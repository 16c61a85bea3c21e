import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/core/claims.ts';
import { type ResourceKey, retiringKey } from '../../../src/core/keys.ts';
import type { Binding, Intent, StateChange } from '../../../src/core/state.ts';
import { confirmRecovered, createRunState } from '../../../src/engine/claims/run-state.ts';
import { boundIn, knownIds } from '../../../src/engine/run.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { bound } from '../../plan/support.ts';

const key = (name: string) => name as ResourceKey;
const intent = (name: string, kind: string, more: object = {}) =>
  ({
    id: `i ${name}`,
    key: name,
    kind,
    verb: 'create',
    phase: 'sending',
    request: { path: {} },
    preimage: {},
    ...more,
  }) as unknown as Intent;
const claim = (kind: string, id: string, holder: object, more: object = {}) =>
  ({ kind, id, identity: {}, holder, at: 1, ...more }) as Claim;
const named = (claims: readonly Claim[]) => new Map(claims.map((each) => [`${each.kind} ${each.id}`, each]));
const bind = (binding: Binding) => ({ type: 'bind', binding }) as const;
const release = (name: string) => ({ type: 'release', key: key(name), gone: false, reason: 'r' }) as const;
const ignored = { is: 'ignored', by: 'operator' };

/** A run's state, over a store that keeps its calls. */
function state({
  bindings = [] as readonly Binding[],
  claims = [] as readonly Claim[],
  intents = [] as readonly Intent[],
  entries = [] as readonly object[],
  moves = [] as readonly { from: string; to: string }[],
  waiting = [] as readonly object[],
} = {}) {
  const calls: (readonly unknown[])[] = [];
  const forgotten: unknown[] = [];
  const changed: string[] = [];
  const noted =
    (name: string) =>
    async (...given: readonly unknown[]) =>
      void calls.push([name, ...given]);
  const store = {
    change: noted('change'),
    beginIntent: noted('begin'),
    updateIntent: noted('update'),
    closeIntent: noted('close'),
  };
  const run = createRunState({
    deps: { store, clock: { now: () => 50 }, kinds } as never,
    asked: { resources: entries, scope: undefined } as never,
    desired: { resources: entries, scope: undefined } as never,
    cache: { forget: (stale: unknown) => void forgotten.push(stale) } as never,
    bindings: new Map(bindings.map((each) => [each.key, each])),
    claims: named(claims),
    uncounted: new Map(),
    intents: new Map(intents.map((each) => [each.key, each])),
    moves: moves as never,
    waitingMoves: waiting as never,
    flaggedBy: (binding) => ({ ...binding, protect: true }),
    onChange: (name) => void changed.push(name),
  });
  return { run, calls, forgotten, changed };
}
const sent = (calls: readonly (readonly unknown[])[]) => (calls[0]?.at(-2) ?? []) as readonly StateChange[];

describe('src/engine/claims/run-state.ts', () => {
  test('changes are made in turn, and a function sees the bindings after the earlier ones', async () => {
    const { run, calls } = state();
    const server = bind(bound('servers.a', 'server', '7'));
    await Promise.all([
      run.state.change([bind(bound('ips.a', 'ip', '1'))]),
      run.state.change(() => (run.bindings.has(key('ips.a')) ? [server] : [])),
    ]);
    expect(calls.at(-1)?.[1]).toEqual([server]);
  });

  test('a change is stored first, and then applied in memory', async () => {
    const { run, calls, changed } = state({
      bindings: [bound('ips.a', 'ip', '1')],
      claims: [claim('ip', '9', ignored)],
    });
    const other = claim('ip', '8', ignored);
    const asked: readonly StateChange[] = [
      ...[release('ips.a'), bind(bound('ips.b', 'ip', '2')), { type: 'claim', claim: other } as const],
      { type: 'unclaim', object: claim('ip', '9', ignored), reason: 'r' },
      { type: 'next_incarnation', key: key('ips.z') },
    ];
    await run.state.change(asked);
    const next = { type: 'next_incarnation', key: key('ips.a') };
    expect(calls).toEqual([['change', [asked[0], next, ...asked.slice(1)], 50]]);
    expect([...run.bindings.values()].map(({ key: name, protect }) => [name, protect])).toEqual([
      ['ips.b', true],
    ]);
    expect([...run.claims.keys()]).toEqual(['ip 8']);
    expect(changed).toEqual(['ips.a', 'ips.b']);
  });

  test.each<[string, string, object, readonly string[] | undefined]>([
    ['another key', 'server', { is: 'found', key: 'servers.x' }, ['servers.x']],
    ['its own key', 'server', { is: 'found', key: 'servers.a' }, undefined],
    ['no key', 'server', ignored, undefined],
    ['no key, with an address that was', 'ip', { is: 'found', key: 'ips.x' }, undefined],
  ])('a bound resource that was found under %s', async (_name, kind, holder, formerKeys) => {
    const { run, calls } = state({
      claims: [claim(kind, '7', holder, kind === 'ip' ? { parentId: '7' } : {})],
    });
    await run.state.change([bind(bound('servers.a', 'server', '7'))]);
    const bindings = sent(calls).flatMap((each) => ('binding' in each ? [each.binding] : []));
    expect(bindings.map((each) => each.formerKeys)).toEqual([formerKeys]);
  });

  test.each([
    ['that a key was answered with', { is: 'found', key: 'servers.x' }, true],
    ['that is ignored', ignored, false],
    ['without a holder', undefined, false],
  ])('the end of a claim on a resource %s', async (_name, holder, counts) => {
    const object = claim('server', '7', ignored);
    const { run, calls } = state({
      claims: holder === undefined ? [] : [claim('server', '7', holder as never)],
    });
    const change = { type: 'unclaim', object, reason: 'the object no longer exists' } as const;
    await run.state.change([change]);
    const next = { type: 'next_incarnation', key: 'servers.x' };
    expect(sent(calls)).toEqual([change, ...(counts ? [next] : [])]);
  });

  test('the first change of a renamed binding is stored as its move', async () => {
    const moves = [
      { from: 'ips.a', to: 'ips.b' },
      { from: 'ips.c', to: 'ips.d' },
    ];
    const { run, calls } = state({
      bindings: [bound('ips.b', 'ip', '1'), bound('ips.d', 'ip', '2'), bound('ips.e', 'ip', '3')],
      moves,
    });
    const other = claim('ip', '8', ignored);
    const free = { type: 'claim', claim: other } as const;
    await run.state.change([
      bind(bound('ips.e', 'ip', '3')),
      release('ips.d'),
      bind(bound('ips.b', 'ip', '1')),
      free,
    ]);
    await run.state.change([bind(bound('ips.b', 'ip', '1')), release('ips.e')]);
    expect(calls.map(([, changes]) => changes)).toMatchObject([
      [
        { type: 'bind', binding: { key: 'ips.e' } },
        { type: 'release', key: 'ips.c', reason: 'r' },
        { type: 'next_incarnation', key: 'ips.d' },
        { type: 'release', key: 'ips.a', gone: false, reason: 'moved to ips.b' },
        { type: 'next_incarnation', key: 'ips.a' },
        { type: 'bind', binding: { key: 'ips.b' } },
        { type: 'claim' },
      ],
      [
        { type: 'bind', binding: { key: 'ips.b' } },
        { type: 'release', key: 'ips.e' },
        { type: 'next_incarnation', key: 'ips.e' },
      ],
    ]);
    expect([...run.bindings.keys()]).toEqual(['ips.b']);
  });

  test('an intent is stored before it is known, and its end forgets it', async () => {
    const { run, calls, forgotten } = state();
    const first = intent('ips.a', 'ip');
    await run.state.begin(first);
    expect([calls, run.intents.get(key('ips.a'))]).toEqual([[['begin', first]], first]);
    const patched = await run.state.update(first, { lost: 2, stage: { phase: 'waiting' } });
    expect(patched).toMatchObject({ lost: 2, phase: 'waiting', key: 'ips.a' });
    expect(run.intents.get(key('ips.a'))).toBe(patched);
    expect(calls[1]).toEqual(['update', 'i ips.a', { lost: 2, stage: { phase: 'waiting' } }, 50]);
    // An earlier copy of the intent does not bring back the fields of that time.
    expect(await run.state.update(first, { sends: 3 })).toMatchObject({ lost: 2, sends: 3 });
    const ended = { outcome: 'done', text: '' } as const;
    await run.state.close(first, ended, [bind(bound('ips.a', 'ip', '1'))]);
    expect(calls[3]).toMatchObject(['close', 'i ips.a', ended, [{ type: 'bind' }], 50]);
    expect([run.intents.size, run.bindings.size, forgotten]).toEqual([0, 1, []]);
    const unknown = intent('ips.z', 'ip');
    expect(await run.state.update(unknown, { lost: 1 })).toMatchObject({ key: 'ips.z', lost: 1 });
  });

  test('the reads of other resources are forgotten after a deletion', async () => {
    const { run, forgotten } = state();
    await run.state.close(
      intent('servers.a', 'server', { verb: 'delete', request: { name: 'delete_server', path: { id: 1 } } }),
      { outcome: 'done', text: '' },
      [],
    );
    expect(forgotten).toEqual([
      kinds.get('server')?.writes.stale({ name: 'delete_server', path: { id: 1 } } as never),
    ]);
    await run.state.close(intent('odd.a', 'odd', { verb: 'delete' }), { outcome: 'done', text: '' }, []);
    expect(forgotten[1]).toEqual({});
  });

  const a = (more: object = {}) => bound('ips.a', 'ip', '1', more);
  const held = (id: string, parentId: string) => claim('ip', id, ignored, { parentId });
  const claims = (id: string) => ({ type: 'claim', claim: claim('ip', id, ignored) }) as const;
  const renamed = { bindings: [a({ formerKeys: ['ips.x'] })] };
  const later = bind(a({ formerKeys: ['ips.x', 'ips.y'] }));
  const others = { claims: [claim('ip', '2', ignored), claim('network', '1', ignored)] };
  const ofServers = [held('7', '1'), held('8', '2'), claim('backup', '9', ignored, { parentId: '1' })];
  const [server, network] = [bound('servers.a', 'server', '1'), bound('networks.a', 'network', '1')];
  const next = { type: 'next_incarnation', key: key('ips.a') } as const;
  const released1 = ['bind ips.a', 'claim ip 1', 'release ips.a', 'next_incarnation'];
  test.each<[string, Parameters<typeof state>[0], readonly StateChange[], readonly string[]]>([
    [
      'a claim that is bound',
      { claims: [claim('ip', '1', ignored)] },
      [bind(a())],
      ['unclaim ip 1, bound to ips.a', 'bind ips.a'],
    ],
    ['no other claim', others, [bind(a())], ['bind ips.a']],
    [
      'the address of a bound server',
      { claims: ofServers },
      [bind(server)],
      ['unclaim ip 7, bound to servers.a', 'bind servers.a'],
    ],
    ['no address of a network', { claims: [held('7', '1')] }, [bind(network)], ['bind networks.a']],
    ['no claim on a resource that is bound after it', {}, [claims('1'), bind(a())], ['bind ips.a']],
    [
      'no claim on a resource that another incarnation has',
      {},
      [bind(a()), next, claims('1')],
      ['bind ips.a', 'next_incarnation'],
    ],
    ['a claim on a resource released after it', {}, [bind(a()), claims('1'), release('ips.a')], released1],
    ['a claim on a resource bound elsewhere', {}, [claims('2'), bind(a())], ['claim ip 2', 'bind ips.a']],
    ['the earlier keys of the binding', renamed, [later], ['bind ips.a of ips.x,ips.y']],
    ['the earlier keys of the key', renamed, [bind(a())], ['bind ips.a of ips.x']],
  ])('a store gets %s', async (_name, given, asked, expected) => {
    const { run, calls } = state(given);
    await run.state.change(asked);
    const text = sent(calls).map((each) => {
      if (each.type === 'bind')
        return `bind ${each.binding.key}${each.binding.formerKeys ? ` of ${each.binding.formerKeys}` : ''}`;
      if (each.type === 'claim') return `claim ${each.claim.kind} ${each.claim.id}`;
      if (each.type === 'unclaim') return `unclaim ${each.object.kind} ${each.object.id}, ${each.reason}`;
      return each.type === 'release' ? `release ${each.key}` : each.type;
    });
    expect(text).toEqual(expected);
    for (const each of sent(calls))
      if (each.type === 'bind')
        expect(Object.hasOwn(each.binding, 'formerKeys')).toBe(each.binding.formerKeys !== undefined);
  });

  const released = (formerKey: string) => ({ is: 'released', by: 'file', formerKey });
  test('the line of an entry follows each change', async () => {
    const entry = { key: 'ips.a', kind: 'ip', managed: true, value: {} };
    const { run } = state({ entries: [entry], claims: [claim('ip', '1', released('ips.a'))] });
    const lineOf = (moved?: string) => [
      ...run.lines().of({ key: key('ips.a'), ...(moved && { moved: key(moved) }) }),
    ];
    expect([run.lines().returning().get(key('ips.a'))?.id, lineOf('ips.z')]).toEqual([
      '1',
      ['ips.a', 'ips.z'],
    ]);
    await run.state.begin(intent('ips.a', 'ip', { entry: { value: {}, moved: 'ips.y' } }));
    expect(lineOf()).toEqual(['ips.a', 'ips.y']);
    await run.state.close(intent('ips.a', 'ip'), { outcome: 'done', text: '' }, [bind(a())]);
    expect([run.lines().returning().get(key('ips.a')), lineOf()]).toEqual([undefined, ['ips.a']]);
    await run.state.change([bind(a({ formerKeys: ['ips.x'] }))]);
    expect(lineOf()).toEqual(['ips.a', 'ips.x']);
  });

  test('moves are known at once, and stored together', async () => {
    const entries = [{ key: 'ips.b', kind: 'ip', managed: true, moved: 'ips.a', value: {} }];
    const { run, calls } = state({ bindings: [a(), bound('ips.n', 'ip', '3')], entries });
    expect([...run.lines().of({ key: key('ips.b') })]).toEqual(['ips.b']);
    run.moves.renew();
    expect([...run.bindings.keys()]).toEqual(['ips.n', 'ips.b']);
    expect([...run.lines().of({ key: key('ips.b') })]).toEqual(['ips.b', 'ips.a']);
    expect(run.moves.all).toEqual([{ from: 'ips.a', to: 'ips.b' }]);
    await run.moves.keep();
    expect(sent(calls)).toMatchObject([
      { type: 'release', key: 'ips.a' },
      { type: 'next_incarnation', key: 'ips.a' },
      { type: 'bind', binding: { key: 'ips.b' } },
    ]);
    expect(run.moves.all).toEqual([]);
    await run.moves.keep();
    expect(calls).toHaveLength(1);
  });

  test('a move that waits is known with its reason', () => {
    const entries = [{ key: 'ips.b', kind: 'ip', managed: true, moved: 'ips.a', value: {} }];
    const waiting = [{ waitsFor: ['ips.q'] }];
    const { run } = state({
      waiting,
      bindings: [a()],
      entries,
      intents: [intent('ips.a', 'ip')],
      moves: [{ from: 'ips.z', to: 'ips.a' }],
    });
    expect(run.moves.waiting).toEqual(waiting);
    run.moves.renew();
    expect(run.moves.waiting.map(({ blocked }) => blocked.code)).toEqual(['moved_in_flight']);
    expect(run.moves.all).toEqual([{ from: 'ips.z', to: 'ips.a' }]);
    run.moves.renew();
    expect(run.moves.waiting).toHaveLength(1);
  });

  test('an object that is gone is gone under each of its keys that is not bound', async () => {
    const formerKeys = [key('ips.y'), key('ips.z')];
    const bindings = [{ ...a(), formerKeys }, bound('ips.z', 'ip', '2')];
    const next = async (gone: boolean) => {
      const { run, calls } = state({ bindings });
      await run.state.change([{ type: 'release', key: key('ips.a'), gone, reason: 'r' }]);
      return sent(calls).flatMap((each) => (each.type === 'next_incarnation' ? [each.key] : []));
    };
    expect(await next(true)).toEqual(['ips.y']);
    expect(await next(false)).toEqual(['ips.a']);
  });

  test('the key of a part, and of a resource that retires, has no next key of its own', async () => {
    const { run, calls } = state({});
    const left = [key('servers.web.public_ipv4'), retiringKey(key('servers.web'), '1')];
    await run.state.change(
      left.map((each) => ({ type: 'release', key: each, gone: false, reason: 'r' }) as const),
    );
    expect(sent(calls).map(({ type }) => type)).toEqual(['release', 'release']);
  });

  test('a dry run frees the keys that a release would free, and the renames onto them', () => {
    const entries = [{ key: 'ips.b', kind: 'ip', managed: true, moved: 'ips.a', value: {} }];
    const { run, calls } = state({
      bindings: [a(), bound('ips.b', 'ip', '2'), bound('ips.c', 'ip', '3')],
      entries,
    });
    run.moves.renew();
    expect(run.moves.all).toEqual([]);
    run.moves.free([release('ips.b'), bind(bound('ips.c', 'ip', '3'))]);
    expect([...run.bindings].map(([name, { id }]) => [name, id])).toEqual([
      ['ips.c', '3'],
      ['ips.b', '1'],
    ]);
    expect(run.moves.all).toEqual([{ from: 'ips.a', to: 'ips.b' }]);
    expect(calls).toEqual([]);
  });

  test.each<[string, boolean, object, string[]]>([
    ['an operator who has seen the warning confirms', true, {}, ['ips.a']],
    ['an unattended run confirms nothing', false, {}, []],
    ['another warning confirms nothing', true, { code: 'drift' }, []],
    ['a warning about another resource confirms nothing', true, { key: 'ips.c' }, []],
    ['a warning without a key confirms nothing', true, { key: null }, []],
  ])('of recovered resources, %s', async (_name, attended, warning, confirmed) => {
    const recovered = { ...a(), recovered: 'found' } as const;
    const { run, calls } = state({ bindings: [recovered, bound('ips.c', 'ip', '3')] });
    const warnings = [{ code: 'recovered_unconfirmed', key: 'ips.a', ...warning }];
    await confirmRecovered({ ...run, mode: { attended } } as never, { warnings } as never);
    const stored = sent(calls).flatMap((each) => (each.type === 'bind' ? [each.binding] : []));
    expect(stored.map((each) => [each.key, 'recovered' in each])).toEqual(
      confirmed.map((each) => [each, false]),
    );
    expect(calls).toHaveLength(confirmed.length);
  });

  test('the known ids of a kind are those that are bound, of open answers, or found under another key', () => {
    const open = (name: string, id: string, kind = 'ip') =>
      intent(name, kind, { phase: 'accepted', answer: { id } });
    const intents = [
      open('ips.b', '2'),
      open('ips.c', '3'),
      open('networks.d', '4', 'network'),
      intent('ips.e', 'ip'),
    ];
    const absent = intent('ips.f', 'ip', {
      phase: 'blocked',
      answer: { id: '5' },
      blocked: { code: 'not_there' },
    });
    const found = (name: string) => ({ is: 'found', key: name });
    const claims = [
      claim('ip', '6', found('ips.b')),
      claim('ip', '7', found('ips.z')),
      claim('ip', '8', ignored),
      claim('network', '5', found('networks.z')),
    ];
    const { run } = state({
      bindings: [a(), bound('networks.a', 'network', '9')],
      intents: [...intents, absent],
      claims,
    });
    expect([...knownIds(run, 'ip')]).toEqual(['1', '2', '3', '6', '7']);
    expect([...knownIds(run, 'ip', intents[0])]).toEqual(['1', '3', '7']);
    expect(boundIn(run, key('ips.a'))).toEqual([]);
    const inside = state({
      bindings: [bound('servers.a', 'server', '1'), bound('servers.a.firewall', 'firewall', '1')],
    });
    expect(boundIn(inside.run, key('servers.a')).map((each) => each.key)).toEqual(['servers.a.firewall']);
  });
});
