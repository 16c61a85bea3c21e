import { describe, expect, test } from 'vitest';
import { attribute, type Unmanaged } from '../../src/core/attribute.ts';
import type { Claim } from '../../src/core/claims.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { WorldParts } from '../../src/core/kind.ts';
import { resolveText } from '../../src/core/remedy.ts';
import type { ServerId } from '../../src/core/resources.ts';
import type { Binding, Intent } from '../../src/core/state.ts';
import {
  described,
  heldAddresses,
  ignoring,
  isClaimedAlone,
  isNone,
  isQuiet,
  matches,
  notOurs,
  observedInterfaces,
  perhapsAbsent,
  type Register,
  unlisted,
} from '../../src/plan/unmanaged.ts';
import { load, sliders } from '../support/rig.ts';
import { bound, worldOf } from './support.ts';

const address = (last: number, server: number | null = null) =>
  ({
    id: last,
    address: `203.0.113.${last}`,
    server_id: server,
  }) as unknown as Unmanaged['addresses'][number];
const unmanaged = (servers: readonly number[], addresses: Unmanaged['addresses'] = []): Unmanaged => ({
  servers: servers as readonly ServerId[],
  addresses,
});

describe('src/plan/unmanaged.ts: unmanaged objects in a message', () => {
  test.each([
    [unmanaged([2001]), 'server 2001'],
    [
      unmanaged([2001], [address(10, 2001), address(11)]),
      'server 2001 (203.0.113.10) and address 203.0.113.11',
    ],
    [unmanaged([2001, 2002], [address(11)]), 'servers 2001 and 2002, and address 203.0.113.11'],
    [
      unmanaged([2001, 2002, 2003], [address(10, 2002), address(11), address(12)]),
      'servers 2001, 2002 (203.0.113.10) and 2003, and addresses 203.0.113.11 and 203.0.113.12',
    ],
  ])('each noun occurs once', (found, text) => {
    expect(described(found)).toBe(text);
  });
});

const claim = (kind: string, id: string, holder: object, identity: object = {}) =>
  ({ kind, id, identity, holder, at: 1 }) as Claim;
const byOperator = { is: 'ignored', by: 'operator' };

interface Given {
  readonly spec?: string;
  readonly parts?: Partial<WorldParts>;
  readonly bindings?: readonly Binding[];
  readonly claims?: readonly Claim[];
  readonly isNew?: boolean;
}

function known({ spec = '', parts = {}, bindings = [], claims = [], isNew = false }: Given) {
  const desired = load(spec);
  const left = bindings.filter(({ key }) => desired.resources.every((each) => each.key !== key));
  const world = worldOf(desired, parts, bindings);
  for (const binding of left)
    (world.subjects as Map<ResourceKey, object>).set(binding.key, {
      key: binding.key,
      kind: binding.kind,
      binding,
    });
  const register = { ...attribute(world, { claims, intents: [] }), claims, isNew } as unknown as Register;
  return { world, register };
}

const web = (address: string, more = '') => `ips: {a: {}}\nservers: {web: {${sliders}${address}${more}}}\n`;
const created = { body: {}, entry: {} };
const named = { body: {}, entry: { public_ipv4: { ip: 'a' } } };
const ofWeb = (applied: unknown) => [bound('servers.web', 'server', '1', { applied })];
const reuse = ', public_ipv4: {reuse: true}';
const fresh = ', public_ipv4: {new: true}';
const left = ', id: 1, managed: false';
const ofTen = claim('ip', '10', byOperator, { address: '203.0.113.10' });
const entry = ', public_ipv4: {ip: a}';

