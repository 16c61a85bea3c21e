import { describe, expect, test } from 'vitest';
import { type Claim, objectName } from '../../../src/core/claims.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { StateChange } from '../../../src/core/state.ts';
import {
  attributionOf,
  claimChanges,
  claimsOn,
  knownRegister,
  registerOf,
} from '../../../src/engine/claims/claims.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { worldOf } from '../../plan/support.ts';
import { load, sliders } from '../../support/rig.ts';
import { Texts } from '../../support/texts.ts';
import { asRun } from '../intents/stub-run.ts';

const hour = 3_600_000;
const now = 1_000 * hour;
const bound = (key: string, id: string, more: object = {}) =>
  ({ ...takeApart(key as ResourceKey), id, identity: {}, boundAt: 1, ...more }) as never;
const ip = (id: number, server: number | null = null) => ({ id, address: `a${id}`, server_id: server });
const card = (network: number) => ({ network_id: network, public: false });
const ignored = { is: 'ignored', by: 'operator' } as const;
const baseline = { kind: 'project', id: '4711', identity: {}, holder: { is: 'baseline' }, at: 1 } as const;
const claim = (kind: string, id: string, more: object = {}) =>
  ({ kind, id, identity: {}, holder: ignored, at: 1, ...more }) as Claim;
const onAddress = (id: string, more: object = {}) =>
  claim('ip', id, { identity: { address: `a${id}` }, ...more });
const deletion = (more: object = {}) => ({
  ...{ key: 'ips.old', kind: 'ip', verb: 'delete', phase: 'closed', outcome: 'done', closedAt: now - 1 },
  ...{ request: { path: { id: 51 } }, preimage: {} },
  ...more,
});
const creation = (key: string, more: object = {}) => ({
  ...{ key, kind: takeApart(key as ResourceKey).kind, verb: 'create', phase: 'sending' },
  ...{ request: { path: {} }, preimage: {} },
  ...more,
});
const answered = (id: string) => ({ phase: 'accepted', answer: { id, facts: {} } });
const absent = (more: object = {}) =>
  creation('servers.web', {
    ...{ phase: 'closed', outcome: 'absent', because: 'reported_absent', unconfirmed: { why: 'lost' } },
    ...more,
  });

interface Given {
  readonly spec?: string;
  readonly ips?: readonly object[];
  readonly servers?: readonly object[];
  readonly networks?: readonly object[];
  readonly observed?: Readonly<Record<string, object>>;
  readonly bindings?: readonly never[];
  readonly claims?: readonly Claim[];
  readonly intents?: readonly object[];
  /** The closed writes of the store, and those with the outcome `absent`. */
  readonly past?: readonly object[];
  readonly absent?: readonly object[];
  /** The objects of single reads, by kind and id; the lists of a second read. */
  readonly reads?: Readonly<Record<string, object>>;
  readonly again?: { readonly ips?: readonly object[]; readonly servers?: readonly object[] };
  readonly more?: object;
}

/** The changes of claims, and the reads for them. */
const texts = new Texts(import.meta.dirname, 'claims.txt');

/** A run that keeps its reads. Its state has a baseline unless it has no claims at all. */
function running(given: Given = {}) {
  const { spec = `servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`, claims = [baseline] } = given;
  const { ips = [], servers, networks = [], bindings = [], intents = [], reads = {}, again = {} } = given;
  const desired = load(spec);
  const parts = { ips, networks, observed: new Map(Object.entries(given.observed ?? {})) };
  const world = worldOf(desired, { ...parts, ...(servers && { servers }) } as never, bindings);
  const asked: string[] = [];
  const single = (kind: string) => async (id: number) => {
    asked.push(`${kind} ${id}`);
    return reads[`${kind} ${id}`];
  };
  const read = {
    findIp: single('ip'),
    findNetworkInterfaces: single('interfaces'),
    findServer: single('server'),
    ips: async () => again.ips ?? ips,
    ...(servers && { servers: async () => again.servers ?? servers }),
  };
  const run = {
    deps: {
      kinds,
      clock: { now: () => now, monotonic: () => now },
      reads: (sort: string) => (sort === 'operation' ? read : undefined),
      store: {
        intents: async ({ outcome, limit }: { outcome?: string; limit?: number }) => {
          asked.push(outcome ?? `past ${limit}`);
          return (outcome === 'absent' ? given.absent : given.past) ?? [];
        },
      },
    },
    cache: {
      since: (at: number) => {
        asked.push(`since ${(now - at) / 1000} s`);
        return read;
      },
      forgetLists: () => void asked.push('forget'),
    },
    bindings: new Map(bindings.map((each) => [(each as { key: string }).key, each])),
    intents: new Map(intents.map((each) => [(each as { key: string }).key, each])),
    claims: new Map(claims.map((each) => [objectName(each), each])),
    read: async (ask: (port: object) => Promise<unknown>) => ask(read),
    line: () => new Set(['line']),
    held: () => 'held',
    ...{ desired, world, mode: {} },
    ...given.more,
  };
  return { run: asRun(run), asked };
}

