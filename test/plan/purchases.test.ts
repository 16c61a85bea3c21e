import { describe, expect, test } from 'vitest';
import { attribute } from '../../src/core/attribute.ts';
import type { Claim } from '../../src/core/claims.ts';
import { type ResourceKey, takeApart } from '../../src/core/keys.ts';
import type { WorldParts } from '../../src/core/kind.ts';
import { resolveText } from '../../src/core/remedy.ts';
import type { Binding, Intent } from '../../src/core/state.ts';
import type { Draft } from '../../src/plan/draft.ts';
import {
  besideConflict,
  besideUnidentified,
  perhapsEarlier,
  takenBefore,
  unidentifiedWarnings,
  unlistedServers,
} from '../../src/plan/lost-state.ts';
import type { GuardInput, Objection } from '../../src/plan/objections.ts';
import {
  besideUnresolved,
  confusableWith,
  earlierOpen,
  lineOpen,
  releasedAddress,
  unmanaged,
} from '../../src/plan/purchases.ts';
import { kinds } from '../../src/reconcilers/registry.ts';
import { load, sliders } from '../support/rig.ts';
import { asLines, Texts } from '../support/texts.ts';
import { bound, worldOf } from './support.ts';

const file = (settings = '', address = '{new: true}') => `settings: {${settings}}
networks: {n: {cidr: 10.1.0.0/24}}
isos: {i: {url: "https://mirror.example.com/a.iso"}}
ips: {a: {}, b: {}}
server_images: {golden: {server: web}}
servers: {web: {${sliders}, public_ipv4: ${address}}, bare: {${sliders}}, any: {${sliders}, public_ipv4: {reuse: true}}, named: {${sliders}, public_ipv4: {ip: a}}}
`;
const ip = (id: number, server: number | null = null) =>
  ({ id, address: `a${id}`, server_id: server }) as never;
const claim = (kind: string, id: string, holder: object) =>
  ({ kind, id, identity: {}, holder, at: 1 }) as Claim;

interface Given {
  readonly settings?: string;
  readonly parts?: Partial<WorldParts>;
  readonly bindings?: readonly Binding[];
  readonly claims?: readonly Claim[];
  readonly open?: readonly Intent[];
  readonly isNew?: boolean;
  readonly register?: object;
  readonly input?: Partial<GuardInput>;
  readonly match?: string;
  /** Other fields of the entry. */
  readonly entry?: object;
  /** Other fields of other entries, by their keys. */
  readonly entries?: Readonly<Record<string, object>>;
  readonly drop?: readonly string[];
}

/** The objection of the guard to the draft of the key. */
function ask(
  guard: (draft: Draft, input: GuardInput, facts: never) => Objection | undefined,
  key: string,
  { settings, parts = {}, bindings = [], claims = [], open = [], isNew = false, ...more }: Given = {},
  verdict: object = { verdict: 'create' },
) {
  const desired = load(file(settings));
  const resources = desired.resources
    .filter((each) => !(more.drop ?? []).includes(each.key))
    .map((each) => ({ ...each, ...(each.key === key ? more.entry : more.entries?.[each.key]) }));
  const world = worldOf({ ...desired, resources } as never, parts, bindings);
  // A binding without an entry has a subject too.
  const subjects = world.subjects as Map<ResourceKey, object>;
  for (const binding of bindings)
    if (!subjects.has(binding.key))
      subjects.set(binding.key, { key: binding.key, kind: binding.kind, binding });
  const register = {
    ...attribute(world, { claims, intents: open }),
    ...{ claims, isNew, declaredAbsent: [], answeredElsewhere: new Map(), held: () => undefined },
    line: (of: { key: ResourceKey }) => new Set([of.key]),
    ...more.register,
  };
  const subject = world.subjects.get(key as ResourceKey);
  const kind = subject && kinds.get(subject.kind);
  const draft = { subject, kind, diff: { verdict } } as unknown as Draft;
  const input = {
    ...{ kinds, openIntents: open, world, register, destroy: false, deletedBefore: 0, now: 1 },
    ...more.input,
  };
  const matches = () => new Map(more.match === undefined ? [] : [[key, more.match]]);
  const found = guard(
    draft,
    input as unknown as GuardInput,
    { matches, movedFromUnknown: () => [] } as never,
  );
  return found && `${found.code ?? ''} ${found.reason} → ${resolveText(found.remedies)}`;
}