describe('src/plan/unmanaged.ts: addresses of the servers of the spec', () => {
  const released = { is: 'released', by: 'file', formerKey: 'servers.web' };
  const releasedWeb = [
    claim('server', '1', released),
    claim('ip', '10', released, { address: '203.0.113.10' }),
  ];
  const its = { ips: [address(10, 1), address(11, 2), address(12)] };
  test.each<[string, Given, boolean]>([
    ['a created server that names one', { spec: web(entry), bindings: ofWeb(created) }, false],
    ['a created server that named one', { spec: web(entry), bindings: ofWeb(named) }, true],
    ['a server that the spec names by id', { spec: web(reuse, ', id: 1') }, true],
    ['an adopted server whose entry asks for none', { spec: web(''), bindings: ofWeb(null) }, true],
    ['a created server whose entry asks for none', { spec: web(''), bindings: ofWeb(created) }, false],
    ['a created server whose entry asks for none any more', { spec: web(''), bindings: ofWeb(named) }, false],
    ['a server that has left the spec of a new state', { bindings: ofWeb(null), isNew: true }, true],
    ['a released server of a new state', { spec: web('', left), isNew: true }, true],
    ['a managed server of a new state', { spec: web(fresh, ', id: 1'), isNew: true }, false],
    ['a released one of a new state', { spec: web('', left), isNew: true, claims: releasedWeb }, true],
    ['the same server, managed', { spec: web(reuse, ', id: 1'), claims: releasedWeb }, false],
  ])('%s', (_name, given, isHeld) => {
    const { register, world } = known({ ...given, parts: its });
    expect(heldAddresses(register, world).map(({ id }) => Number(id))).toEqual(isHeld ? [10] : []);
  });

  const held = { ips: [address(10, 2), address(11)] };
  test.each<[string, readonly Claim[], string, boolean]>([
    ['a claimed free address', [claim('ip', '11', byOperator, { address: '203.0.113.11' })], '11', true],
    ['an address that is gone', [ofTen], '19', false],
  ])('%s is claimed alone: %#', (_name, claims, id, isAlone) => {
    const { register, world } = known({ parts: held, claims });
    expect(isClaimedAlone(world, register, id)).toBe(isAlone);
  });

  test('only the operator knows about a resource', () => {
    const quiet = [
      byOperator,
      { is: 'ignored', by: 'file' },
      { is: 'released', by: 'operator' },
      { is: 'unmanaged' },
    ];
    expect(quiet.map((each) => isQuiet(each as never))).toEqual([true, false, false, false]);
  });
});

describe('src/plan/unmanaged.ts: servers that only a network counts', () => {
  const card = (network: number) => ({ network_id: network }) as never;
  const networks = (...counts: readonly number[]) =>
    counts.map((server_count, at) => ({ id: at + 1, name: `n${at + 1}`, server_count })) as never;
  test.each<[string, Partial<WorldParts>, object?]>([
    ['no more servers', { networks: networks(1) }],
    ['the most of two networks', { networks: networks(2, 3) }, { network: 'n2', servers: 3 }],
    ['servers that are listed', { networks: networks(2), servers: [{ id: 1, name: 'web' }] as never }],
  ])('%s', (_name, parts, expected) => {
    const observed = new Map([['servers.web', { id: '1', interfaces: [card(1)] }]]) as never;
    const { world } = known({ spec: web(''), bindings: ofWeb(null), parts: { observed, ...parts } });
    expect(unlisted(world, observedInterfaces(world))).toEqual(expected);
  });

  test('only servers whose network interfaces were read are known', () => {
    const interfaces = (of: object) => {
      const { world } = known({
        spec: web(''),
        parts: { observed: new Map([['servers.web', of]]) as never },
      });
      return [...observedInterfaces(world)];
    };
    expect(interfaces({ id: '1', interfaces: [] })).toEqual([['1', []]]);
    expect([interfaces({ id: '1' }), interfaces({ interfaces: [] })]).toEqual([[], []]);
    expect([...observedInterfaces(known({ spec: web('') }).world)]).toEqual([]);
  });
});