describe('src/engine/claims/claims.ts: the register', () => {
  const theirs = { ips: [ip(51, 9)] };
  test('has the claims, the lines and the holders of the run', async () => {
    const { run } = running({ ...theirs, claims: [baseline, claim('server', '9'), onAddress('51')] });
    const register = await registerOf(run);
    expect(register).toMatchObject({
      isNew: false,
      claims: [baseline, { id: '9' }, { id: '51' }],
      declaredAbsent: [],
    });
    expect([register.server('9').is, register.address(ip(51, 9) as never).is]).toEqual([
      'ignored',
      'ignored',
    ]);
    expect([register.line({ key: 'x' as never }), register.held('x' as never)]).toEqual([
      new Set(['line']),
      'held',
    ]);
    const known = knownRegister(run);
    expect(known).toMatchObject({
      isNew: false,
      claims: [baseline, { id: '9' }, { id: '51' }],
      declaredAbsent: [],
    });
    expect([known.server('9').is, known.held('x' as never), known.unlisted]).toEqual([
      'ignored',
      'held',
      undefined,
    ]);
  });

  test.each<[string, Given, object]>([
    ['a state without claims', { claims: [] }, { isNew: true }],
    ['a state with another claim', { claims: [claim('ip', '9')] }, { isNew: true }],
    ['a state with a baseline', {}, { isNew: false }],
  ])('%s', async (_name, given, expected) => {
    expect(await registerOf(running(given).run)).toMatchObject(expected);
  });

  test.each<[string, Given, string]>([
    ['an open write has made', { intents: [creation('ips.a', answered('51'))] }, 'pending'],
    ['no write has made', {}, 'unmanaged'],
    ['a deletion has just removed', { past: [deletion()] }, 'pending'],
    ['was removed two minutes ago', { past: [deletion({ closedAt: now - 120_000 })] }, 'unmanaged'],
    ['is being removed', { past: [deletion({ phase: 'accepted', closedAt: undefined })] }, 'unmanaged'],
    ['an update has changed', { past: [deletion({ verb: 'update' })] }, 'unmanaged'],
  ])('an address that %s', async (_name, given, is) => {
    const { run, asked } = running({ ips: [ip(51)], ...given });
    expect((await registerOf(run)).address(ip(51) as never).is).toBe(is);
    expect(asked.includes('past 100')).toBe(is === 'unmanaged' || given.past !== undefined);
  });

  test('an address whose key is bound to another one by now is unmanaged', () => {
    const binding = bound('ips.a', '51', { identity: { address: 'other' } });
    const spec = 'ips: {a: {}}\n';
    const observed = { 'ips.a': { id: '51', live: ip(51) } };
    const { run } = running({ spec, ips: [ip(51)], bindings: [binding], observed });
    expect(attributionOf(run).address(ip(51) as never).is).toBe('unmanaged');
  });

  test.each<[string, object, boolean]>([
    ['a purchase', absent(), true],
    ['a network', absent({ key: 'networks.n', kind: 'network' }), false],
    ['a deletion', absent({ verb: 'delete' }), false],
    ['a confirmed creation', absent({ unconfirmed: undefined }), false],
    ['an unused key', absent({ because: 'unused' }), false],
  ])('a creation that an operator has declared absent: %s', async (_name, intent, isOne) => {
    expect((await registerOf(running({ absent: [intent] }).run)).declaredAbsent).toHaveLength(isOne ? 1 : 0);
  });

  const n = { networks: [{ id: 3, name: 'n', server_count: 1 }] };
  const isAnswered = creation('servers.web', { id: 'i', ...answered('9') });
  const isDeleted = creation('servers.web', { verb: 'delete' });
  const inN = { reads: { 'interfaces 9': [card(3)] } };
  const once = ['since 60 s', 'interfaces 9'];
  const inNetwork = (id: number) => ({
    ...{ claims: [], bindings: [bound('servers.web', '1')] },
    observed: { 'servers.web': { id: '1', interfaces: [card(id)] } },
  });
  const counted = { network: 'n', servers: 1 };
  const gone = absent();
  test.each<[string, Given, readonly string[], object?]>([
    ['in a new state', { ...n, claims: [] }, ['since 60 s'], counted],
    ['in a state with a baseline', n, []],
    ['beside a server that is declared absent', { ...n, absent: [gone] }, ['since 60 s'], counted],
    ['beside an absent address', { ...n, absent: [absent({ key: 'ips.a', kind: 'ip' })] }, []],
    ['while a server is created', { ...n, absent: [gone], intents: [creation('servers.web')] }, []],
    ['while a server is deleted', { ...n, absent: [gone], intents: [isDeleted] }, ['since 60 s'], counted],
    ['beside a creation', { ...n, absent: [gone], intents: [creation('ips.a')] }, ['since 60 s'], counted],
    ['without more servers', { claims: [], networks: [{ id: 3, name: 'n', server_count: 0 }] }, []],
    ['with a server of this spec', { ...n, ...inNetwork(3) }, []],
    [
      'with a server that an address shows',
      { ...n, claims: [], ips: [ip(51, 9)], ...inN },
      [...once, 'past 100'],
    ],
    ['with a claimed server', { ...n, claims: [claim('server', '9'), claim('ip', '8')], ...inN }, once],
    ['with a known server', { ...n, claims: [], intents: [isAnswered], ...inN }, once],
    [
      'with a claimed and a known one',
      { ...n, claims: [claim('server', '9')], intents: [isAnswered], ...inN },
      once,
    ],
    ['with a server of this spec on another network', { ...n, ...inNetwork(4) }, ['since 60 s'], counted],
  ])('servers that no list shows, %s', async (_name, given, reads, expected) => {
    const { run, asked } = running(given);
    expect((await registerOf(run)).unlisted).toEqual(expected);
    expect(asked.filter((each) => each !== 'absent')).toEqual(reads);
  });

  test('the register of known facts leaves reads out', () => {
    expect(knownRegister(running({ ...n, claims: [] }).run)).toMatchObject({
      isNew: false,
      declaredAbsent: [],
    });
  });
});