/** Objections of the guard of the line, with their remedies. */
const texts = new Texts(import.meta.dirname, 'purchases.txt');
const linesOf = (objection: string | undefined) => objection && asLines(objection);

/** Each creation is the second half of a replacement. */
const secondHalf = { input: { begun: { get: () => true } as never } };
const has = (...of: Parameters<typeof bound>) => ({ bindings: [bound(...of)] });
const free = { ips: [ip(51)] };
const theirs = { ips: [ip(51, 2001)] };

describe('src/plan/purchases.ts: unmanaged resources', () => {
  const both = [bound('ips.a', 'ip', '1'), bound('ips.b', 'ip', '2')];
  test.each<[string, string, Given, boolean, object?]>([
    ['a server in an empty project with a new state', 'servers.web', { isNew: true }, false],
    ['an update of a server', 'servers.web', { parts: theirs }, false, { verdict: 'update' }],
    ['a server beside a free address', 'servers.web', { parts: free }, false],
    ['a server that takes any address beside a free one', 'servers.any', { parts: free }, true],
    ['a server that takes any, and no entry waits', 'servers.any', { parts: free, bindings: both }, false],
    ['a replacement', 'servers.web', { parts: theirs }, true, { verdict: 'replace' }],
    ['a replacement of a network', 'networks.n', { parts: theirs }, false, { verdict: 'replace' }],
    ['the end of a replacement', 'servers.web', { parts: theirs, ...secondHalf }, false],
  ])('%s', (_name, key, given, isBlocked, verdict) => {
    expect(ask(unmanaged, key, given, verdict) !== undefined).toBe(isBlocked);
  });

  const more =
    'vdcsync ignore 2001 (if server 2001 (a51) does not belong to this spec) | write `unmanaged: ignore` under `settings` (if no unmanaged resource belongs to this spec: vdcsync then ignores all of them, and creates new ones)';
  test('the remedies name the object that the entry may describe', () => {
    const known =
      'this state did not create server 2001 (a51). Another copy of the state may have created it; creating one more could be a duplicate';
    const adopt = (id: string, when: string) => `vdcsync adopt servers.web ${id} (if servers.web ${when})`;
    const unknown = adopt('ID', 'already exists: ID is its id in the client area');
    expect(ask(unmanaged, 'servers.web', { parts: theirs })).toBe(` ${known} → ${unknown} | ${more}`);
    expect(ask(unmanaged, 'servers.web', { parts: theirs, match: '2001' })).toBe(
      ` ${known} → ${adopt('2001', 'is server 2001')} | ${more}`,
    );
    const address = ask(unmanaged, 'ips.a', { parts: free, match: '51' });
    expect(address).toContain(
      'vdcsync adopt ips.a 51 (if ips.a is address a51 (id 51)) | vdcsync ignore a51',
    );
    expect(ask(unmanaged, 'ips.a', { parts: free })).toContain(
      'adopt ips.a ID (if ips.a already exists: ID is its id or the address)',
    );
  });

  test('an address names the servers that wait for it, and that the only unmanaged server may be', () => {
    const waiting = { parts: { ips: [ip(51, 2001), ip(52)] } };
    const named = 'vdcsync adopt servers.named 2001 (if server 2001 is servers.named)';
    const bare = 'vdcsync adopt servers.bare';
    const asked = (given: Given, key = 'ips.a') => ask(unmanaged, key, given) ?? '';
    // The free address is in the way of the server, so that its creation is blocked.
    expect(asked(waiting)).toContain(named);
    expect(asked(waiting)).not.toContain(bare);
    expect(asked({ parts: theirs })).not.toContain(named);
    expect(asked({ parts: { ips: [ip(51, 2001), ip(52), ip(53, 2002)] } })).not.toContain(named);
    expect(asked({ parts: free })).not.toContain('servers.');
    expect(asked(waiting, 'servers.web')).not.toContain(named);
    expect(asked({ ...waiting, bindings: [bound('servers.named', 'server', '7')] })).not.toContain(named);
    expect(asked({ ...waiting, entries: { 'servers.named': { managed: false } } })).not.toContain(named);
    expect(asked({ ...waiting, entries: { 'servers.named': { id: '9' } } })).not.toContain(named);
    expect(asked({ ...waiting, bindings: [bound('servers.left', 'server', '7')] })).toContain(named);
    const opened = (key: string) => [{ key, verb: 'create' }] as unknown as readonly Intent[];
    expect(asked({ ...waiting, input: { openIntents: opened('servers.web') } })).toContain(named);
    expect(asked({ ...waiting, input: { openIntents: opened('servers.named') } })).not.toContain(named);
  });

  const list = 'unless the API profile has `list_servers`';
  test.each<[string, string, Given, boolean]>([
    ['a server without an address', 'servers.bare', { parts: theirs, isNew: true }, true],
    ['a server with an address', 'servers.web', { parts: theirs, isNew: true }, false],
    ['a server that is listed', 'servers.bare', { parts: { ...theirs, servers: [] }, isNew: true }, false],
  ])('a new state reports the servers that no read shows: %s', (_name, key, given, says) => {
    const text = ask(unmanaged, key, given);
    expect(text).toMatch(/^ the state is new, and the project already has /);
    expect(text?.includes(list)).toBe(says);
    expect(text).toMatch(says ? /has `list_servers` → / : /could be a duplicate → /);
  });

  const unlisted = (servers: number) => ({ isNew: true, register: { unlisted: { network: 'n', servers } } });
  test.each<[string, Given, RegExp?]>([
    ['servers.bare', unlisted(1), /counts 1 server without a known address\. It may be servers\.bare →/],
    [
      'servers.web',
      unlisted(2),
      /counts 2 servers without a known address\. One of them may be servers\.web\. Its address may have been detached/,
    ],
    ['servers.bare', { isNew: true }],
    ['servers.bare', { ...unlisted(1), settings: 'unmanaged: ignore' }],
  ])('%s next to servers that only a network counts (%#)', (key, given, text) => {
    const found = ask(unlistedServers, key, given);
    if (text === undefined) return expect(found).toBeUndefined();
    expect(found).toMatch(text);
    expect(found).toContain(`→ vdcsync adopt ${key} ID (if ${key} already exists`);
    expect(found).toContain(
      '| vdcsync ignore ID (if that server does not belong to this spec) | write `unmanaged: ignore`',
    );
  });
});