describe('src/plan/unmanaged.ts: the remedies', () => {
  const two = unmanaged([2001], [address(10, 2001), address(11), address(12, 2002)]);
  test('the command names each server, and each other address', () => {
    expect(resolveText([ignoring(two)])).toBe('vdcsync ignore 2001 203.0.113.11 203.0.113.12');
    expect(notOurs(unmanaged([2001]))).toBe('if server 2001 does not belong to this spec');
    expect(notOurs(two)).toMatch(/^if server 2001 \(.*\), and addresses .* do not belong to this spec$/);
    const four = unmanaged([2001, 2002, 2003], [address(10, 2001), address(11)]);
    expect(notOurs(four)).toBe('if these 4 resources do not belong to this spec');
    expect([
      isNone(unmanaged([])),
      isNone(unmanaged([1])),
      isNone(unmanaged([], [address(1)])),
      isNone(unmanaged([1], [address(1)])),
    ]).toEqual([true, false, false, false]);
  });

  test('a creation that was declared absent may have made one of them', () => {
    const absent = (kind: string, preimage: object, more: object = {}) =>
      ({ key: `${kind}s.x`, kind, preimage, closedAt: 86_400_000, ...more }) as unknown as Intent;
    const ofServer = '2001 may be servers.x, which was declared absent on 1970-01-02 (`resolve --absent`)';
    const both = unmanaged([2001, 2002], [address(10), address(11)]);
    expect(perhapsAbsent(both, [absent('server', { servers: ['2002'] })])).toBe(ofServer);
    expect(perhapsAbsent(both, [absent('server', { servers: ['2001', '2002'] })])).toBe('');
    const ips = absent('ip', { ips: [] }, { closedAt: undefined });
    expect(perhapsAbsent(both, [absent('server', { servers: ['2002'] }), ips])).toBe(
      `${ofServer}; 203.0.113.10 or 203.0.113.11 may be ips.x, which was declared absent on 1970-01-01 (\`resolve --absent\`)`,
    );
    expect(perhapsAbsent(both, [absent('ip', { ips: ['10'] })])).toMatch(/^203\.0\.113\.11 may be/);
  });

  const buyers = (given: Given, ...keys: string[]) => {
    const { world, register } = known(given);
    const subjects = keys.flatMap((key) => world.subjects.get(key as ResourceKey) ?? []);
    return Object.fromEntries(matches(subjects, register, world));
  };
  const listed = (...names: string[]) => ({
    parts: { servers: names.map((name, at) => ({ id: 2001 + at, name })) as never },
  });
  const held = { parts: { ips: [address(10, 2001)] } };
  const oneBare = { parts: { ...listed('x', 'web').parts, ips: [address(10, 2002)] } };
  const ofA = {
    parts: { ips: [address(10, 2001), address(11, 2002)] },
    bindings: [bound('ips.a', 'ip', '10')],
  };
  const oneId = { parts: { ips: [address(2001, 2001)] } };
  const two2 = `ips: {a: {}, b: {}}\nservers: {web: {${sliders}}, db: {${sliders}, public_ipv4: {ip: a}}, pub: {${sliders}, public_ipv4: {new: true}}}\n`;
  test.each<[string, Given, readonly string[], object]>([
    ['two addresses', { parts: { ips: [address(10), address(11)] } }, ['ips.a'], {}],
    ['a server of the name', listed('x', ' web '), ['servers.web'], { 'servers.web': '2002' }],
    ['a server of the name, and one without an address', oneBare, ['servers.web'], { 'servers.web': '2002' }],
    ['a server without an address', listed('x'), ['servers.web'], { 'servers.web': '2001' }],
    ['a server with an address', held, ['servers.web'], {}],
    ['a server with an address, for an entry with one', held, ['servers.pub'], { 'servers.pub': '2001' }],
    ['a server that holds the named address', ofA, ['servers.db'], { 'servers.db': '2001' }],
    ['a server and an address', held, ['servers.pub', 'ips.a'], { 'servers.pub': '2001', 'ips.a': '10' }],
    [
      'a server and an address with one id',
      oneId,
      ['servers.pub', 'ips.a'],
      { 'servers.pub': '2001', 'ips.a': '2001' },
    ],
    ['one server for two entries', held, ['servers.pub', 'servers.db'], {}],
    ['a server that no list names', held, ['servers.db'], { 'servers.db': '2001' }],
  ])('the object that an entry may describe: %s', (_name, given, keys, expected) => {
    expect(buyers({ spec: two2, ...given }, ...keys)).toStrictEqual(expected);
  });
});
