import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/core/json.ts';
import { type ResourceKey, takeApart } from '../../src/core/keys.ts';
import type { WorldParts } from '../../src/core/kind.ts';
import { resolveText } from '../../src/core/remedy.ts';
import type { Binding } from '../../src/core/state.ts';
import type { Draft } from '../../src/plan/draft.ts';
import { guards, impactOf } from '../../src/plan/guards.ts';
import { kinds } from '../../src/reconcilers/registry.ts';
import { load, sliders } from '../support/rig.ts';
import { asLines, Texts } from '../support/texts.ts';
import { worldOf } from './support.ts';

const file = (settings = '') => `settings: {${settings}}
networks: {n: {cidr: 10.1.0.0/24}}
isos: {i: {url: "https://mirror.example.com/a.iso"}}
ips: {a: {}, b: {}}
servers:
  web: {${sliders}, public_ipv4: {new: true}, network_interfaces: [n], firewall: {enabled: true}}
  app: {${sliders}, network_interfaces: [n], firewall: {enabled: true}}
`;
const bound = (key: string, id: string, more: object = {}) =>
  ({ ...takeApart(key as ResourceKey), id, identity: {}, boundAt: 1, ...more }) as unknown as Binding;
const ip = (id: number, server: number | null = null) =>
  ({ id, address: `a${id}`, server_id: server }) as never;

interface Given {
  readonly settings?: string;
  readonly parts?: Partial<WorldParts>;
  readonly bindings?: readonly Binding[];
  readonly drop?: readonly string[];
  /** Other fields of entries, by their keys. */
  readonly entries?: Readonly<Record<string, object>>;
  readonly input?: object;
  /** Other fields of the draft. */
  readonly draft?: object;
  readonly diff?: object;
}
const create = { verdict: 'create', changes: [] };
const update = { verdict: 'update', changes: [] };
const remove = { verdict: 'delete', changes: [] };
const adopt = (target: string) => ({ verdict: 'adopt', target, reason: 'r' });
const changes = [{ path: 'image', from: 'os-1', to: 'os-2' }];
const replace = {
  verdict: 'replace',
  changes,
  reason: 'image changes',
  allowed: true,
  order: 'create_first',
};
const asked = { ...replace, allowed: false };
const remedies = [{ type: 'outside', text: 't' }];
const odd = { verdict: 'blocked', code: 'name_exists', reason: 'r', remedies };

/** The draft of the key, in its world. */
function draftOf(key: string, verdict: object, given: Given) {
  const { settings, parts = {}, bindings = [], drop = [], entries = {} } = given;
  const desired = load(file(settings));
  const resources = desired.resources
    .filter((each) => !drop.includes(each.key))
    .map((each) => ({ ...each, ...entries[each.key] }));
  const world = worldOf({ ...desired, resources } as never, parts, bindings);
  const subjects = world.subjects as Map<ResourceKey, object>;
  for (const binding of bindings)
    if (!subjects.has(binding.key)) subjects.set(binding.key, { ...takeApart(binding.key), binding });
  const subject = world.subjects.get(key as ResourceKey) ?? takeApart(key as ResourceKey);
  const diff = { verdict, ...given.diff };
  const draft = { subject, kind: kinds.get(subject.kind), diff, ...given.draft } as unknown as Draft;
  return { draft, world };
}

/** The objection of the guards with the code to the draft of the key. */
function ask(code: string | undefined, key: string, verdict: object, given: Given = {}): string | undefined {
  const { draft, world } = draftOf(key, verdict, given);
  const input = { kinds, world, openIntents: [], destroy: false, now: 1, ...given.input };
  const [guard] = guards.filter((each) => each.code === code);
  const found = guard?.check(draft, input as never, { matches: () => new Map() } as never);
  if (found === undefined) return undefined;
  const permit = found.permit && ` ⇒ ${resolveText([found.permit])}`;
  return `${found.code ? `${found.code}: ` : ''}${found.reason} → ${resolveText(found.remedies)}${permit ?? ''}`;
}