describe('src/plan/purchases.ts: the line of an entry', () => {
  const line = (...keys: readonly string[]) => ({ line: () => new Set(keys) });
  const open = (key: string, more: object = {}) =>
    ({ key, kind: 'ip', verb: 'create', phase: 'sending', preimage: {}, ...more }) as unknown as Intent;
  const old = { register: line('ips.a', 'ips.old') };
  const held = (is: string) => ({ ...line('ips.a'), held: () => claim('ip', '7', { is }) });
  const boundOld = has('ips.old', 'ip', '7');
  const isFound = { register: held('found') };
  const found = (id?: string) => ({ held: { by: 'found' }, ...(id && { id }) });
  const ofAnother = { register: { answeredElsewhere: new Map([['ips.a', bound('ips.b', 'ip', '7')]]) } };
  const taker = bound('ips.b', 'ip', '7', { recovered: 'taken' });
  const ofTaker = { register: { answeredElsewhere: new Map([['ips.a', taker]]) } };
  const ignored = claim('ip', '7', { is: 'ignored', by: 'operator' });
  const ofIgnored = { register: { answeredElsewhere: new Map([['ips.a', ignored]]) } };
  const ofFound = {
    register: { answeredElsewhere: new Map([['ips.a', claim('ip', '7', { is: 'found', key: 'ips.b' })]]) },
  };
  const ignoring = { settings: 'unmanaged: ignore' };
  const adoption = { verdict: 'adopt', target: '7' };
  const [replacing, bare, network] = [{ verdict: 'replace' }, { key: 'servers.bare' }, { key: 'networks.n' }];
  const [itsA, retires] = [bound('ips.a', 'ip', '1'), has('servers.bare~7', 'server', '7')];
  const retiring = { ...bare, register: line('servers.bare~7'), ...retires };
  const deleting = { open: [open('servers.bare~7', { kind: 'server', verb: 'delete' })] };
  const both = { bindings: [...boundOld.bindings, itsA] };
  const older = { register: line('ips.a', 'ips.older', 'ips.old') };
  const opening = { ...old, open: [open('ips.old')], bindings: [itsA] };
  const foundNetwork = { register: { held: () => claim('network', '7', { is: 'found' }) } };
  test.each<[string, Given & { readonly key?: string }, ('held' | 'passes')?, object?]>([
    ['an earlier key that is asked about', { ...old, open: [open('ips.old', { phase: 'blocked' })] }, 'held'],
    ['an earlier key that is bound, where the resource is gone', { ...old, ...both }],
    ['an earlier key of two that is bound', { ...older, ...boundOld }, 'held'],
    ['a retiring server of its own', retiring, 'held'],
    ['a retiring server of its own that is being deleted', { ...retiring, ...deleting }, 'held'],
    ['an open write of its own', { register: line('ips.a'), open: [open('ips.a')] }],
    ['an open write of another key', { ...old, open: [open('ips.other')] }],
    ['an update', { ...old, open: [open('ips.old')] }, 'passes', { verdict: 'update' }],
    ['an earlier key with an open creation, and a replacement', opening, 'held', replacing],
    ['a bound earlier key, in the second half of a replacement', { ...old, ...boundOld, ...secondHalf }],
    ['an answered key of another entry, in that half', { ...ofAnother, ...secondHalf }],
    ['an answered key of another entry, and an update', ofAnother, 'passes', { verdict: 'update' }],
    ['an answered key, whose resource is gone', { ...isFound, entry: found('7') }],
    ['an answered key, where that of another answer is gone', { ...isFound, entry: found('6') }, 'held'],
    ['a key whose resource another entry has taken over', ofTaker, 'held'],
    ['a key that was answered with the resource of another entry', ofAnother, 'held'],
    ['a key that was answered with a resource that was found for another entry', ofFound, 'held'],
    ['a key that was answered with an ignored address that is gone', ofIgnored, 'held'],
    ['a key that was answered with an ignored resource', { ...ofIgnored, parts: { ips: [ip(7)] } }, 'held'],
    [
      'an answered key of a network, where others are ignored',
      { ...foundNetwork, ...ignoring, ...network },
      'held',
    ],
    ['an adoption', { entry: found() }, 'passes', adoption],
    ['an adoption, where all others are ignored', { entry: found(), ...ignoring }, 'held', adoption],
    ['an adoption that the spec names, where all others are ignored', ignoring, 'passes', adoption],
  ])('%s', (name, { key = 'ips.a', ...given }, is, verdict) => {
    const both: typeof lineOpen = (draft, input) => earlierOpen(draft, input) ?? lineOpen(draft, input);
    expect(linesOf(ask(both, key, given, verdict))).toBe(is === 'held' ? texts.of(name) : undefined);
  });

  test('a creation without an entry has no line', () => {
    const ofOld = { ...boundOld, ...isFound, settings: 'unmanaged: ignore' };
    for (const verdict of ['create', 'adopt'])
      expect(ask(lineOpen, 'ips.old', ofOld, { verdict, target: '7' })).toBeUndefined();
  });

  const renamed = (...formerKeys: string[]) => [bound('ips.old', 'ip', '7', { formerKeys })];
  const soon = ' ips.old is the earlier name of ips.a, which takes its resource back → vdcsync apply';
  test.each<[string, string, Given, string?]>([
    ['was renamed from a key in the spec', 'ips.old', { bindings: renamed('ips.z', 'ips.a') }, soon],
    ['was never renamed', 'ips.old', boundOld],
    ['came from a bound key', 'ips.old', { bindings: [...renamed('ips.a'), bound('ips.a', 'ip', '8')] }],
    ['has no binding', 'ips.a', {}],
  ])('a deletion of a resource that %s', (_name, key, given, text) => {
    expect(ask(lineOpen, key, given, { verdict: 'delete' })).toBe(text);
  });
  test.each([
    ['names an id', { id: '7' }],
    ['names an earlier key', { moved: 'ips.z' }],
  ])('an entry that %s does not take the resource back', (_name, entry) => {
    const guard: typeof lineOpen = (draft, input) => {
      const subject = input.world.subjects.get('ips.old' as ResourceKey);
      return lineOpen({ ...draft, subject } as Draft, input);
    };
    const deletion = { verdict: 'delete' };
    expect(ask(guard, 'ips.a', { bindings: renamed('ips.a'), entry }, deletion)).toBeUndefined();
    expect(ask(guard, 'ips.a', { bindings: renamed('ips.a') }, deletion)).toBe(soon);
  });

  test('a part of a server that takes its resource back stays', () => {
    const part = bound('servers.old.public_ipv4', 'ip', '8', {});
    const guard: typeof lineOpen = (draft, input) =>
      lineOpen({ ...draft, subject: { ...draft.subject, parent: 'servers.old' as ResourceKey } }, input);
    const bindings = [bound('servers.old', 'server', '7', { formerKeys: ['servers.web'] }), part];
    expect(ask(guard, part.key, { bindings }, { verdict: 'delete' })).toContain(
      'servers.old is the earlier name of servers.web',
    );
    expect(ask(guard, part.key, { bindings: [part] }, { verdict: 'delete' })).toBeUndefined();
  });

  const gone = (key: string, kind: string) => has(key, kind, '1');
  const releasedFrom = (formerKey: string, kind: string, id: string, is = 'released') => ({
    ...gone(formerKey, kind),
    claims: [claim(kind, id, { is, by: 'file', formerKey })],
  });
  const ofA = releasedFrom('ips.a', 'server', '51');
  test.each<[string, string, Given, 'held'?]>([
    ['a released server', 'servers.web', releasedFrom('servers.web', 'server', '2001'), 'held'],
    ['a released network', 'networks.n', releasedFrom('networks.n', 'network', '9')],
    [
      'a server that was released from the key',
      'ips.a',
      { ...ofA, ...gone('ips.a', 'ip'), parts: { ips: [ip(52, 51)] } },
    ],
  ])('a resource that is gone or replaced is not created next to %s', (name, key, given, is) => {
    const text = is && texts.of(name);
    expect(linesOf(ask(lineOpen, key, given))).toBe(text);
    expect(linesOf(ask(lineOpen, key, given, { verdict: 'replace' }))).toBe(text);
  });
});

