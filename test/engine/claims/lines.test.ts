import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/core/claims.ts';
import type { Desired } from '../../../src/core/desired.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import { Lines, withHeldObjects } from '../../../src/engine/claims/line.ts';

const key = (name: string) => name as ResourceKey;
const bound = (name: string, ...formerKeys: string[]) =>
  ({ key: name, id: name, ...(formerKeys.length > 0 && { formerKeys }) }) as unknown as Binding;
const claim = (id: string, holder: object, more: object = {}) =>
  ({ kind: 'ip', id, identity: { address: `a${id}` }, holder, at: 1, ...more }) as Claim;
const released = (formerKey: string, ...formerKeys: string[]) => ({
  is: 'released',
  by: 'file',
  formerKey,
  ...(formerKeys.length > 0 && { formerKeys }),
});
const found = (name: string, scope?: string) => ({ is: 'found', key: name, ...(scope && { scope }) });
const entry = (name: string, more: object = {}) => ({
  key: name,
  kind: 'ip',
  managed: true,
  value: {},
  ...more,
});

const ignored = { is: 'ignored', by: 'operator', formerKey: 'ips.a' };
/** Claims of one resource each, `1` the first. */
const claims = (...holders: readonly object[]) => ({
  claims: holders.map((holder, at) => claim(`${at + 1}`, holder)),
});

interface Given {
  readonly entries?: readonly object[];
  readonly bindings?: readonly Binding[];
  readonly claims?: readonly Claim[];
  readonly intents?: readonly object[];
  readonly scope?: string;
}

function linesOf({ entries = [entry('ips.a')], bindings = [], claims = [], intents, scope }: Given) {
  return new Lines({
    desired: { resources: entries, ...(scope && { scope }) } as unknown as Desired,
    bindings: new Map(bindings.map((each) => [each.key, each])),
    claims,
    ...(intents && { intents: intents as readonly Intent[] }),
  });
}

describe('src/engine/claims/line.ts: the keys of a line', () => {
  const a = { key: key('ips.a') };
  const moved = { ...a, moved: key('ips.b') };
  const two = { entries: [entry('ips.a'), entry('ips.b')] };
  const bind = (...of: Parameters<typeof bound>) => ({ bindings: [bound(...of)] });
  const chain = { bindings: [bound('ips.c', 'ips.b'), bound('ips.d', 'ips.c')] };
  const opens = (its: object) => ({ intents: [{ key: 'ips.a', entry: its }] });
  test.each<[string, Given, { key: ResourceKey; moved?: ResourceKey }, readonly string[]]>([
    ['its own key', {}, a, []],
    ['the key that it names', {}, moved, ['ips.b']],
    ['the earlier keys of its binding', bind('ips.a', 'ips.b', 'ips.c'), a, ['ips.b', 'ips.c']],
    ['the key that its resource has now', bind('ips.c', 'ips.a'), a, ['ips.c']],
    ['no key of another resource', bind('ips.c', 'ips.d'), a, []],
    ['keys that follow from each other', chain, moved, ['ips.b', 'ips.c', 'ips.d']],
    ['the keys of a released resource', claims(released('ips.b', 'ips.a')), a, ['ips.b']],
    ['no further key of a found resource', claims(found('ips.a')), a, []],
    ['the key that was asked for it', claims({ ...found('ips.b'), askedFor: 'ips.a' }), a, ['ips.b']],
    ['no key of an ignored resource', claims({ ...ignored, formerKeys: ['ips.b'] }), a, []],
    ['the key that an open creation moved from', opens({ moved: 'ips.b' }), a, ['ips.b']],
    ['no key of another open write', { intents: [{ key: 'ips.a', entry: {} }, { key: 'ips.a' }] }, a, []],
    ['no key of another entry', { ...two, ...bind('ips.z', 'ips.b', 'ips.a') }, a, ['ips.z']],
    ['nothing beyond another entry', { ...two, ...bind('ips.z', 'ips.b') }, moved, ['ips.b']],
    ['nothing of a resource of another entry', { ...two, ...bind('ips.b', 'ips.a', 'ips.c') }, a, []],
  ])('are %s', (_name, given, of, further) => {
    expect([...linesOf(given).of(of)]).toEqual(['ips.a', ...further]);
  });
});