const has = (key: string, id: string, more: object = {}): Given => ({ bindings: [bound(key, id, more)] });
const says = (key: string, fields: object): Given => ({ entries: { [key]: fields } });
const ofWeb = has('servers.web', '1');
const destroying: Given = { input: { destroy: true } };
const prune: Given = { settings: 'prune: true' };
const protects = { protect: true };

type Row = readonly [name: string, key: string, verdict: object, given: Given, is: 'held' | 'passes'];
/** The objections, with their remedies. */
const texts = new Texts(import.meta.dirname, 'guard-table.txt');
function rows(code: string | undefined, table: readonly Row[]) {
  const cases = table.map(([name, key, verdict, given, is]) => {
    const title = `${code}: ${name}`;
    return [title, key, verdict, given, is === 'held' ? texts.of(title) : undefined] as const;
  });
  test.each(cases)('%s', (_title, key, verdict, given, text) => {
    const objection = ask(code, key, verdict, given);
    expect(objection && asLines(objection)).toBe(text);
  });
}

const web = 'servers.web';
const address = 'servers.web.public_ipv4';
const wall = 'servers.web.firewall';
const expired: Given = {
  parts: { expiry: { expired: [{ key: 'networks.n', kind: 'network', protect: true, at: 1 }] } } as never,
};
const kept = { entries: { [web]: { protect: true } } };
const gone = (more: object = {}): Given => ({
  drop: ['networks.n'],
  bindings: [bound('networks.n', '3', more)],
});
const retired = (more: object = {}) => bound('servers.web~1', '1', more);

