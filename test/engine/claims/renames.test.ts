import { describe, expect, test } from 'vitest';
import type { Desired } from '../../../src/core/desired.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { resolveText } from '../../../src/core/remedy.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import {
  composed,
  moveChanges,
  movedBindings,
  movesOf,
  ownNames,
  renamesOf,
  waitingFor,
  withRenames,
} from '../../../src/engine/claims/moves.ts';
import type { Move } from '../../../src/engine/run.ts';

const key = (name: string) => name as ResourceKey;
/** `servers.b<servers.a`: the entry of b names a in `moved`. */
const file = (...entries: readonly (string | object)[]) =>
  ({
    resources: entries.map((entry) => {
      if (typeof entry !== 'string') return { managed: true, value: {}, ...entry };
      const [own = '', moved] = entry.split('<');
      return { key: own, managed: true, value: { size: 1 }, ...(moved === undefined ? {} : { moved }) };
    }),
  }) as unknown as Desired;
const boundTo = (...names: readonly string[]) =>
  new Map(
    names.map((name) => [key(name), { key: name, id: `id of ${name}`, identity: {} } as unknown as Binding]),
  );
const openOf = (...names: readonly string[]) =>
  new Map(
    names.map((name) => [key(name), { key: name, verb: 'create', phase: 'accepted' } as unknown as Intent]),
  );
const arrow = ({ from, to }: { from: string; to: string }) => `${from} > ${to}`;