describe('src/plan/purchases.ts: an entry whose resource another entry has got', () => {
  const left = (formerKey: string) => ({
    claims: [claim('server', '2001', { is: 'released', by: 'file', formerKey })],
  });
  const got = (key: string, ...formerKeys: string[]) => ({
    bindings: [bound('servers.z', 'server', '3', {}), bound(key, 'server', '2', { formerKeys })],
  });
  test.each<[string, Given, boolean]>([
    [
      'the server that the other one has left',
      { ...left('servers.app'), ...got('servers.app', 'servers.q', 'servers.web') },
      true,
    ],
    [
      'nothing that a third one has left',
      { ...left('servers.z'), ...got('servers.app', 'servers.web') },
      false,
    ],
    [
      'nothing if the other one had another key',
      { ...left('servers.app'), ...got('servers.app', 'servers.q') },
      false,
    ],
    ['nothing if it has left none', got('servers.app', 'servers.web'), false],
  ])('may be %s', (_name, given, isAsked) => {
    const asked = ask(lineOpen, 'servers.web', given);
    expect(asked?.startsWith('unmanaged_resources server 2001 was released from servers.app') ?? false).toBe(
      isAsked,
    );
  });
});

describe('src/plan/purchases.ts: the address of an earlier server', () => {
  const left = (id: number, formerKey: string, is = 'released') => ({
    ...claim('ip', String(id), { is, by: 'operator', formerKey }),
    identity: { address: `a${id}` },
  });
  const own = left(51, 'servers.web.public_ipv4');
  const other = ' | vdcsync ignore a51 (if servers.web shall get another address)';
  const said =
    ' address a51 was released from servers.web before, and is free: the creation would buy another address → ';
  const reuse = 'write `public_ipv4: {reuse: true}` in servers.web (to use that address again)';
  const one = { parts: free, claims: [own] };
  const leaves = (...of: Parameters<typeof left>) => ({ ...one, claims: [left(...of)] });
  const web = 'servers.web';
  const two = { ips: [ip(51), ip(52)] };
  const ofOld = { claims: [left(51, 'servers.old')], ...has('servers.old', 'server', '1') };
  test.each<[string, string, Given, (string | undefined)?, object?]>([
    ['that was released alone', web, leaves(51, 'servers.web'), `${said}${reuse}${other}`],
    ['beside a second free one', web, { ...one, parts: two }, `${said}${other.slice(3)}`],
    ['that no server had', web, { parts: free }],
    ['beside an update', web, one, undefined, { verdict: 'update' }],
    ['where a replacement ends', web, { ...one, ...secondHalf }],
    ['where all others are ignored', web, { ...one, settings: 'unmanaged: ignore' }],
    ['without an entry', 'servers.old', { ...one, ...ofOld }],
  ])('%s', (_name, key, given, expected, verdict) => {
    expect(ask(releasedAddress, key, given, verdict)).toBe(expected);
  });
});