describe('src/plan/guards.ts: one guard each', () => {
  test('each guard has a code, and the most fundamental guard comes first', () => {
    expect(guards.map(({ code }) => code)).toEqual([
      ...['moved_onto_bound', 'moved_in_flight', 'moved_from_unknown'],
      undefined,
      ...['suspended', 'ip_in_use', 'protected', 'recovered_unconfirmed', 'bound_already'],
      ...[
        'prune_disabled',
        'replace_not_allowed',
        'network_in_use',
        'project_not_active',
        ...Array.from({ length: 4 }, () => 'dependency_blocked'),
      ],
      ...['moved_in_flight', 'unmanaged_resources', 'unmanaged_resources', 'unmanaged_resources'],
      ...['unlisted_servers', 'unlisted_servers', 'image_taken_before', 'unresolved_create'],
      ...['max_monthly_increase', 'outside_window'],
    ]);
  });

  rows(undefined, [
    ['a creation', 'ips.a', create, {}, 'passes'],
    ['an operation that its kind refuses', 'ips.a', odd, {}, 'held'],
  ]);

  const obstacle = { code: 'network_in_use', reason: 'r', remedies };
  rows('network_in_use', [
    ['a replacement', 'networks.n', { ...replace, obstacle }, {}, 'held'],
    ['a replacement without an obstacle', 'networks.n', replace, {}, 'passes'],
    ['an update', 'networks.n', { ...update, obstacle }, {}, 'passes'],
  ]);

  const rename = { code: 'moved_onto_bound', reason: 'r', remedies };
  const renamed = { input: { waitingMoves: [{ blocked: rename, keys: new Set(['networks.n', web]) }] } };
  rows('moved_onto_bound', [
    ['a creation', 'networks.n', create, renamed, 'held'],
    ['a part of the server', wall, update, renamed, 'held'],
    ['its retiring server', 'servers.web~1', remove, { ...renamed, bindings: [retired()] }, 'held'],
    ['an unchanged resource', web, { verdict: 'unchanged' }, renamed, 'passes'],
    ['another entry', 'servers.app', create, renamed, 'passes'],
    ['no rename that waits', web, create, {}, 'passes'],
  ]);

  const claimed = (is: string, formerKey: string) => ({ holder: { is, formerKey } });
  const released = [claimed('released', 'ips.z'), claimed('leftover', 'ips.old')];
  const also = [...released, claimed('released', 'ips.old')];
  const named = (formerKeys: readonly string[], claims: readonly object[] = released): Given => ({
    entries: { 'ips.a': { moved: 'ips.old' } },
    input: { register: { claims } },
    bindings: [bound('ips.a', '51', { formerKeys })],
  });
  const besideLeft: Given = {
    ...{ ...has('ips.left', '9'), ...says('ips.a', { moved: 'ips.old' }) },
    parts: { observed: new Map([['ips.left', { id: '9' }]]) } as never,
  };
  const secondHalf: Given = { input: { begun: { get: () => true } } };
  rows('moved_from_unknown', [
    ['a replacement of a resource that never had the earlier key', 'ips.a', replace, named([]), 'held'],
    ['a creation in place of a resource without that key', 'ips.a', create, named(['ips.z']), 'held'],
    [
      'a replacement, and the state has released the resource of that key',
      'ips.a',
      replace,
      named([], also),
      'passes',
    ],
    ['a replacement of a resource that had the earlier key', 'ips.a', replace, named(['ips.old']), 'passes'],
    ['an update of a resource that never had the earlier key', 'ips.a', update, named([]), 'passes'],
    ['a creation for an unknown earlier key', 'ips.a', create, besideLeft, 'held'],
    ['a creation where a replacement ends', 'ips.a', create, { ...besideLeft, ...secondHalf }, 'passes'],
    ['a replacement without an earlier key', web, replace, {}, 'passes'],
  ]);

  const until = { settings: 'suspend: {reason: freeze, until: "1970-01-01T00:00:01Z"}' };
  const suspend = { settings: 'suspend: {reason: freeze}' };
  rows('suspended', [
    ['a creation', 'ips.a', create, suspend, 'held'],
    ['a creation, without the setting', 'ips.a', create, {}, 'passes'],
    ['no change', 'ips.a', { verdict: 'unchanged' }, suspend, 'passes'],
    ['an adoption', 'ips.a', adopt('1'), suspend, 'passes'],
    ['a release', 'ips.a', { verdict: 'release' }, suspend, 'passes'],
    ['a creation before the end', 'ips.a', create, { ...until, input: { now: 999 } }, 'held'],
    ['a creation at the end', 'ips.a', create, { ...until, input: { now: 1000 } }, 'passes'],
  ]);

  const live = (server: number | null): Given => ({
    bindings: [bound(address, '51', { parentId: '1' })],
    parts: { ips: [ip(51, server)] },
  });
  const ours = { ...live(9), bindings: [bound(address, '51'), bound(web, '9')] };
  rows('ip_in_use', [
    ['an address on a server that no key has', address, remove, live(9), 'held'],
    ['an address on a server of this spec', address, remove, ours, 'passes'],
    ['a free address', address, remove, live(null), 'passes'],
    ['an address that no list has', address, remove, { ...live(9), parts: {} }, 'passes'],
    ['an address without a binding', address, remove, { parts: { ips: [ip(51, 9)] } }, 'passes'],
    ['an update of an address', address, update, live(9), 'passes'],
  ]);

  const left = 'servers.web~1.public_ipv4';
  const leftBehind = (more: object = {}): Given => ({
    bindings: [bound(left, '51', { parentId: '1', orphaned: true, protect: true })],
    entries: { 'servers.web': { protect: false } },
    ...more,
  });
  const withId = says(web, { protect: true, id: '1' });
  const itRetires = { ...kept, ...has('servers.web~1', '1', protects) };
  const lostServer = { drop: [web, address], ...has(address, '51', { protect: true }) };
  const goneProtected = gone({ protect: true });
  rows('protected', [
    ['a leftover of a key that is bound again', left, remove, leftBehind(), 'held'],
    ['a leftover of the key, in a destroy', left, remove, leftBehind({ input: { destroy: true } }), 'held'],
    ['a deletion of another resource', web, remove, {}, 'passes'],
    ['an update', web, update, kept, 'passes'],
    ['a replacement', web, replace, kept, 'held'],
    ['a replacement that is not allowed, with an id', web, asked, withId, 'held'],
    ['a part without an entry', address, remove, { ...kept, drop: [address], ...has(address, '51') }, 'held'],
    ['a replacement of a part', 'servers.web.firewall', replace, kept, 'held'],
    ['an entry that has expired', 'networks.n', remove, { ...gone({ protect: true }), ...expired }, 'held'],
    ['a part of a server that the state does not know', address, remove, lostServer, 'held'],
    ['destroy, without an entry', 'networks.n', remove, { ...goneProtected, ...destroying }, 'held'],
    ['an entry that has left, with prune', 'networks.n', remove, { ...goneProtected, ...prune }, 'held'],
    ['a server that retires', 'servers.web~1', remove, itRetires, 'held'],
  ]);

  const found = (recovered: unknown = 'found', more: object = {}): Given => ({
    bindings: [bound(web, '1', { recovered })],
    ...more,
  });
  const ofPart = (recovered: unknown) => bound(address, '51', { recovered });
  const part = (recovered: unknown): Given => ({ bindings: [bound(web, '1'), ofPart(recovered)] });
  rows('recovered_unconfirmed', [
    ['a deletion', web, remove, found(), 'held'],
    ['a replacement', web, replace, found(), 'held'],
    ['destroy', web, remove, { ...found(), input: { destroy: true } }, 'held'],
    ['a deletion of a resource that was taken over', web, remove, found('taken'), 'held'],
    ['destroy of a server that was taken over', web, remove, { ...found('taken'), ...destroying }, 'passes'],
    ['an update', web, update, found(), 'passes'],
    ['a loss of data', web, { ...update, loses: 'data' }, found(), 'held'],
    ['a part of a server that was taken over', `${web}.firewall`, remove, found('taken'), 'held'],
    ['a part that was taken over with a server that is confirmed', address, remove, part('taken'), 'passes'],
    ['a part that was found, of a confirmed server', address, remove, part('found'), 'held'],
    [
      'a part that was taken over, whose server is gone',
      address,
      remove,
      { bindings: [ofPart('taken')] },
      'held',
    ],
    ['a part of a server that was found', `${web}.firewall`, remove, found(), 'passes'],
    [
      'a resource that the spec names by its id',
      web,
      remove,
      { ...found('taken'), ...says(web, { id: '1' }) },
      'passes',
    ],
    ['another id', web, remove, { ...found('taken'), entries: { [web]: { id: '2' } } }, 'held'],
    ['a deletion of another resource', web, remove, found(null), 'passes'],
    ['a deletion without a binding', web, remove, {}, 'passes'],
  ]);

  const appNames = (fields: object): Given => ({ ...ofWeb, ...says('servers.app', fields) });
  const sent = { key: 'ips.c', kind: 'ip', verb: 'create', phase: 'sending' };
  const accepted = (key: string, id: string) => ({ ...sent, key, phase: 'accepted', answer: { id } });
  // An id is unique among the resources of its kind only.
  const makes = (id: string): Given => ({
    input: { openIntents: [{ ...sent, key: 'ips.a' }, accepted('networks.n', id), accepted('ips.b', id)] },
  });
  const takenBack = { id: '1', held: { by: 'released' } };
  rows('bound_already', [
    ['a resource that another entry has', 'ips.a', adopt('51'), has('ips.b', '51'), 'held'],
    ['a resource that another entry names by its id', web, replace, appNames({ id: '1' }), 'held'],
    ['replacement of a resource that another entry takes back', web, replace, appNames(takenBack), 'passes'],
    ['replacement of an unnamed resource', web, replace, { bindings: [bound(web, '1')] }, 'passes'],
    ['a resource that is created for another entry', 'ips.x', adopt('51'), makes('51'), 'held'],
    ['a resource, while another one is created', 'ips.x', adopt('51'), makes('52'), 'passes'],
    ['a resource that the entry has itself', 'ips.a', adopt('51'), has('ips.a', '51'), 'passes'],
    ['another resource', 'ips.a', adopt('51'), has('ips.b', '52'), 'passes'],
    ['another kind', 'ips.a', adopt('51'), has('networks.n', '51'), 'passes'],
    ['an update', 'ips.a', { ...update, target: '51' }, has('ips.b', '51'), 'passes'],
    ['an address that came with a server', 'ips.a', adopt('51'), has(address, '51'), 'passes'],
    ['the address of a server', address, adopt('51'), has('ips.b', '51'), 'passes'],
    [
      'a resource that another entry takes back',
      'ips.a',
      adopt('51'),
      says('ips.b', { ...takenBack, id: '51' }),
      'held',
    ],
    ['an id that another entry has', 'ips.a', adopt('51'), { entries: { 'ips.b': { id: '51' } } }, 'passes'],
  ]);

  const orphan = 'servers.web~1.public_ipv4';
  const orphaned = (more: object = {}): Given => ({
    bindings: [bound(orphan, '51', { parentId: '1', orphaned: true, ...more })],
    parts: { ips: [ip(51)] },
  });
  const isGone = { bindings: [bound(web, '1'), bound(address, '51')] };
  const leftSpec = { bindings: [retired(), bound(web, '2')], drop: [web] };
  const failed = { bindings: [bound(web, '1', { tainted: 't' }), bound(address, '51')] };
  rows('prune_disabled', [
    ['an address whose server is gone, and whose key has another one', orphan, remove, orphaned(), 'held'],
    ['an orphaned address, with prune', orphan, remove, { ...orphaned(), settings: 'prune: true' }, 'passes'],
    ['a key that has left the spec', 'networks.n', remove, gone(), 'held'],
    ['a key that has left the spec, without a binding', 'networks.z', remove, {}, 'held'],
    ['with prune', 'networks.n', remove, { ...gone(), settings: 'prune: true' }, 'passes'],
    ['destroy', 'networks.n', remove, { ...gone(), input: { destroy: true } }, 'passes'],
    ['by the spec', 'networks.n', { ...remove, byFile: true }, gone(), 'passes'],
    ['no deletion', 'networks.n', { verdict: 'release' }, gone(), 'passes'],
    ['a key in the spec', 'networks.n', remove, {}, 'passes'],
    ['a server that retires', 'servers.web~1', remove, { bindings: [retired()] }, 'passes'],
    ['the address of a server that is gone', address, remove, isGone, 'held'],
    ['an address of a never bound server', address, remove, { bindings: [bound(address, '51')] }, 'passes'],
    ['the address of a server whose creation failed', address, remove, failed, 'passes'],
    ['the firewall of a server', wall, remove, { bindings: [bound(web, '1'), bound(wall, '1')] }, 'passes'],
    ['an entry that has expired', 'networks.n', remove, { ...gone(), ...expired }, 'held'],
    ['a server that retires, and has left the spec', 'servers.web~1', remove, leftSpec, 'held'],
  ]);

  rows('replace_not_allowed', [
    ['a replacement', web, asked, { bindings: [bound(web, '1')] }, 'held'],
    ['an allowed replacement', web, replace, { bindings: [bound(web, '1')] }, 'passes'],
    ['an allowed replacement, with an id', web, replace, { entries: { [web]: { id: '1' } } }, 'held'],
    ['an update', web, { ...asked, verdict: 'update' }, {}, 'passes'],
    ['a replacement without an entry', 'networks.n', replace, gone(), 'passes'],
  ]);

  const project = { id: 4711, status: 'Suspended' } as never;
  const outliving = { bindings: [bound(address, '51')], parts: { project } };
  rows('project_not_active', [
    ['a creation', 'ips.a', create, { parts: { project } }, 'passes'],
    ['a creation in an active project', web, create, { bindings: [bound(address, '51')] }, 'passes'],
    ['an update', web, update, outliving, 'passes'],
    ['a deletion first', web, { ...replace, order: 'delete_first' }, { parts: { project } }, 'held'],
    ['a creation first', web, replace, { parts: { project } }, 'passes'],
    ['an ordered creation', web, { ...create, order: 'delete_first' }, { parts: { project } }, 'passes'],
    ['an unbilled resource', wall, { ...replace, order: 'delete_first' }, { parts: { project } }, 'passes'],
  ]);

  const refusal = (key: string, more: object = {}) => ({
    key,
    kind: takeApart(key as ResourceKey).kind,
    verb: 'create',
    phase: 'blocked',
    blocked: { until: 'file' },
    basis: basis(key),
    ...more,
  });
  const basis = (key: string) => {
    const entry = load(file()).resources.find((each) => each.key === key);
    return digestOf(entry?.value ?? null);
  };
  const refused = (...openIntents: readonly object[]): Given => ({ input: { openIntents } });
  const card = 'servers.web.network_interfaces.n';
  const [appWall, otherValues] = ['servers.app.firewall', { basis: 'x' }];
  const hasLeft = {
    ...refused(refusal(appWall, { basis: digestOf(null) })),
    drop: [wall],
    ...has(wall, '1'),
  };
  const unknown = { phase: 'unknown', blocked: undefined };
  rows('dependency_blocked', [
    ['its own firewall, in a replacement', web, replace, refused(refusal(wall)), 'held'],
    ['its own network interface', web, create, refused(refusal(card)), 'held'],
    ['its own firewall, in an update', web, update, refused(refusal(wall)), 'passes'],
    ['its own firewall with other values', web, create, refused(refusal(wall, { basis: 'x' })), 'passes'],
    ['nothing', web, create, refused(), 'passes'],
    ['another with other values', 'servers.app', create, refused(refusal(wall, { basis: 'x' })), 'passes'],
    ['the second of two', web, create, refused(refusal(wall, otherValues), refusal(appWall)), 'held'],
    ['another kind', web, create, refused(refusal('servers.app.firewall', { kind: 'drive' })), 'passes'],
    ['a part that has left the spec', web, create, hasLeft, 'passes'],
    ['a backup', web, create, refused(refusal('servers.web.backup')), 'passes'],
    ['a question', web, create, refused(refusal(wall, { blocked: { until: 'operator' } })), 'passes'],
    ['an open write', web, create, refused(refusal(wall, unknown)), 'passes'],
    ['a part', wall, create, refused(refusal(wall)), 'passes'],
  ]);

  const capped = (
    planned: string | undefined,
    settings = 'max_monthly_increase: 9',
    more: object = {},
  ): Given => ({ settings, diff: { price: { known: '5' } }, input: { plannedMost: () => planned, ...more } });
  const begun = { begun: new Map([['ips.a' as never, true]]) };
  rows('max_monthly_increase', [
    ['dearer than planned', 'ips.a', create, capped('4'), 'held'],
    ['as planned', 'ips.a', create, capped('5'), 'passes'],
    ['cheaper than planned', 'ips.a', create, capped('6'), 'passes'],
    ['not planned', 'ips.a', create, capped(undefined), 'passes'],
    ['a plan', 'ips.a', create, { ...capped('4'), input: {} }, 'passes'],
    ['no limit', 'ips.a', create, capped('4', ''), 'passes'],
    ['the end of one', 'ips.a', create, capped('4', undefined, begun), 'passes'],
  ]);

  test('the impact of a deletion names addresses, data, and the parts that stay billed', () => {
    const of = (key: string, given: Given) => {
      const { draft, world } = draftOf(key, remove, given);
      return impactOf(draft, world);
    };
    const ips = [ip(51, 1), ip(52, 1), ip(53)];
    expect([
      of(web, {
        bindings: [bound(web, '1')],
        parts: { ips },
        diff: { leftBilled: ['one stays', 'two stay'] },
      }),
      of(web, { bindings: [bound(web, '2')], parts: { ips } }),
      of('networks.n', { bindings: [bound('networks.n', '1')], parts: { ips } }),
      of('ips.a', { bindings: [bound('ips.a', '53')], parts: { ips } }),
      of('ips.a', {}),
    ]).toEqual([
      'server 1 (a51, a52) would be deleted with all data on its disks. One stays. Two stay',
      'server 2 would be deleted with all data on its disks',
      'network 1 would be deleted',
      'address a53 would be deleted',
      'address  would be deleted',
    ]);
  });
});