describe('src/engine/claims/moves.ts: the moves of a spec', () => {
  const card = 'servers.a.network_interfaces.n';
  const [serverB, aToB, retires] = [
    'servers.b<servers.a',
    'servers.a > servers.b',
    'servers.a~1 > servers.b~1',
  ];
  const ipB = 'ips.b<ips.a';
  const [networkM, nToM, cardToM] = [
    'networks.m<networks.n',
    'networks.n > networks.m',
    `${card} > servers.a.network_interfaces.m`,
  ];
  const [wallA, wallB] = ['servers.a.firewall', 'servers.b.firewall'];
  const wallToB = `${wallA} > ${wallB}`;
  const partsToB = [`${card} > servers.b.network_interfaces.n`, 'servers.a.backup > servers.b.backup'];
  const retiring = ['servers.a~1', 'servers.a~1.public_ipv4'];
  const before = [
    ...['servers.a', 'servers.a.firewall', card, 'servers.a.backup', 'networks.n', 'ips.i', 'servers.z'],
  ];
  test.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ['nothing', ['servers.a'], ['servers.a'], []],
    ['an entry that has no binding before', ['servers.b<servers.gone'], ['servers.a'], []],
    ['a server, with its parts', [serverB], before, [aToB, wallToB, ...partsToB]],
    ['a network, with the interfaces', [networkM], before, [cardToM, nToM]],
    [
      'both',
      [serverB, networkM],
      [card, 'servers.a', 'networks.n'],
      [`${card} > servers.b.network_interfaces.m`, aToB, nToM],
    ],
    ['a server of which a part is left', [serverB], ['servers.a.firewall'], [wallToB]],
    ['a server that was moved before its part', [serverB], ['servers.b', 'servers.a.firewall'], []],
    [
      'a retiring server',
      [serverB],
      retiring,
      [retires, 'servers.a~1.public_ipv4 > servers.b~1.public_ipv4'],
    ],
    ['a server beside the retiring one', [serverB], ['servers.a', 'servers.a~1'], [aToB, retires]],
    ['two names that change places', ['ips.a<ips.b', 'ips.b<ips.a'], ['ips.a', 'ips.b'], []],
  ])('%s', (_name, entries, names, expected) => {
    expect(movesOf(file(...entries), boundTo(...names), new Map()).moves.map(arrow)).toEqual(expected);
  });

  describe('a network interface whose network has another key now', () => {
    const to = 'servers.a.network_interfaces.m';
    const interfaceIn = (network: string | undefined, name = card) =>
      ({
        ...{ key: name, kind: 'network_interface', id: name },
        identity: network === undefined ? {} : { network_id: network },
      }) as unknown as Binding;
    const network = { key: 'networks.m', id: 'n1', identity: {} } as unknown as Binding;
    const entry = { key: to, kind: 'network_interface', parent: 'servers.a' };
    const server = { key: 'servers.a' };
    const named = { key: 'networks.m', id: 'n1' };
    const inB = { ...entry, key: 'servers.b.network_interfaces.m', parent: 'servers.b' };
    const alone = [interfaceIn('n1')];
    const renamedFrom = (name: string) => ({ key: 'networks.m', managed: false, moved: `networks.${name}` });
    const moved = (entries: readonly object[], bindings: readonly Binding[], open: readonly string[] = []) =>
      movesOf(file(...entries), new Map(bindings.map((each) => [each.key, each])), openOf(...open)).moves.map(
        arrow,
      );

    const inN1 = [interfaceIn('n1'), network];
    test.each<[string, readonly object[], readonly Binding[], boolean, (readonly string[])?]>([
      ['follows the bound network', [server, entry], inN1, true],
      ['follows the network that the entry names', [server, entry, named], alone, true],
      ['follows a renamed network that is not bound', [server, entry, renamedFrom('n')], alone, true],
      ['stays in another one that is not bound', [server, entry, renamedFrom('z')], alone, false],
      ['stays without an identity', [server, entry], [interfaceIn(undefined), network], false],
      ['stays in another network', [server, entry], [interfaceIn('n2'), network], false],
      ['stays while its own entry is there', [server, entry, { ...entry, key: card }], inN1, false],
      ['stays while it has an open write', [server, entry], inN1, false, [card]],
      ['stays while the other has an open write', [server, entry], inN1, false, [to]],
      ['stays if the other is bound', [server, entry], [...inN1, interfaceIn('n1', to)], false],
      ['stays in another server', [server, inB], inN1, false],
      ['stays if the entry is of another kind', [{ ...entry, kind: 'ip' }], inN1, false],
      ['stays without any entry', [server], inN1, false],
    ])('%s', (_name, entries, bindings, follows, open) => {
      expect(moved(entries, bindings, open)).toEqual(follows ? [`${card} > ${to}`] : []);
    });
  });

  test.each<[string, readonly string[], readonly string[], readonly string[], string | undefined]>([
    ['an open write of the earlier key', ['ips.b<ips.a'], ['ips.a'], ['ips.a'], 'ips.b waits for ips.a'],
    ['an open write of the new key', ['ips.b<ips.a'], ['ips.a'], ['ips.b'], 'ips.b waits for ips.b'],
    ['an open write of a part', [serverB], ['servers.a'], [wallA], `servers.b waits for ${wallA}`],
    ['an open write of another key', ['ips.b<ips.a'], ['ips.a'], ['ips.c'], undefined],
    ['a bound new key', ['ips.b<ips.a'], ['ips.a', 'ips.b'], [], 'ips.b waits for '],
    [
      'a bound part of the new server',
      [serverB],
      ['servers.a', wallA, 'servers.b', wallB],
      [],
      'servers.b waits for ',
    ],
  ])('a move waits because of %s', (_name, entries, names, open, expected) => {
    const { moves, waiting: held } = movesOf(file(...entries), boundTo(...names), openOf(...open));
    expect(held.map(({ blocked, waitsFor }) => `${blocked.key} waits for ${waitsFor.join()}`)).toEqual(
      expected === undefined ? [] : [expected],
    );
    expect(moves.length > 0).toBe(expected === undefined);
  });

  test.each([
    ['another entry', [ipB, 'ips.d<ips.c'], ['ips.a', 'ips.c'], 'ips.a', 'ips.c > ips.d', 'ips.a ips.b'],
    ['a chain', [ipB, 'ips.c<ips.b'], ['ips.a', 'ips.b'], 'ips.a', '', 'ips.a ips.b ips.c'],
    [
      'a network, and the servers on it',
      ['networks.o<networks.n', 'servers.b<servers.a', 'servers.z'],
      ['networks.n', 'servers.a', 'servers.a.network_interfaces.n', 'servers.z'],
      'networks.n',
      '',
      'networks.n networks.o servers.a servers.b',
    ],
  ])('a waiting move blocks each connected move: %s', (_name, entries, names, open, moved, waiting) => {
    const { moves, waiting: held } = movesOf(file(...entries), boundTo(...names), openOf(open));
    expect(moves.map(arrow).join()).toBe(moved);
    expect(held[0]?.keys).toEqual(new Set(waiting.split(' ')));
  });

  test('an open write does not block an entry that is not moved', () => {
    for (const entry of ['ips.b<ips.gone', 'ips.b'])
      expect(movesOf(file(entry), boundTo('ips.a'), openOf('ips.b')).waiting).toEqual([]);
  });

  test.each([
    ['an address', [], 'servers.b~9'],
    ['an address, and the renamed server has one too,', ['servers.a.public_ipv4'], 'servers.b~9'],
    ['an address', ['servers.b~9.public_ipv4'], 'servers.b~9-5'],
  ])('%s that the deleted server of the new key left gets a key of its own', (_name, names, aside) => {
    const address = {
      ...boundTo('servers.b.public_ipv4').get(key('servers.b.public_ipv4')),
      id: '5',
      parentId: '9',
    };
    const bindings = boundTo('servers.a', ...names).set(key('servers.b.public_ipv4'), address as Binding);
    const { moves, waiting: held } = movesOf(file('servers.b<servers.a'), bindings, new Map());
    expect(held).toEqual([]);
    expect(moves.map(arrow)).toContain(`servers.b.public_ipv4 > ${aside}.public_ipv4`);
    const left = [...movedBindings(bindings, moves).values()].filter(({ orphaned }) => orphaned);
    const retires = names.filter((name) => name.startsWith('servers.b~')).map((name) => `id of ${name}`);
    expect(left.map(({ id }) => id).sort()).toEqual(['5', ...retires]);
    const its = { ...address, parentId: 'id of servers.a' } as Binding;
    const withIts = new Map(bindings).set(its.key, its);
    const orphans = movesOf(file('servers.b<servers.a'), withIts, new Map()).moves.filter(
      (each) => each.orphans,
    );
    expect(orphans.map(({ from }) => from)).toEqual(names.filter((name) => name.startsWith('servers.b~')));
  });

  test('a rename waits for an open write of its keys, and asks about no binding meanwhile', () => {
    const bindings = boundTo('servers.a', 'servers.b');
    const codes = (open: string) =>
      movesOf(file('servers.b<servers.a'), bindings, openOf(open)).waiting.map(({ blocked }) => blocked.code);
    expect(codes('servers.b')).toEqual(['moved_in_flight']);
    expect(codes('servers.z')).toEqual(['moved_onto_bound']);
  });

  test('parts of the old line of a key that retire are left too, and renamed parts are not', () => {
    const of = (...names: readonly string[]) => {
      const entries = ['servers.b<servers.a', 'servers.a<servers.b'].slice(
        0,
        names.includes('servers.b') ? 2 : 1,
      );
      return movesOf(file(...entries), boundTo('servers.a', ...names), new Map())
        .moves.filter((each) => each.orphans)
        .map(arrow);
    };
    expect(of('servers.b~1.public_ipv4')).toEqual(['servers.b~1.public_ipv4 > servers.b~1.public_ipv4']);
    expect(of('servers.c~1.public_ipv4', 'servers.c.public_ipv4')).toEqual([]);
    expect(of('servers.b', 'servers.b~1.public_ipv4')).toEqual([]);
    const marked = { key: 'servers.b~1.public_ipv4', id: '5', identity: {}, orphaned: true };
    const again = boundTo('servers.a').set(key('servers.b~1.public_ipv4'), marked as never);
    expect(movesOf(file('servers.b<servers.a'), again, new Map()).moves.some((each) => each.orphans)).toBe(
      false,
    );
  });

  test('an inferred move is marked', () => {
    const of = (more: object) =>
      movesOf(file({ key: 'ips.b', moved: 'ips.a', ...more }), boundTo('ips.a'), new Map()).moves;
    expect(of({ isInferred: true })).toEqual([{ from: 'ips.a', to: 'ips.b', inferred: true }]);
    expect(of({})).toEqual([{ from: 'ips.a', to: 'ips.b' }]);
  });

  test('a bound new key has two remedies, and an open write has one', () => {
    const [onto] = movesOf(file('ips.b<ips.a'), boundTo('ips.a', 'ips.b'), new Map()).waiting;
    expect(onto?.blocked).toMatchObject({ verb: 'update', code: 'moved_onto_bound' });
    const ways = [
      'vdcsync forget ips.a (to keep its resource, no longer managed and still billed)',
      'remove `moved` in ips.b (to give ips.a up)',
      'put ips.a back into the spec; then remove ips.b from the spec; then vdcsync apply (to delete the resource of ips.b first, ',
    ];
    expect(resolveText(onto?.blocked.remedies ?? []).startsWith(ways.join(' | '))).toBe(true);
    const open = (phase: string) => ({ key: 'ips.a', verb: 'create', phase }) as unknown as Intent;
    const move = { from: key('ips.a'), to: key('ips.b') };
    const [first] = waitingFor([open('accepted'), open('blocked')], move);
    expect(first?.blocked).toMatchObject({ verb: 'update', code: 'moved_in_flight', key: 'ips.b' });
    expect(resolveText(first?.blocked.remedies ?? [])).toBe('vdcsync apply');
    const [asked] = waitingFor([open('blocked')], move);
    expect(resolveText(asked?.blocked.remedies ?? [])).toBe('resolve ips.a first');
    expect(waitingFor([], move)).toEqual([]);
  });

  test.each<[string, object, readonly string[], readonly string[], string?]>([
    ['an earlier name without a binding', {}, [], [], 'b'],
    ['an earlier name with a binding', {}, ['servers.a'], []],
    ['an earlier name of which a part is bound', {}, ['servers.a.firewall'], []],
    ['an earlier name with an open write', {}, [], ['servers.a']],
    ['a bound name', {}, ['servers.b'], []],
    ['a name of its own', { named: true }, [], []],
    ['no earlier name', { moved: undefined }, [], []],
  ])('a new resource with %s', (_name, more, names, open, name) => {
    const entry = { key: 'servers.b', moved: 'servers.a', named: false, ...more };
    const { resources } = ownNames(file(entry), boundTo(...names), openOf(...open));
    expect(resources.map(({ value }) => value)).toEqual([name === undefined ? {} : { name }]);
  });

  const formerly = (...keys: string[]) =>
    new Map([[key('ips.b'), { key: 'ips.b', formerKeys: keys } as unknown as Binding]]);
  const numbered = (name: string) => {
    const kind = name.startsWith('ips') ? 'ip' : 'server';
    return new Map([[key(name), { key: name, kind, id: '6' } as unknown as Binding]]);
  };
  const ipA = (id: string, more: object = {}) => ({ key: 'ips.a', kind: 'ip', id, ...more });
  const inServer = { key: 'servers.a.x', parent: 'servers.a' };
  const [hadA, boundA, namedByD] = [formerly('ips.a'), boundTo('ips.a'), file('ips.d<ips.a')];
  const leftByD = file({ key: 'ips.d', moved: 'ips.a', managed: false });
  const twoHadA = new Map([...hadA, [key('ips.c'), { key: 'ips.c', formerKeys: ['ips.a'] } as never]]);
  const namesA = (id: string) => ({ key: 'ips.d', moved: 'ips.a', id });
  type Bindings = ReadonlyMap<ResourceKey, Binding>;
  const both = (some: Bindings, others: Bindings) => new Map([...some, ...others]);
  const withId6 = new Map(
    [...formerly('ips.a')].map(([name, each]) => [name, { ...each, id: '6' }] as const),
  );
  test.each<[string, Desired, ReadonlyMap<ResourceKey, Binding>, string?]>([
    ['takes it back', file('ips.a'), formerly('ips.a'), 'ips.b'],
    ['takes it back, as the latest name', file('ips.a'), formerly('ips.a', 'ips.z'), 'ips.b'],
    ['leaves it to its new entry', file('ips.a', 'ips.b'), formerly('ips.a')],
    ['leaves it to the entry that names it', file('ips.a', 'ips.c<ips.b'), formerly('ips.a')],
    ['never had it', file('ips.a'), formerly('ips.z')],
    ['is not managed', file({ key: 'ips.a', managed: false }), formerly('ips.a'), 'ips.b'],
    ['names another id', file(ipA('5')), formerly('ips.a')],
    ['names its id', file(ipA('6')), numbered('ips.b'), 'ips.b'],
    ['names the id of another kind', file({ key: 'isos.a', kind: 'iso', id: '6' }), numbered('ips.b')],
    ['names the id of no binding', file(ipA('7')), numbered('ips.b')],
    ['names its id, and has its server', file(ipA('6', inServer)), numbered('ips.b')],
    ['took its id back', file(ipA('6', { held: {} })), numbered('ips.b')],
    ['names its id beside its entry', file(ipA('6'), 'ips.b'), numbered('ips.b')],
    ['names the id of a retiring server', file({ ...ipA('6'), kind: 'server' }), numbered('servers.b~6')],
    ['names another key', file('ips.a<ips.y'), formerly('ips.a'), 'ips.y'],
    ['names an earlier key of it', namedByD, formerly('ips.z', 'ips.a'), 'ips.b'],
    ['names an earlier key of it, and has another', file('ips.d<ips.a'), formerly('ips.a', 'ips.d'), 'ips.b'],
    [
      'names an earlier key of it, beside a bound entry of another',
      file('ips.d<ips.z', 'ips.a'),
      both(formerly('ips.z', 'ips.a'), boundTo('ips.a')),
      'ips.b',
    ],
    ['names an id, and is bound', file(ipA('6')), both(numbered('ips.b'), boundTo('ips.a'))],
    ['is not managed, and names another id', file(ipA('5', { managed: false })), formerly('ips.a')],
    ['names an earlier key of it, and is not managed', leftByD, hadA, 'ips.b'],
    ['names an earlier key of it, and its id', file(namesA('6')), withId6, 'ips.b'],
    ['names an earlier key of it, and another id', file(namesA('5')), withId6, 'ips.a'],
    ['names an earlier key, beside its entry', file('ips.d<ips.a', 'ips.b'), formerly('ips.a'), 'ips.a'],
    ['names an earlier key of it, which has another resource', namedByD, both(hadA, boundA), 'ips.a'],
    ['names an earlier key of it, and is bound', namedByD, both(hadA, boundTo('ips.d')), 'ips.a'],
    ['names an earlier key of two resources', namedByD, twoHadA, 'ips.a'],
    ['is bound', file('ips.a'), both(formerly('ips.a'), boundTo('ips.a'))],
    ['finds a binding that was never renamed', file('ips.a'), boundTo('ips.b')],
  ])('an entry whose resource was renamed %s', (_name, desired, bindings, moved) => {
    const [entry] = withRenames(desired, bindings).resources;
    expect(entry?.moved).toBe(moved);
    // Neither `moved` nor an id states the others.
    const { moved: stated, id, managed } = desired.resources[0] ?? {};
    const isStated = stated !== undefined || (id !== undefined && managed !== false);
    expect(entry?.isInferred).toBe(moved === undefined || isStated ? undefined : true);
  });

  const namedX = new Map([[key('ips.b'), { key: 'ips.b', kind: 'ip', identity: { name: 'x' } } as never]]);
  test.each<[string, object, ReadonlyMap<ResourceKey, Binding>, string?]>([
    ['its earlier name', {}, formerly('ips.a')],
    ['an earlier key', { key: 'ips.d', moved: 'ips.a' }, formerly('ips.a'), 'ips.b'],
    ['its id', { id: '6' }, numbered('ips.b'), 'ips.b'],
    ['another id', { id: '7' }, numbered('ips.b')],
    ['its name', { name: 'x' }, namedX, 'ips.b'],
    ['another name', { name: 'y' }, namedX],
  ])('an entry that has expired takes over only a resource that it states: %s', (_name, more, bindings, moved) => {
    const expired = [{ key: 'ips.a', kind: 'ip', protect: true, ...more }];
    const desired = { ...file(), expired } as unknown as Desired;
    expect(withRenames(desired, bindings).expired?.[0]?.moved).toBe(moved);
    expect(withRenames(file(), bindings)).not.toHaveProperty('expired');
  });

  test('the renames that no apply has recorded lead from the bound key to the new one', () => {
    const of = (desired: Desired, bindings: ReadonlyMap<ResourceKey, Binding>) => [
      ...renamesOf(desired, bindings),
    ];
    expect(of(file('ips.a', 'ips.c<ips.z'), formerly('ips.a'))).toEqual([['ips.b', 'ips.a']]);
    expect(of(file('ips.c<ips.b'), formerly('ips.a'))).toEqual([['ips.b', 'ips.c']]);
    expect(of(file('ips.b', 'ips.c<ips.z'), formerly('ips.a'))).toEqual([]);
    expect(of(file('ips.c<ips.b'), both(formerly('ips.a'), boundTo('ips.c')))).toEqual([]);
  });

  test('an earlier key with an open write may have another resource', () => {
    const { resources } = withRenames(file('ips.d<ips.a'), formerly('ips.a'), openOf('ips.a'));
    expect(resources[0]?.moved).toBe('ips.a');
  });

  test('the entry of the earlier name gets the resource before an entry that names it', () => {
    const { resources } = withRenames(file('ips.d<ips.z', 'ips.a'), formerly('ips.z', 'ips.a'));
    expect(resources.map(({ moved }) => moved)).toEqual(['ips.z', 'ips.b']);
  });

  test('of two entries that had the resource, the later name takes it back', () => {
    const { resources } = withRenames(file('ips.a', 'ips.c'), formerly('ips.a', 'ips.c'));
    expect(resources.map(({ moved }) => moved)).toEqual([undefined, 'ips.b']);
  });
});