describe('src/plan/lost-state.ts', () => {
  const earlier = (alike: boolean) => ({ kind: 'iso', id: 'u7', alike });
  const guard =
    (...found: object[]): typeof perhapsEarlier =>
    (draft, input) =>
      perhapsEarlier(
        { ...draft, kind: { ...draft.kind, creation: { unmanaged: () => found } } } as never,
        input,
      );
  const isNew = { isNew: true };
  test.each<[string, Given, readonly object[], boolean, object?]>([
    ['a similar one', isNew, [earlier(false), earlier(true)], true],
    ['a similar one, and a state with a baseline', {}, [earlier(true)], true],
    ['a similar one, where a replacement ends', { ...isNew, ...secondHalf }, [earlier(true)], false],
    ['one that the spec ignores', { ...isNew, settings: 'unmanaged: ignore' }, [earlier(true)], false],
    ['a similar one, beside an update', isNew, [earlier(true)], false, { verdict: 'update' }],
  ])('may have created the resource under another name: %s', (_name, given, found, isBlocked, verdict) => {
    const text = ask(guard(...found), 'isos.i', given, verdict);
    if (!isBlocked) return expect(text).toBeUndefined();
    expect(text).toContain('unmanaged iso u7, which may be isos.i under an earlier name');
    expect(text).toContain(
      '→ vdcsync adopt isos.i u7 (if iso u7 belongs to this spec) | write `unmanaged: ignore`',
    );
  });

  test('a kind without unmanaged resources is not asked', () => {
    for (const key of ['ips.a', 'servers.web']) expect(ask(perhapsEarlier, key, isNew)).toBeUndefined();
    const bare: typeof perhapsEarlier = (draft, input) =>
      perhapsEarlier({ ...draft, kind: {} } as never, input);
    expect(ask(bare, 'ips.a', isNew)).toBeUndefined();
  });

  const web = (applied: unknown = null) => [bound('servers.web', 'server', '1', { applied })];
  const unidentified = (key: string, settled = false) =>
    claim('project', key, { is: 'unidentified', key, ...(settled && { settled }) });
  const used = { claims: [unidentified('servers.web')] };
  const other = { ...used, bindings: [bound('servers.web', 'server', '1')] };
  const shown = { observed: new Map([['servers.web', { id: '1' }]]) } as never;
  const swap =
    ' | vdcsync adopt servers.web ID; then vdcsync adopt servers.bare 1 (if server 1 is servers.bare, and server ID is servers.web)';
  test.each<[string, string, Given, string | undefined, object?]>([
    ['beside a server that reads show', 'servers.bare', { ...other, parts: shown }, swap],
    ['beside a server that is gone', 'servers.bare', other, ''],
    ['of the line of the entry', 'servers.bare', { claims: [unidentified('servers.bare')] }, undefined],
    ['beside an update', 'servers.bare', used, undefined, { verdict: 'update' }],
    ['where a replacement ends', 'servers.bare', { ...used, ...secondHalf }, undefined],
    ['that a list would show', 'servers.bare', { ...used, parts: { servers: [] } }, undefined],
  ])('an unidentified server %s', (_name, key, given, way, verdict) => {
    const text = ask(besideUnidentified, key, given, verdict);
    if (way === undefined) return expect(text).toBeUndefined();
    expect(text).toBe(
      ` an earlier state used an idempotency key of servers.web for a server that no read shows. It may exist, and may be servers.bare → vdcsync adopt servers.bare ID (if server ID in the client area is servers.bare)${way} | vdcsync resolve servers.web --absent (if the client area shows no other server of this spec)`,
    );
  });

  test('a server that is gone is not created again next to an unidentified server of its key', () => {
    const own = { claims: [unidentified('servers.bare')] };
    const lost = { verdict: 'create', lost: 'the project no longer has server 7' };
    expect(ask(besideUnidentified, 'servers.bare', own, lost)).toContain('key of servers.bare for a server');
  });

  test('unidentified servers are reported', () => {
    const unlistedWorld = { listsServers: () => false } as never;
    const claims = [claim('server', '1', { is: 'found', key: 'servers.web' }), unidentified('servers.web')];
    expect(unidentifiedWarnings({ claims } as never, unlistedWorld)).toMatchObject([
      {
        ...{ code: 'unlisted_servers', key: 'servers.web' },
        message:
          'an earlier state used an idempotency key of servers.web for a server that no read shows. If it exists, it is billed',
      },
    ]);
    expect(
      unidentifiedWarnings({ claims } as never, unlistedWorld).map(({ remedies = [] }) =>
        resolveText(remedies),
      ),
    ).toEqual([
      'vdcsync adopt KEY ID (if the client area shows it, and KEY is its entry) | vdcsync ignore ID; then vdcsync resolve servers.web --absent (if it does not belong to this spec) | vdcsync resolve servers.web --absent (if the client area shows no other server of this spec)',
    ]);
  });

  const image = 'server_images.golden';
  test.each<[string, string, Given, boolean, object?]>([
    ['an older server', image, { ...isNew, bindings: web() }, true],
    ['a server that this state created', image, { ...isNew, bindings: web({ body: {} }) }, false],
    ['one of a replacement that ends', image, { ...isNew, bindings: web(), ...secondHalf }, false],
    ['an older, ignored one', image, { ...isNew, settings: 'unmanaged: ignore', bindings: web() }, false],
    ['an older server, beside an update', image, { ...isNew, bindings: web() }, false, { verdict: 'update' }],
    ['an older server that is not in the spec', image, { ...isNew, drop: ['servers.web'] }, false],
  ])('an image may be older than the state: %s', (_name, key, given, isBlocked, verdict) => {
    const text = ask(takenBefore, key, given, verdict);
    if (!isBlocked) return expect(text).toBeUndefined();
    expect(text).toBe(
      ` the state is new, and servers.web is older. The image may be older too: no list shows images → vdcsync adopt ${key} ID (if the client area shows the image) | write \`unmanaged: ignore\` under \`settings\` (to take a new image)`,
    );
  });
});