const text = (change: StateChange) => {
  if (change.type === 'unclaim') return `unclaim ${objectName(change.object)}: ${change.reason}`;
  if (change.type !== 'claim') return change.type;
  const { claim: each } = change;
  const { holder } = each;
  const by = 'by' in holder ? ` by ${holder.by}` : '';
  const former = holder.is === 'released' ? [holder.formerKey, ...(holder.formerKeys ?? [])] : [];
  const of = former.length === 0 ? '' : ` of ${former.join(', ')}`;
  const missed = each.firstMissingAt === undefined ? '' : ` missed ${(now - each.firstMissingAt) / hour}`;
  const inside = each.parentId === undefined ? '' : ` in ${each.parentId}`;
  const since = each.at === now ? '' : ' before';
  const address = each.identity.address === undefined ? '' : ` ${each.identity.address}`;
  return `${objectName(each)}${address}${inside} ${holder.is}${by}${of}${missed}${since}`;
};
const changesOf = async (given: Given, plan: object = {}) => {
  const { run, asked } = running(given);
  const judged = { plan: { blocked: [], operations: [], ...plan }, register: await registerOf(run) };
  asked.length = 0;
  const changes = await claimChanges(run, judged as never);
  return [changes.map(text), asked] as const;
};

describe('src/engine/claims/claims.ts: the claims of a plan', () => {
  const web = `servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`;
  const left = (more = '') =>
    `${more}servers: {web: {id: 9, managed: false}}\nips: {a: {id: 7, managed: false}}\n`;
  const ignoring = `settings: {unmanaged: ignore}\n${web}`;
  const deletes = { operations: [{ key: 'servers.web', kind: 'server', verb: 'delete', target: '1' }] };
  const old = bound('servers.web', '1');
  const its = bound('servers.web.public_ipv4', '51');
  const [deletion] = deletes.operations;
  const [ofServer, ofIps] = [{ ips: [ip(52, 1)], bindings: [old] }, { ips: [ip(51, 9), ip(7)] }];
  const asked = { blocked: [{ key: 'servers.web', code: 'key_conflict' }] };
  const moved = 'servers: {web: {id: 9, managed: false, moved: {from: servers.a}}}\n';
  const reusing = `settings: {unmanaged: ignore}\n${web.replace('{new', '{reuse')}`;
  const naming = 'ips: {a: {id: 52}}\n';
  const claimed = (...of: readonly Claim[]) => ({ claims: [baseline, claim('server', '9'), ...of] });
  const another = claim('ip', '7', { identity: { address: 'x' } });
  const under = (formerKey: string) =>
    claimed(
      claim('server', '9', { holder: { is: 'released', by: 'file', formerKey, formerKeys: ['servers.z'] } }),
    );
  test.each<[string, Given, object?]>([
    ['nothing', {}],
    ['unmanaged entries', { spec: left(), ips: [ip(51, 9), ip(7), ip(52)] }],
    ['unmanaged entries, except for one with an open question', { spec: left(), ips: [ip(7)] }, asked],
    ['a renamed unmanaged entry', { spec: moved }],
    ['a renamed unmanaged entry, claimed under its earlier key', { spec: moved, ...under('servers.a') }],
    ['a renamed unmanaged entry, with an open question', { spec: moved, ...under('servers.a') }, asked],
    ['a renamed unmanaged entry, claimed under another key', { spec: moved, ...under('servers.b') }],
    ['a renamed entry with an id', { spec: moved.replace('managed: false, ', ''), ...under('servers.a') }],
    ['an unmanaged entry without an id', { spec: 'servers: {web: {managed: false}}\n' }, {}],
    ['a resource that is managed by its id', { spec: 'ips: {a: {id: 7}}\n', ips: [ip(7)] }, {}],
    ['unmanaged entries, bound before', { spec: left(), ...ofIps, bindings: [bound('ips.a', '7')] }],
    [
      'unmanaged entries, claimed before',
      { spec: left(), ...ofIps, ...claimed(onAddress('7'), onAddress('51')) },
    ],
    ['unmanaged entries, and a claim on another address', { spec: left(), ...ofIps, ...claimed(another) }],
    ['the leftovers of a deletion', { ips: [ip(51, 1), ip(52, 1)], bindings: [old, its] }, deletes],
    ['the leftovers of a deletion, one of them in an entry', { spec: web + naming, ...ofServer }, deletes],
    ['the leftovers of an update', ofServer, { operations: [{ ...deletion, verb: 'update' }] }],
    ['the leftovers of a deleted network', ofServer, { operations: [{ ...deletion, kind: 'network' }] }],
    ['the resources that the spec ignores', { spec: ignoring, ips: [ip(51, 9), ip(52)] }, {}],
    ['the resources that the spec does not ignore', { ips: [ip(51, 9), ip(52)] }, {}],
    ['an address that a server of this spec has, where others are ignored', { spec: reusing, ...ofServer }],
    [
      'an address that a claimed server has now, where an entry names it',
      { spec: naming, ips: [ip(51, 9), ip(52, 9)], ...claimed(onAddress('51')) },
    ],
    [
      'an address that a claimed server has now',
      { ips: [ip(51, 9), ip(52, 9), ip(53), ip(54, 8)], ...claimed(onAddress('51')) },
    ],
  ])('claims: %s', async (name, given, plan = {}) => {
    expect((await changesOf(given, plan))[0].join('\n')).toBe(texts.of(`claims: ${name}`));
  });

  const shown = {
    ...{ claims: [], ips: [ip(51)], spec: 'ips: {a: {}}\n' },
    bindings: [bound('ips.a', '51')],
  };
  const hidden = { bindings: [old], observed: { 'servers.web': { id: '1', interfaces: [] } } };
  const asks = (code: string) => ({ blocked: [{ key: 'ips.a', code }] });
  const isNew = { claims: [] };
  test.each<[string, Given, object, boolean, readonly string[]]>([
    ['a new state of an empty project', isNew, {}, true, []],
    ['a state that has one', {}, {}, false, []],
    ['a plan of a selection', { ...isNew, more: { mode: { selection: {} } } }, {}, false, []],
    ['a question about images', isNew, asks('image_taken_before'), false, []],
    ['a question about earlier names', isNew, asks('moved_from_unknown'), false, []],
    ['a question about unmanaged resources', isNew, asks('unmanaged_resources'), false, []],
    ['another objection', isNew, asks('protected'), true, []],
    ['unmanaged resources', { ...isNew, ips: [ip(51)] }, {}, false, []],
    ['ignored resources', { ...isNew, spec: ignoring, ips: [ip(51)] }, {}, true, []],
    ['an unlisted server', { ...isNew, networks: [{ id: 3, name: 'n', server_count: 1 }] }, {}, false, []],
    ['a list that lacks a server', { ...isNew, servers: [], ...hidden }, {}, false, []],
    ['a server in both reads', { claims: [claim('server', '9')], servers: [{ id: 9 }] }, {}, true, []],
    ['a list of servers', { ...isNew, servers: [] }, {}, true, []],
    ['an address in the second read', { ...isNew, again: { ips: [ip(51)] } }, {}, false, ['forget']],
    ['one in the second', { ...isNew, servers: [], again: { servers: [{ id: 9 }] } }, {}, false, ['forget']],
    ['one of two addresses', { ...shown, again: { ips: [ip(51), ip(52)] } }, {}, false, ['forget']],
    ['an address that both reads show', shown, {}, true, []],
  ])('the baseline of %s', async (_name, given, plan, isKnown, reads) => {
    const [changes, asked] = await changesOf(given, plan);
    expect(changes.includes('project 4711 baseline')).toBe(isKnown);
    expect(asked).toEqual(reads);
  });

  const missed = (hours: number, more: object = {}) => ({ firstMissingAt: now - hours * hour, ...more });
  const found = { is: 'found', key: 'servers.web' };
  const address = { claims: [onAddress('7', missed(1))] };
  const server = { claims: [claim('server', '9', missed(1))] };
  type Read = (ask: (port: object) => unknown) => unknown;
  const reads = (read: Read) => ({ more: { read } });
  const unlisted: Read = (ask) => ask({ findNetworkInterfaces: async () => undefined });
  test.each<[string, Given]>([
    ['a listed address', { claims: [onAddress('7')], ips: [ip(7)], more: { fenced: expect.fail } }],
    ['a server that is gone, where no read shows servers', { ...server, ...reads(unlisted) }],
    ['an address that no list shows', { claims: [onAddress('7')] }],
    ['another address with its id', { claims: [onAddress('7')], ips: [{ ...ip(7), address: 'b' }] }],
    ['an address that was absent half an hour ago', { claims: [onAddress('7', missed(0.5))] }],
    ['an address that was absent an hour ago', address],
    ['an address that its own read shows', { claims: [onAddress('7', missed(1))], reads: { 'ip 7': ip(7) } }],
    ['an address whose own read shows another one', { ...address, reads: { 'ip 7': { address: 'b' } } }],
    ['an address whose own read gets no answer', { ...address, ...reads(async () => undefined) }],
    ['an address that a list shows again', { claims: [onAddress('7', missed(2))], ips: [ip(7)] }],
    ['a server shown by its IP', { claims: [claim('server', '9'), onAddress('51')], ips: [ip(51, 9)] }],
    ['a server that a list shows', { claims: [claim('server', '9')], servers: [{ id: 9 }] }],
    ['a server that no list shows', { claims: [claim('server', '9')] }],
    ['a server that is gone', server],
    ['a server, by interfaces', { claims: [claim('server', '9', missed(1))], reads: { 'interfaces 9': [] } }],
    ['a server that its read shows', { ...server, reads: { 'server 9': {} } }],
    ['a found server', { claims: [claim('server', '9', missed(1, { holder: found }))] }],
    ['a found address', { claims: [onAddress('7', missed(1, { holder: found }))] }],
    ['a claimed network', { claims: [claim('network', '3', missed(1))] }],
    [
      'two addresses of which one is gone',
      {
        claims: [onAddress('7', missed(1)), onAddress('8', missed(1)), onAddress('9')],
        reads: { 'ip 7': ip(7) },
      },
    ],
  ])('the end of the claim on %s', async (name, given) => {
    const [changes, asked] = await changesOf({ ...given, claims: [baseline, ...(given.claims ?? [])] });
    const steps = [...changes, ...asked.map((each) => `reads ${each}`)];
    expect(steps.join('\n')).toBe(texts.of(`the end of the claim on ${name}`));
  });

  test('an object of a server keeps the fields of its claim', () => {
    const ips = [ip(51, 9), ip(53), ip(52, 1)];
    const addresses = ips.slice(0, 2) as never;
    const claims = claimsOn(running({ ips }).run, ignored, { servers: [9], addresses });
    const common = { holder: ignored, at: now };
    expect(claims).toStrictEqual([
      { kind: 'server', id: '9', identity: {}, ...common },
      { kind: 'ip', id: '51', identity: { address: 'a51' }, ...common, parentId: '9' },
      { kind: 'ip', id: '53', identity: { address: 'a53' }, ...common },
    ]);
  });
});