describe('src/engine/claims/moves.ts: the bindings after a move', () => {
  const binding = (name: string, formerKeys?: readonly string[]) =>
    [key(name), { key: name, id: name, ...(formerKeys && { formerKeys }) } as unknown as Binding] as const;
  const move = (from: string, to: string) => ({ from: key(from), to: key(to) });
  test.each<[string, readonly (readonly [ResourceKey, Binding])[], string, string, (readonly string[])?]>([
    ['has its earlier key', [binding('ips.a')], 'ips.a', 'ips.b', ['ips.a']],
    ['has all earlier keys', [binding('ips.a', ['ips.z'])], 'ips.a', 'ips.b', ['ips.z', 'ips.a']],
    ['does not have its own key', [binding('ips.a', ['ips.b'])], 'ips.a', 'ips.b', ['ips.a']],
    [
      'has none inside a server',
      [binding('servers.a.firewall', ['servers.z.firewall'])],
      'servers.a.firewall',
      'servers.b.firewall',
    ],
    ['has none if it retires', [binding('servers.a', ['servers.z'])], 'servers.a', 'servers.b~1'],
    [
      'keeps those of the key that it takes back',
      [binding('servers.b~1', ['servers.z']), binding('servers.b', ['servers.y'])],
      'servers.b~1',
      'servers.b',
      ['servers.y'],
    ],
    ['has none of an unbound key', [binding('servers.b~1', ['servers.z'])], 'servers.b~1', 'servers.b'],
  ])('a moved resource %s', (_name, bindings, from, to, formerKeys) => {
    const moved = movedBindings(new Map(bindings), [move(from, to)]);
    expect(moved.has(key(from))).toBe(false);
    const expected = { key: to, id: from, ...(formerKeys && { formerKeys }) };
    expect(moved.get(key(to))).toEqual(expected);
    expect(Object.keys(moved.get(key(to)) ?? {}).includes('formerKeys')).toBe(formerKeys !== undefined);
  });

  test('an inferred move marks the resource, unless a key showed the resource', () => {
    const inferred = { ...move('ips.a', 'ips.b'), inferred: true } as const;
    const [from, its] = binding('ips.a');
    const markOf = (moved: Move, more: Partial<Binding> = {}) =>
      movedBindings(new Map([[from, { ...its, ...more }]]), [moved]).get(key('ips.b'))?.recovered;
    expect(markOf(inferred)).toBe('taken');
    expect(markOf(inferred, { recovered: 'found' })).toBe('found');
    expect(markOf(move('ips.a', 'ips.b'))).toBeUndefined();
  });

  test('an address that becomes one of a server has that server', () => {
    const [to, server] = [key('servers.a.public_ipv4'), binding('servers.a')];
    const parentOf = (...bindings: (readonly [ResourceKey, Binding])[]) =>
      movedBindings(new Map(bindings), [move('ips.v', to)]).get(to)?.parentId;
    const [of, address] = binding('ips.v');
    expect(parentOf(server, [of, address])).toBe('servers.a');
    expect(parentOf(server, [of, { ...address, parentId: '7' }])).toBe('7');
    expect(
      movedBindings(new Map([[of, address]]), [move('ips.v', 'ips.w')]).get(key('ips.w')),
    ).not.toHaveProperty('parentId');
  });

  test('a move without a binding changes nothing, and is not recorded', () => {
    expect([...movedBindings(new Map(), [move('ips.a', 'ips.b')])]).toEqual([]);
    expect(moveChanges([move('ips.a', 'ips.b')], new Map())).toEqual([]);
    const bindings = new Map([binding('ips.b')]);
    expect(moveChanges([move('ips.a', 'ips.b')], bindings)).toEqual([
      { type: 'release', key: 'ips.a', gone: false, reason: 'moved to ips.b' },
      { type: 'bind', binding: bindings.get(key('ips.b')) },
    ]);
  });

  test.each<
    [
      string,
      readonly (readonly [string, string])[],
      readonly (readonly [string, string])[],
      readonly string[],
    ]
  >([
    ['one after another', [['a', 'b']], [['b', 'c']], ['a > c']],
    ['of two keys', [['a', 'b']], [['x', 'y']], ['a > b', 'x > y']],
    ['there and back', [['a', 'b']], [['b', 'a']], []],
  ])('moves %s are one step each', (_name, first, then, expected) => {
    const moves = (pairs: readonly (readonly [string, string])[]) =>
      pairs.map(([from, to]) => move(from, to));
    expect(composed(moves(first), moves(then)).map(arrow)).toEqual(expected);
  });
});