describe('src/plan/purchases.ts: an unresolved creation', () => {
  const unconfirmed = { why: 'lost', question: { stage: 'fenced', probes: 0 } };
  const open = (key: string, more: object = {}) =>
    ({
      key,
      kind: takeApart(key as ResourceKey).kind,
      verb: 'create',
      phase: 'blocked',
      unconfirmed,
      preimage: { ips: [], servers: [] },
      blocked: { candidates: [] },
      ...more,
    }) as unknown as Intent;
  const beside = (...of: Parameters<typeof open>) => ({ open: [open(...of)] });
  const unknown = { phase: 'unknown' };
  const used = { blocked: { code: 'key_conflict', candidates: [] } };
  const accepted = { phase: 'accepted', unconfirmed: undefined, blocked: undefined };
  const [updating, replacing] = [{ ...used, verb: 'update' }, { verdict: 'replace' }];
  const byHand = '→ vdcsync adopt servers.bare ID (if server ID in the client area is servers.bare) |';
  const withAddress = { ...beside('ips.a'), parts: free, ...has('ips.b', 'ip', '51') };
  const bareIts = { ...beside('servers.web', used), ...has('servers.bare', 'server', '1') };
  const besideCame = { ...beside('servers.bare'), parts: { servers: [{ id: 2001, name: 'x' }] as never } };
  const text = (key: string) =>
    ` the creation of ${key} is unconfirmed, and this creation could be confused with it → resolve ${key} first; then vdcsync apply`;
  const reason =
    ' the resource of servers.web is not known, and may be the one of servers.bare → resolve servers.web first';
  const conflict = { phase: 'unknown', unconfirmed: { why: 'lost', question: { conflict: true } } };
  test.each<[string, string, Given, string | undefined, string?]>([
    ['a replacement', 'servers.bare', beside('servers.web', used), reason, 'replace'],
    ['a deletion beside a key that refused it', 'servers.bare', beside('servers.web', conflict), reason],
    ['an update', 'servers.bare', beside('servers.web', used), undefined, 'update'],
    ['a deletion of its own', 'servers.bare', beside('servers.bare', used), undefined],
    ['a deletion beside another kind', 'servers.bare', beside('ips.a', used), undefined],
    ['a deletion beside an update', 'servers.bare', beside('servers.web', updating), undefined],
    ['a deletion beside an accepted creation', 'servers.bare', beside('servers.web', accepted), undefined],
  ])('next to a key that another state has used or reserved: %s', (_name, key, given, expected, verdict = 'delete') => {
    expect(ask(besideConflict, key, given, { verdict })).toBe(expected);
  });

  test('next to a key that another state has used, an address is deleted with its server', () => {
    const parent = 'servers.web' as ResourceKey;
    const guard: typeof besideConflict = (draft, input) =>
      besideConflict({ ...draft, subject: { ...draft.subject, parent } }, input);
    expect(ask(guard, 'ips.a', beside('ips.b', used), { verdict: 'delete' })).toBeUndefined();
  });

  test.each<[string, string, Given, (string | undefined)?, object?]>([
    ['a replacement of servers.any', 'servers.any', beside('ips.a'), text('ips.a'), { verdict: 'replace' }],
    ['an update of servers.any', 'servers.any', beside('ips.a'), undefined, { verdict: 'update' }],
    ['an open write of servers.any', 'servers.any', { open: [open('ips.a'), open('servers.any')] }],
    ['servers.any beside a creation that is not asked about', 'servers.any', beside('ips.a', unknown)],
    ['a new server beside servers.any', 'servers.web', beside('servers.any'), text('servers.any')],
    [
      'a server without an address beside a used key',
      'servers.bare',
      beside('servers.web', used),
      text('servers.web').replace('→', byHand),
    ],
    ['a bound server', 'servers.bare', bareIts, undefined, replacing],
    ['a bare server beside another', 'servers.bare', beside('servers.web'), text('servers.web')],
    ['the second half of a replacement', 'servers.bare', { ...beside('servers.web'), ...secondHalf }],
    ['a network beside a server that takes any address', 'networks.n', beside('servers.any')],
    ['a resource that is not in the spec', 'ips.old', beside('servers.any')],
    ['a deletion', 'servers.any', beside('ips.a', { verb: 'delete' })],
    ['a confirmed creation', 'servers.any', beside('ips.a', { unconfirmed: undefined })],
    ['a server beside a server that is new since the write', 'servers.web', besideCame, text('servers.bare')],
    [
      'a server beside a server of this spec',
      'servers.web',
      { ...besideCame, ...has('servers.named', 'server', '2001') },
    ],
    ['a server beside an address of this spec', 'servers.web', withAddress],
  ])('%s', (_name, key, given, expected, verdict) => {
    const guard: typeof besideUnresolved = (draft, input) =>
      besideUnresolved(
        draft.subject === undefined ? { ...draft, subject: { key: 'ips.old' } as never } : draft,
        input,
      );
    expect(ask(guard, key, given, verdict)).toBe(expected);
  });

  const confusable = (
    key: string,
    intent: Intent,
    bindings: readonly Binding[] = [],
    observed: object = new Map(),
    parts: object = {},
  ) => {
    const world = worldOf(load(file()), { observed, ...parts } as never, bindings);
    const register = attribute(world, { claims: [], intents: [intent] });
    return (
      confusableWith(key as ResourceKey, [intent], { kinds, world, register: () => register }) === intent
    );
  };
  const isThere = new Map([['ips.a', { id: '51' }]]);
  const waiting = { phase: 'waiting' };
  test.each<[string, string, Intent, boolean]>([
    ['the shown address, beside an address that waits', 'servers.named', open('ips.b', waiting), false],
    ['the shown address, beside an address that is unknown', 'servers.named', open('ips.b', unknown), true],
    ['any address, beside an address that waits', 'servers.any', open('ips.b', waiting), true],
  ])('a server that takes %s', (_name, key, intent, isOne) => {
    expect(confusable(key, intent, [bound('ips.a', 'ip', '51')], isThere)).toBe(isOne);
  });

  test('an unconfirmed creation that is not blocked finds its own result', () => {
    const came = (phase: string) => confusable('servers.web', open('ips.b', { phase }), [], undefined, free);
    expect([came('blocked'), came('unknown')]).toEqual([true, false]);
  });

  test('a key that was used for another request may have made a server without an address, also while it is asked', () => {
    const asking = (conflict?: true) => ({
      ...unknown,
      unconfirmed: { ...unconfirmed, question: { ...unconfirmed.question, ...(conflict && { conflict }) } },
    });
    const beside = (conflict?: true) => confusable('servers.bare', open('servers.web', asking(conflict)));
    expect([beside(true), beside()]).toEqual([true, false]);
    // Its entry has left the spec, and may have been renamed.
    expect(confusable('servers.bare', open('servers.old', asking()))).toBe(true);
  });
});