describe('src/engine/claims/line.ts: the object that an entry takes back', () => {
  test('a server that was released while it retired', () => {
    const entries = [entry('servers.a', { kind: 'server' })];
    const claims = [claim('1', released('servers.a~1'), { kind: 'server' })];
    expect(linesOf({ entries, claims }).returning().get(key('servers.a'))?.id).toBe('1');
  });

  const one = (given: Given) => linesOf(given).returning().get(key('ips.a'))?.id;
  const its = claims(released('ips.a'));
  const renamed = { entries: [entry('ips.a', { moved: 'ips.b' })] };
  const releasedAt = (id: string, at: number, from = 'ips.a') => claim(id, released(from), { at });
  const naming = (more: object) => [entry('ips.a'), entry('ips.b', { id: '1', ...more })];
  const [one1, one2] = [claim('1', released('ips.a')), claim('2', released('ips.a'))];
  const answered = [releasedAt('1', 9), claim('2', found('ips.a'))];
  test.each<[string, Given, string | undefined]>([
    ['a released one', its, '1'],
    ['one that its key was answered with', claims(found('ips.a')), '1'],
    ['one of another key', claims(released('ips.b')), undefined],
    ['one of an earlier key', { ...renamed, ...claims(released('ips.b')) }, '1'],
    ['one that an earlier key had before', { ...renamed, ...claims(released('ips.c', 'ips.b')) }, '1'],
    ['an ignored one', claims(ignored), undefined],
    ['one of another kind', { claims: [claim('1', released('ips.a'), { kind: 'server' })] }, undefined],
    ['one of another scope', claims(found('ips.a', 'b')), undefined],
    ['no address of a server that retired', claims(released('ips.a~1')), undefined],
    ['one of the same scope', { ...claims(found('ips.a', 'b')), scope: 'b' }, '1'],
    ['a released one, in a scope', { ...its, scope: 'b' }, '1'],
    ['one beside a binding', { ...its, bindings: [bound('ips.a')] }, undefined],
    ['one for an entry that is not managed', { ...its, entries: [entry('ips.a', { managed: false })] }, '1'],
    ['one for an entry that names an id', { ...its, entries: [entry('ips.a', { id: '5' })] }, undefined],
    ['one for a part of a server', { ...its, entries: [entry('ips.a', { parent: 'servers.x' })] }, undefined],
    ['a found one that another entry names', { ...claims(found('ips.a')), entries: naming({}) }, undefined],
    ['a released one that another entry names', { ...its, entries: naming({}) }, '1'],
    [
      'one whose id another entry has taken back',
      { ...claims(found('ips.a')), entries: naming({ held: {} }) },
      '1',
    ],
    ['one whose id names another kind', { ...claims(found('ips.a')), entries: naming({ kind: 'iso' }) }, '1'],
    ['one beside one that an entry names', { ...claims(found('ips.a')), entries: naming({ id: '9' }) }, '1'],
    ['an answer before a release', { claims: answered }, '2'],
    [
      'a release of the own key before a later one',
      { ...renamed, claims: [releasedAt('1', 9, 'ips.b'), one2] },
      '2',
    ],
    ['the latest', { claims: [releasedAt('1', 2), releasedAt('2', 10)] }, '2'],
    ['the first by name of the same moment', { claims: [one2, one1] }, '1'],
  ])('%s', (_name, given, id) => {
    expect(one(given)).toBe(id);
  });

  test('belongs to one entry alone, and each entry takes one object back', () => {
    const entries = [entry('ips.a'), entry('ips.b', { moved: 'ips.z' }), entry('ips.c', { moved: 'ips.z' })];
    const claims = [claim('1', released('ips.z')), claim('2', released('ips.b'))];
    const lines = linesOf({ entries, claims });
    expect([...lines.returning()].map(([name, { id }]) => `${name} ${id}`)).toEqual(['ips.b 2', 'ips.c 1']);
    expect(lines.returning()).toBe(lines.returning());
    const both = linesOf({
      entries: [entry('ips.b', { moved: 'ips.z' }), entry('ips.c', { moved: 'ips.z' })],
      claims: [claim('1', released('ips.z'))],
    });
    expect([...both.returning()].map(([name, { id }]) => `${name} ${id}`)).toEqual(['ips.b 1']);
  });

  test('is in the spec from then on', () => {
    const desired = { resources: [entry('ips.a'), entry('ips.b')] } as unknown as Desired;
    const claims = (...each: Claim[]) => new Map(each.map((of) => [`${of.kind} ${of.id}`, of]));
    expect(withHeldObjects(desired, new Map(), new Map())).toBe(desired);
    const held = withHeldObjects(desired, claims(claim('1', found('ips.a'))), new Map());
    const taken = { ...entry('ips.a'), id: '1', held: { by: 'found', identity: { address: 'a1' } } };
    expect(held).toEqual({ resources: [taken, entry('ips.b')] });
    const applied = { ...released('ips.b'), applied: { entry: 1 } };
    const back = withHeldObjects(desired, claims(claim('2', applied)), new Map()).resources[1];
    expect(back).toMatchObject({ id: '2', held: { by: 'released', applied: { entry: 1 } } });
    const plain = withHeldObjects(desired, claims(claim('2', released('ips.b'))), new Map()).resources[1];
    expect(Object.keys(plain?.held ?? {})).toEqual(['by', 'identity']);
    const answered = withHeldObjects(
      desired,
      claims(claim('2', { ...found('ips.b'), applied: 1 })),
      new Map(),
    ).resources[1];
    expect(Object.keys(answered?.held ?? {})).toEqual(['by', 'identity']);
  });
});
