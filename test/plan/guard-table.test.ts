import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/core/json.ts';
import { type ResourceKey, takeApart } from '../../src/core/keys.ts';
import type { WorldParts } from '../../src/core/kind.ts';
import { resolveText } from '../../src/core/remedy.ts';
import type { Binding } from '../../src/core/state.ts';
import type { Draft } from '../../src/plan/draft.ts';
import { guards, impactOf } from '../../src/plan/guards.ts';
import { kinds } from '../../src/reconcilers/registry.ts';
import { sliders } from '../reconcilers/support.ts';
import { load } from '../support/rig.ts';
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
  const found = guard?.check(draft, input as never, {} as never);
  if (found === undefined) return undefined;
  const permit = found.permit && ` ⇒ ${resolveText([found.permit])}`;
  return `${found.code ? `${found.code}: ` : ''}${found.reason} → ${resolveText(found.remedies)}${permit ?? ''}`;
}

type Row = readonly [name: string, key: string, verdict: object, given: Given, expected: string | undefined];
const rows = (code: string | undefined, table: readonly Row[]) =>
  test.each(table)(`${code}: %s`, (_name, key, verdict, given, expected) => {
    expect(ask(code, key, verdict, given)).toBe(expected);
  });

const forget = (key: string) => `vdcsync forget ${key} (to keep it, no longer managed and still billed)`;
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
  test('each has its code, the most fundamental first', () => {
    expect(guards.map(({ code }) => code)).toEqual([
      ...['moved_onto_bound', 'moved_from_unknown', 'moved_in_flight'],
      undefined,
      ...['suspended', 'ip_in_use', 'protected', 'recovered_unconfirmed', 'bound_already'],
      ...[
        'prune_disabled',
        'replace_not_allowed',
        'network_in_use',
        'project_not_active',
        'dependency_blocked',
        'dependency_blocked',
        'dependency_blocked',
      ],
      ...['moved_in_flight', 'unmanaged_resources', 'unmanaged_resources', 'unmanaged_resources'],
      ...['unlisted_servers', 'unlisted_servers', 'image_taken_before', 'unresolved_create'],
      ...['max_monthly_increase', 'outside_window'],
    ]);
  });

  rows(undefined, [
    ['a creation', 'ips.a', create, {}, undefined],
    [
      'an operation that its kind refuses',
      'ips.a',
      { verdict: 'blocked', code: 'name_exists', reason: 'r', remedies: [{ type: 'outside', text: 't' }] },
      {},
      'name_exists: r → t',
    ],
  ]);

  const obstacle = { code: 'network_in_use', reason: 'r', remedies: [{ type: 'outside', text: 't' }] };
  rows('network_in_use', [
    ['a replacement', 'networks.n', { ...replace, obstacle }, {}, 'network_in_use: r → t'],
    ['a replacement without an obstacle', 'networks.n', replace, {}, undefined],
    ['an update', 'networks.n', { ...update, obstacle }, {}, undefined],
  ]);

  const rename = { code: 'moved_onto_bound', reason: 'r', remedies: [{ type: 'outside', text: 't' }] };
  const renamed = { input: { waitingMoves: [{ blocked: rename, keys: new Set(['networks.n', web]) }] } };
  const waits = 'moved_onto_bound: r → t';
  rows('moved_onto_bound', [
    ['a creation', 'networks.n', create, renamed, waits],
    ['a part of the server', wall, update, renamed, waits],
    ['its retiring server', 'servers.web~1', remove, { ...renamed, bindings: [retired()] }, waits],
    ['what does not change', web, { verdict: 'unchanged' }, renamed, undefined],
    ['another entry', 'servers.app', create, renamed, undefined],
    ['no rename that waits', web, create, {}, undefined],
  ]);

  const claimed = (is: string, formerKey: string) => ({ holder: { is, formerKey } });
  const released = [claimed('released', 'ips.z'), claimed('leftover', 'ips.old')];
  const named = (formerKeys: readonly string[], claims: readonly object[] = released): Given => ({
    entries: { 'ips.a': { moved: 'ips.old' } },
    input: { register: { claims } },
    bindings: [bound('ips.a', '51', { formerKeys })],
  });
  const another =
    'ips.a is bound to address 51, which never had the key ips.old. `moved` names ips.old, which an earlier state may have bound. If that address exists, a creation is a duplicate → vdcsync adopt ips.a ID (if the address exists: ID is its id in the client area) | remove `moved` in ips.a (if address 51 is ips.a)';
  rows('moved_from_unknown', [
    ['a replacement of a resource that never had the earlier key', 'ips.a', replace, named([]), another],
    ['a creation in place of such a resource', 'ips.a', create, named(['ips.z']), another],
    [
      'a replacement, and the state has released the resource of that key',
      'ips.a',
      replace,
      named([], [...released, claimed('released', 'ips.old')]),
      undefined,
    ],
    ['a replacement of a resource that had it', 'ips.a', replace, named(['ips.old']), undefined],
    ['an update of such a resource', 'ips.a', update, named([]), undefined],
    ['a replacement without an earlier key', web, replace, {}, undefined],
  ]);

  const until = { settings: 'suspend: {reason: freeze, until: "1970-01-01T00:00:01Z"}' };
  const suspend = { settings: 'suspend: {reason: freeze}' };
  const frozen = 'Reason: freeze →  ⇒ remove `suspend` under `settings`';
  rows('suspended', [
    ['a creation', 'ips.a', create, suspend, `settings.suspend stops all changes. ${frozen}`],
    ['a creation, without the setting', 'ips.a', create, {}, undefined],
    ['no change', 'ips.a', { verdict: 'unchanged' }, suspend, undefined],
    ['an adoption', 'ips.a', adopt('1'), suspend, undefined],
    ['a release', 'ips.a', { verdict: 'release' }, suspend, undefined],
    [
      'a creation before the end',
      'ips.a',
      create,
      { ...until, input: { now: 999 } },
      `settings.suspend stops all changes until 1970-01-01T00:00:01Z. ${frozen}`,
    ],
    ['a creation at the end', 'ips.a', create, { ...until, input: { now: 1000 } }, undefined],
  ]);

  const live = (server: number | null): Given => ({
    bindings: [bound(address, '51', { parentId: '1' })],
    parts: { ips: [ip(51, server)] },
  });
  rows('ip_in_use', [
    [
      'an address on a server that no key has',
      address,
      remove,
      live(9),
      'a51 is still attached to server 9 → vdcsync apply (once the address is detached) | vdcsync forget servers.web.public_ipv4 (to keep it, no longer managed and still billed)',
    ],
    [
      'an address on a server of this spec',
      address,
      remove,
      { ...live(9), bindings: [bound(address, '51'), bound(web, '9')] },
      undefined,
    ],
    ['a free address', address, remove, live(null), undefined],
    ['an address that no list has', address, remove, { ...live(9), parts: {} }, undefined],
    ['an address without a binding', address, remove, { parts: { ips: [ip(51, 9)] } }, undefined],
    ['an update of an address', address, update, live(9), undefined],
  ]);

  const left = 'servers.web~1.public_ipv4';
  const leftBehind = (more: object = {}): Given => ({
    bindings: [bound(left, '51', { parentId: '1', orphaned: true, protect: true })],
    entries: { 'servers.web': { protect: false } },
    ...more,
  });
  const byHand = `servers.web~1.public_ipv4 came with a server that is gone, and its last entry had \`protect: true\`. Address 51 would be deleted → vdcsync forget 'servers.web~1.public_ipv4' (to keep it, no longer managed and still billed) | release it in the client area (to have it deleted)`;
  rows('protected', [
    ['what a server left whose key has another one', left, remove, leftBehind(), byHand],
    ['the same in a destroy', left, remove, leftBehind({ input: { destroy: true } }), byHand],
    ['a deletion of another one', web, remove, {}, undefined],
    ['an update', web, update, kept, undefined],
    [
      'a replacement',
      web,
      replace,
      kept,
      'image changes, and servers.web is protected. In a replacement, server  would be deleted with all data on its disks → write `image: os-1` in servers.web (to keep it unchanged) ⇒ write `protect: false` in servers.web (to replace it)',
    ],
    [
      'a replacement that is not allowed, with an id',
      web,
      asked,
      { entries: { [web]: { protect: true, id: '1' } } },
      'image changes, and servers.web is protected. In a replacement, server  would be deleted with all data on its disks → write `image: os-1` in servers.web (to keep it unchanged) ⇒ write `protect: false` and `replace: allowed` and remove `id` in servers.web (to replace it)',
    ],
    [
      'a part without an entry',
      address,
      remove,
      { ...kept, drop: [address], bindings: [bound(address, '51')] },
      'servers.web is protected, and so is every resource inside it → write `protect: false` in servers.web',
    ],
    [
      'a replacement of a part',
      'servers.web.firewall',
      replace,
      kept,
      'image changes, and servers.web.firewall is protected. In a replacement, firewall  would be deleted → write `image: os-1` in servers.web.firewall (to keep it unchanged) ⇒ write `protect: false` in servers.web (to replace it)',
    ],
    [
      'what has an expired entry',
      'networks.n',
      remove,
      { ...gone({ protect: true }), ...expired },
      'networks.n expired at 1, and its last entry had `protect: true`. Network 3 would be deleted → remove `expires` in networks.n (to keep it managed) | vdcsync forget networks.n (to keep it, no longer managed) ⇒ write `protect: false` in networks.n; then vdcsync apply (to have it deleted)',
    ],
    [
      'a part of a server that the state does not know',
      address,
      remove,
      { drop: [web, address], bindings: [bound(address, '51', { protect: true })] },
      'servers.web.public_ipv4 has left the spec, and its last entry had `protect: true`. Address 51 would be deleted → put servers.web back into the spec (to keep it managed) | vdcsync forget servers.web.public_ipv4 (to keep it, no longer managed and still billed) ⇒ put servers.web back into the spec with `protect: false`; then vdcsync apply --target servers.web; then remove servers.web from the spec; then write `prune: true` under `settings`; then vdcsync apply (to have it deleted)',
    ],
    [
      'destroy, without an entry',
      'networks.n',
      remove,
      { ...gone({ protect: true }), input: { destroy: true } },
      'networks.n is protected, and destroy does not delete protected resources. Network 3 would be deleted → write `protect: false` in networks.n; then vdcsync apply --target networks.n; then vdcsync destroy',
    ],
    [
      'an entry that has left, with prune',
      'networks.n',
      remove,
      { ...gone({ protect: true }), settings: 'prune: true' },
      'networks.n has left the spec, and its last entry had `protect: true`. Network 3 would be deleted → put networks.n back into the spec (to keep it managed) | vdcsync forget networks.n (to keep it, no longer managed) ⇒ put networks.n back into the spec with `protect: false`; then vdcsync apply --target networks.n; then remove networks.n from the spec; then vdcsync apply (to have it deleted)',
    ],
    [
      'a server that retires',
      'servers.web~1',
      remove,
      { ...kept, bindings: [retired({ protect: true })] },
      "servers.web~1 retires, and the entry of servers.web had `protect: true`. Server 1 would be deleted with all data on its disks → vdcsync forget 'servers.web~1' (to keep it, no longer managed and still billed) ⇒ write `protect: false` in servers.web; then vdcsync apply (to have it deleted)",
    ],
  ]);

  const found = (recovered: unknown = true, more: object = {}): Given => ({
    bindings: [bound(web, '1', { recovered })],
    ...more,
  });
  const known = 'this state found server 1 under an idempotency key, and another spec may manage it. ';
  const deletes = 'Server 1 would be deleted with all data on its disks → ';
  const forgets = `remove servers.web from the spec; then ${forget(web)} ⇒ vdcsync adopt servers.web 1 (if only this spec manages 1)`;
  const unchanged = 'write `image: os-1` in servers.web (to keep it unchanged) | ';
  rows('recovered_unconfirmed', [
    ['a deletion', web, remove, found(), known + deletes + forgets],
    ['a replacement', web, replace, found(), known + deletes + unchanged + forgets],
    ['destroy', web, remove, { ...found(), input: { destroy: true } }, known + deletes + forgets],
    ['an update', web, update, found(), undefined],
    ['a deletion of another one', web, remove, found(false), undefined],
    ['a deletion without a binding', web, remove, {}, undefined],
  ]);

  const two = (key: string, id: string, more: object = {}): Given => ({
    bindings: [bound(key, id)],
    ...more,
  });
  rows('bound_already', [
    [
      'what another entry has',
      'ips.a',
      adopt('51'),
      two('ips.b', '51'),
      'address 51 is already bound to ips.b, which is in the spec too → remove `id` in ips.a | write `moved: {from: ips.b}` in ips.a; then remove ips.b from the spec',
    ],
    [
      'what another entry names by its id',
      web,
      replace,
      { bindings: [bound(web, '1')], entries: { 'servers.app': { id: '1' } } },
      'server 1 would be replaced, and servers.app names the same server → remove servers.web from the spec (if it is servers.app) | remove `id` in servers.app (if it is servers.web)',
    ],
    [
      'what another entry takes back, in a replacement',
      web,
      replace,
      { bindings: [bound(web, '1')], entries: { 'servers.app': { id: '1', held: { by: 'released' } } } },
      undefined,
    ],
    ['what no other entry names, in a replacement', web, replace, { bindings: [bound(web, '1')] }, undefined],
    ['what it has itself', 'ips.a', adopt('51'), two('ips.a', '51'), undefined],
    ['another one', 'ips.a', adopt('51'), two('ips.b', '52'), undefined],
    ['another kind', 'ips.a', adopt('51'), two('networks.n', '51'), undefined],
    ['an update', 'ips.a', { ...update, target: '51' }, two('ips.b', '51'), undefined],
    ['what came with a server', 'ips.a', adopt('51'), two(address, '51'), undefined],
    ['the address of a server', address, adopt('51'), two('ips.b', '51'), undefined],
    [
      'what another entry takes back',
      'ips.a',
      adopt('51'),
      { entries: { 'ips.b': { id: '51', held: { by: 'released' } } } },
      'address 51 is taken back by ips.b, which is in the spec too → remove `id` in ips.a | write `moved: {from: ips.b}` in ips.a; then remove ips.b from the spec',
    ],
    ['what another entry names', 'ips.a', adopt('51'), { entries: { 'ips.b': { id: '51' } } }, undefined],
  ]);

  const orphan = 'servers.web~1.public_ipv4';
  const orphaned = (more: object = {}): Given => ({
    bindings: [bound(orphan, '51', { parentId: '1', orphaned: true, ...more })],
    parts: { ips: [ip(51)] },
  });
  rows('prune_disabled', [
    [
      'an address whose server is gone, and whose key has another one',
      orphan,
      remove,
      orphaned(),
      "servers.web~1.public_ipv4 came with a server that is gone, and settings.prune is false. With `prune: true`, address a51 would be deleted → vdcsync forget 'servers.web~1.public_ipv4' (to keep it, no longer managed and still billed) ⇒ write `prune: true` under `settings` (to delete it, and each other resource that has left the spec)",
    ],
    ['the same with prune', orphan, remove, { ...orphaned(), settings: 'prune: true' }, undefined],
    [
      'what has left the spec',
      'networks.n',
      remove,
      gone(),
      'networks.n has left the spec, and settings.prune is false. With `prune: true`, network 3 would be deleted → put networks.n back into the spec (to keep it managed) | vdcsync forget networks.n (to keep it, no longer managed) ⇒ write `prune: true` under `settings` (to delete it, and each other resource that has left the spec)',
    ],
    [
      'what has left the spec, without a binding',
      'networks.z',
      remove,
      {},
      'networks.z has left the spec, and settings.prune is false. With `prune: true`, network  would be deleted → put networks.z back into the spec (to keep it managed) | vdcsync forget networks.z (to keep it, no longer managed) ⇒ write `prune: true` under `settings` (to delete it, and each other resource that has left the spec)',
    ],
    ['with prune', 'networks.n', remove, { ...gone(), settings: 'prune: true' }, undefined],
    ['destroy', 'networks.n', remove, { ...gone(), input: { destroy: true } }, undefined],
    ['by the spec', 'networks.n', { ...remove, byFile: true }, gone(), undefined],
    ['no deletion', 'networks.n', { verdict: 'release' }, gone(), undefined],
    ['what is in the spec', 'networks.n', remove, {}, undefined],
    ['a server that retires', 'servers.web~1', remove, { bindings: [retired()] }, undefined],
    [
      'the address of a server that is gone',
      address,
      remove,
      { bindings: [bound(web, '1'), bound(address, '51')] },
      'servers.web.public_ipv4 came with a server that is gone, and settings.prune is false. With `prune: true`, address 51 would be deleted → write `public_ipv4: {reuse: true}` in servers.web (to let the new server use a free address) | vdcsync forget servers.web.public_ipv4 (to keep it, no longer managed and still billed) ⇒ write `prune: true` under `settings` (to delete it, and each other resource that has left the spec)',
    ],
    ['that of one that was never bound', address, remove, { bindings: [bound(address, '51')] }, undefined],
    [
      'the address of a server whose creation failed',
      address,
      remove,
      { bindings: [bound(web, '1', { tainted: 't' }), bound(address, '51')] },
      undefined,
    ],
    ['its firewall', wall, remove, { bindings: [bound(web, '1'), bound(wall, '1')] }, undefined],
    [
      'what has an expired entry',
      'networks.n',
      remove,
      { ...gone(), ...expired },
      'networks.n expired at 1, and settings.prune is false. With `prune: true`, network 3 would be deleted → remove `expires` in networks.n (to keep it managed) | vdcsync forget networks.n (to keep it, no longer managed) ⇒ write `prune: true` under `settings` (to delete it, and each other resource that has left the spec)',
    ],
    [
      'a server that retires, and has left the spec',
      'servers.web~1',
      remove,
      { bindings: [retired(), bound(web, '2')], drop: [web] },
      "servers.web~1 has left the spec, and settings.prune is false. With `prune: true`, server 1 would be deleted with all data on its disks → vdcsync forget 'servers.web~1' (to keep it, no longer managed and still billed) ⇒ write `prune: true` under `settings` (to delete it, and each other resource that has left the spec)",
    ],
  ]);

  rows('replace_not_allowed', [
    [
      'a replacement',
      web,
      asked,
      { bindings: [bound(web, '1')] },
      'image changes. In a replacement, server 1 would be deleted with all data on its disks → write `image: os-1` in servers.web (to keep it unchanged) ⇒ write `replace: allowed` in servers.web (to replace it)',
    ],
    ['an allowed one', web, replace, { bindings: [bound(web, '1')] }, undefined],
    [
      'an allowed one of an entry with an id',
      web,
      replace,
      { entries: { [web]: { id: '1' } } },
      'image changes. In a replacement, server  would be deleted with all data on its disks. vdcsync does not create an entry with `id:` → write `image: os-1` in servers.web (to keep it unchanged) ⇒ remove `id` in servers.web (to replace it)',
    ],
    ['an update', web, { ...asked, verdict: 'update' }, {}, undefined],
    ['one without an entry', 'networks.n', replace, gone(), undefined],
  ]);

  const project = { id: 4711, status: 'Suspended' } as never;
  const outliving = { bindings: [bound(address, '51')], parts: { project } };
  rows('project_not_active', [
    ['a creation', 'ips.a', create, { parts: { project } }, undefined],
    ['the same in an active project', web, create, { bindings: [bound(address, '51')] }, undefined],
    ['an update', web, update, outliving, undefined],
    [
      'a deletion first',
      web,
      { ...replace, order: 'delete_first' },
      { parts: { project } },
      'the project is Suspended: servers.web would be deleted, and the API would refuse to create it again →  ⇒ pay the open invoice, or have the project made Active again; then vdcsync apply',
    ],
    ['a creation first', web, replace, { parts: { project } }, undefined],
    ['an ordered creation', web, { ...create, order: 'delete_first' }, { parts: { project } }, undefined],
    ['what is not billed', wall, { ...replace, order: 'delete_first' }, { parts: { project } }, undefined],
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
  const lacks = (key: string) =>
    `waits for ${key}: the API refuses its values, so the new server would lack it → resolve ${key} first`;
  rows('dependency_blocked', [
    ['its own firewall, in a replacement', web, replace, refused(refusal(wall)), lacks(wall)],
    ['its own network interface', web, create, refused(refusal(card)), lacks(card)],
    ['its own firewall, in an update', web, update, refused(refusal(wall)), undefined],
    ['its own firewall with other values', web, create, refused(refusal(wall, { basis: 'x' })), undefined],
    ['nothing', web, create, refused(), undefined],
    ['another with other values', 'servers.app', create, refused(refusal(wall, { basis: 'x' })), undefined],
    [
      'the second of two',
      web,
      create,
      refused(refusal(wall, { basis: 'x' }), refusal('servers.app.firewall')),
      lacks('servers.app.firewall'),
    ],
    ['another kind', web, create, refused(refusal('servers.app.firewall', { kind: 'drive' })), undefined],
    [
      'a part that has left the spec',
      web,
      create,
      {
        ...refused(refusal('servers.app.firewall', { basis: digestOf(null) })),
        drop: [wall],
        bindings: [bound(wall, '1')],
      },
      undefined,
    ],
    ['a backup', web, create, refused(refusal('servers.web.backup')), undefined],
    ['a question', web, create, refused(refusal(wall, { blocked: { until: 'operator' } })), undefined],
    [
      'an open write',
      web,
      create,
      refused(refusal(wall, { phase: 'unknown', blocked: undefined })),
      undefined,
    ],
    ['a part', wall, create, refused(refusal(wall)), undefined],
  ]);

  const capped = (
    planned: string | undefined,
    settings = 'max_monthly_increase: 9',
    more: object = {},
  ): Given => ({
    settings,
    diff: { price: { known: '5' } },
    input: { plannedMost: () => planned, ...more },
  });
  rows('max_monthly_increase', [
    [
      'dearer than planned',
      'ips.a',
      create,
      capped('4'),
      'the price is higher than in the plan that settings.max_monthly_increase (9) was checked for → vdcsync apply',
    ],
    ['as planned', 'ips.a', create, capped('5'), undefined],
    ['cheaper than planned', 'ips.a', create, capped('6'), undefined],
    ['not planned', 'ips.a', create, capped(undefined), undefined],
    ['a plan', 'ips.a', create, { ...capped('4'), input: {} }, undefined],
    ['no limit', 'ips.a', create, capped('4', ''), undefined],
    ['the end of one', 'ips.a', create, capped('4', undefined, { endsReplacement: true }), undefined],
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
