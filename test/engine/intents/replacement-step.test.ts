import { describe, expect, test } from 'vitest';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { Subject, World } from '../../../src/core/kind.ts';
import type { Operation } from '../../../src/core/plan.ts';
import type { Intent } from '../../../src/core/state.ts';
import { createWorld } from '../../../src/core/world.ts';
import {
  creationAfter,
  madeRoomFor,
  revalidate,
  secondHalfPaused,
  unresolvedBeside,
  unresolvedCreate,
  whyNotWanted,
} from '../../../src/engine/intents/revalidate.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { load } from '../../support/rig.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const key = (name: string) => name as ResourceKey;
const kindOf = (name: string) => takeApart(key(name)).kind;
const binding = (name: string, more: object = {}) =>
  ({ key: name, kind: kindOf(name), id: '1', identity: {}, applied: null, protect: false, ...more }) as never;
const create = { verdict: 'create', changes: [] };
const remove = { verdict: 'delete', changes: [] };
const replace = { verdict: 'replace', changes: [], reason: '', order: 'create_first' };

interface Given {
  /** Keys in the spec. The entry of a key is managed. */
  readonly declared?: readonly string[];
  readonly bound?: readonly string[];
  readonly there?: readonly string[];
  readonly verdicts?: Readonly<Record<string, object>>;
  /** The keys that must be gone before the operation of a key. */
  readonly inTheWay?: Readonly<Record<string, readonly string[]>>;
  readonly open?: readonly Intent[];
  readonly claims?: readonly object[];
  readonly held?: object;
  readonly settings?: object;
  readonly more?: object;
  readonly standing?: string;
  readonly destroy?: true;
  /** Keys of the line of each entry. */
  readonly line?: readonly string[];
  readonly ips?: readonly object[];
  readonly past?: readonly Intent[];
}

/** A run over a project in which each resource has the verdict that is given for its key: unchanged by default. */
function playing(given: Given) {
  const { declared = [], bound = declared, there = bound, verdicts = {}, inTheWay = {} } = given;
  const { open = [], past = [] } = given;
  const names = [...new Set([...declared, ...bound])];
  const subjects = new Map(
    names.map((name) => {
      const parent = /^(servers\.[^.]+)\./.exec(name)?.[1];
      const subject = {
        ...{ key: name, kind: kindOf(name) },
        ...(parent === undefined ? {} : { parent }),
        ...(declared.includes(name)
          ? { desired: { key: name, kind: kindOf(name), managed: true, value: {} } }
          : {}),
        ...(bound.includes(name) ? { binding: binding(name, { id: String(names.indexOf(name) + 1) }) } : {}),
      };
      return [key(name), subject as unknown as Subject];
    }),
  );
  const project = (status: string) => ({ id: 4711, name: 'shop', status }) as never;
  const { settings } = load('');
  const world = createWorld({
    ...{
      project: project('Active'),
      settings: { ...settings, ...given.settings },
      profile: { operations: {} },
    },
    ...{
      catalogue: { types: [], pricing: new Map(), images: new Map() },
      ips: given.ips ?? [],
      networks: [],
      subjects,
    },
    observed: new Map(there.map((name) => [key(name), { id: '1' }])),
    ...{ apiNow: sentAt, now: sentAt },
  } as never);
  const stubs = new Map(
    [...kinds].map(([name, kind]) => [
      name,
      {
        ...kind,
        diff: (subject: Subject) => ({ verdict: verdicts[subject.key] ?? { verdict: 'unchanged' } }),
        order: { goneBefore: (subject: Subject) => inTheWay[subject.key] ?? [] },
      },
    ]),
  );
  const made = stubRun({ claims: given.claims ?? [], more: given.more ?? {} });
  const ages: number[] = [];
  const run = runWith(made.run, {
    ...{
      world,
      desired: { projectId: 4711, settings: world.settings },
      mode: { destroy: given.destroy === true },
    },
    ...{
      line: (of: { key: ResourceKey }) => new Set([of.key, ...(given.line ?? [])]),
      held: () => undefined,
    },
    intents: new Map(open.map((each) => [each.key, each])),
    facts: { pausedBy: (_request: object, spend: string) => (spend === 'adds' ? given.held : undefined) },
    cache: {
      since: (at: number) => ({
        apiNow: () => undefined,
        project: async () => {
          ages.push(at);
          return project(given.standing ?? 'Active');
        },
      }),
    },
    deps: {
      kinds: stubs,
      clock: { now: () => sentAt, monotonic: () => 100_000 },
      store: {
        intents: async (filter: { readonly key?: string }) => {
          if (filter.key === undefined) made.calls.push(['intents', filter]);
          return past.filter((each) => each.key === filter.key);
        },
      },
    },
  });
  return { ...made, run, world, ages };
}

const idsOf = (operations: readonly Operation[]) => operations.map(({ id }) => id as string);
const web = 'servers.web';
const address = 'servers.web.public_ipv4';
const firewall = 'servers.web.firewall';

describe('src/engine/intents/revalidate.ts', () => {
  const creationIn = (given: Given, name: string, verb: Operation['verb']) => {
    const { run, world } = playing(given);
    return creationAfter(run, world, key(name), verb)?.id;
  };
  test.each<[string, Given, string, string?]>([
    ['the address of an undeclared server', { bound: [address], verdicts: { [address]: create } }, address],
    ['an unknown server', {}, web],
  ])('a deletion makes room for the creation of %s', (_name, given, name, expected) => {
    expect(creationIn(given, name, 'delete')).toBe(expected);
    for (const other of ['create', 'update', 'adopt'] as const)
      expect(creationIn(given, name, other)).toBeUndefined();
  });

  const whole = { declared: [web, address, firewall, 'servers.web.backup', 'ips.a', 'servers.b.firewall'] };
  const verdicts = {
    [web]: replace,
    [address]: remove,
    [firewall]: create,
    'servers.web.backup': create,
    'ips.a': remove,
    'servers.b.firewall': create,
  };
  test('the later writes of a replacement: the other half, the parts of the server, and their obstacles', () => {
    const { run, world } = playing({ ...whole, verdicts, inTheWay: { [web]: ['ips.a', web] } });
    expect(idsOf(madeRoomFor(run, world, key(web), 'delete'))).toEqual([
      ...['create:servers.web', 'delete:servers.web~1', 'delete:ips.a', 'create:servers.web.firewall'],
    ]);
    expect(idsOf(madeRoomFor(run, world, key(web), 'create'))).toEqual([
      ...['delete:servers.web~1', 'create:servers.web.firewall'],
    ]);
    const oldFirst = { ...verdicts, [web]: { ...replace, order: 'delete_first' } };
    const old = playing({ ...whole, verdicts: oldFirst });
    expect(madeRoomFor(old.run, old.world, key(web), 'create')).toEqual([]);
    expect(idsOf(madeRoomFor(old.run, old.world, key(web), 'delete'))).toEqual([
      ...['create:servers.web', 'create:servers.web.firewall'],
    ]);
    const lost = { ...verdicts, [web]: { ...create, lost: 'it is gone' } };
    const gone = playing({ ...whole, there: [], verdicts: lost, inTheWay: { [web]: ['ips.a', web] } });
    expect(idsOf(madeRoomFor(gone.run, gone.world, key(web), 'delete'))).toEqual([
      ...[
        'create:servers.web',
        'delete:ips.a',
        'delete:servers.web.public_ipv4',
        'create:servers.web.firewall',
      ],
    ]);
    for (const [name, verb] of [
      [web, 'update'],
      ['servers.z', 'create'],
    ] as const)
      expect(madeRoomFor(run, world, key(name), verb)).toEqual([]);
  });

  const paused = (scope: string, kind = 'server', verb = 'create') => {
    const holder = { is: 'paused', scope, kind, verb, code: 'odd', reason: 'no', token: 't' };
    return { claims: [{ kind: 'project', id: 'p', identity: {}, at: 1, holder }] };
  };
  const unconfirmed = { why: 'lost', question: { stage: 'fenced', probes: 0 } };
  const unresolved = (phase: string) =>
    intentOf({
      key: 'ips.a',
      kind: 'ip',
      phase,
      unconfirmed,
      preimage: { ips: [] },
      blocked: { candidates: [] },
    });
  const free = { ips: [{ id: 51, address: 'a', server_id: null }] };
  const beside = { open: [unresolved('blocked')], ...free };
  test.each<[string, Given, string, string?]>([
    ['a deletion while spending is paused', paused('spending'), 'delete', 'odd'],
    ['a deletion beside an unresolved creation', beside, 'delete', 'unresolved_create'],
    ['an update', paused('spending'), 'update'],
  ])('%s', async (_name, given, verb, code) => {
    const { run, world } = playing({ ...whole, verdicts, ...given });
    const progress = await secondHalfPaused(run, world, { key: key(web), request: {}, verb } as never);
    if (code === undefined) expect(progress).toBeUndefined();
    else expect(progress).toMatchObject({ now: 'blocked', code });
  });

  test('a creation waits for an unresolved one, or asks about it first', async () => {
    const wait = (phase: string, verb: string) => {
      const { run } = playing({ ...whole, verdicts, open: [unresolved(phase)], ...free });
      // The server takes any free address.
      const takesFree = { creation: { takesFree: () => 'any' } };
      const withTaking = new Map(
        [...run.deps.kinds].map(([name, kind]) => [name, { ...kind, ...takesFree }]),
      );
      const deps = { ...run.deps, kinds: withTaking } as never;
      return unresolvedCreate(
        { ...run, deps },
        { key: key(web), kind: 'server', verb: verb as Operation['verb'] },
      );
    };
    expect(await wait('blocked', 'create')).toMatchObject({ now: 'blocked', code: 'unresolved_create' });
    expect(await wait('unknown', 'create')).toEqual({ now: 'again', afterMs: 5_000, until: 'ips.a' });
    expect(await wait('blocked', 'delete')).toBeUndefined();
    const { run } = playing({ ...whole, verdicts, open: [] });
    expect(await unresolvedCreate(run, { key: key(web), kind: 'server', verb: 'create' })).toBeUndefined();
  });

  const another = intentOf({ key: 'servers.b', kind: 'server', phase: 'blocked', unconfirmed, blocked: {} });
  const gone = intentOf({ key: web, verb: 'delete', phase: 'closed', outcome: 'done', basis: 'b' });
  test.each<[string, string, readonly Intent[], boolean]>([
    ['a new server', 'create', [], true],
    ['the second half of a replacement', 'create', [gone], false],
    ['a deletion', 'delete', [], false],
    ['an undeclared server', 'create', [], false],
  ])('%s waits for a server that no read shows: %s', async (name, verb, past, waits) => {
    const declared = name === 'an undeclared server' ? [] : [web];
    const { run } = playing({ declared, bound: [], open: [another], past });
    const progress = await unresolvedCreate(run, {
      ...{ key: key(web), kind: 'server' },
      verb: verb as Operation['verb'],
    });
    expect(progress?.now).toBe(waits ? 'blocked' : undefined);
    // Without the word of the state, a second half is a new server.
    const other = unresolvedBeside(run, { key: key(web), verb: verb as Operation['verb'] });
    expect(other?.key).toBe(waits || past.length > 0 ? another.key : undefined);
  });
});

describe('src/engine/intents/revalidate.ts', () => {
  const changes = [{ path: 'cores', from: 1, to: 2 }];
  const update = { verdict: 'update', changes };
  const operation = (verb: string, more: object = {}) =>
    ({ key: key(web), kind: 'server', verb, changes: [], ...more }) as unknown as Operation;
  const wanted = 'the project or the spec has changed since the plan';
  const oldFirst = { ...replace, order: 'delete_first' };
  const isMet = { isMet: true, reason: 'the resource already has the declared values' };
  const odd = { verdict: 'blocked', code: 'odd', reason: 'not now', verb: 'create' };
  const exists = { reason: 'the resource that it replaces still exists' };
  test.each<[string, object | undefined, Operation, object?]>([
    ['a creation with another diff', { ...create, changes }, operation('create')],
    ['an update to other values', update, operation('update', { changes: [] }), { reason: wanted }],
    ['a resource that is unchanged', undefined, operation('update'), isMet],
    ['a resource that is blocked now', odd, operation('create'), { reason: 'not now' }],
    ['a creation before the deletion', oldFirst, operation('create'), exists],
    ['a creation in place of the old server', replace, operation('create')],
    ['an update in place of a replacement', oldFirst, operation('update'), { reason: wanted }],
  ])('%s', (_name, verdict, given, expected) => {
    const { run, world } = playing({
      declared: [web],
      verdicts: verdict === undefined ? {} : { [web]: verdict },
    });
    const found = whyNotWanted(run, world, given);
    if (expected === undefined) return expect(found).toBeUndefined();
    expect(found).toMatchObject({ now: 'overtaken', ...expected });
    expect(found !== undefined && 'isMet' in found).toBe('isMet' in expected);
  });

  test('a write inside a server whose identity is open waits, and a retiring server has its own changes', () => {
    const open = {
      verdict: 'blocked',
      code: 'identity_changed',
      reason: 'another',
      verb: 'update',
      identity: true,
    };
    const { run, world } = playing({
      declared: [web, firewall],
      verdicts: { [web]: open, [firewall]: update },
    });
    expect(
      whyNotWanted(run, world, operation('update', { key: key(firewall), kind: 'firewall', changes })),
    ).toMatchObject({ reason: 'first decide which live resource servers.web is bound to' });
    const old = 'servers.web~1';
    const retiring = playing({
      declared: [web],
      bound: [web, old],
      verdicts: { [old]: { ...remove, changes } },
    });
    expect(
      whyNotWanted(retiring.run, retiring.world, operation('delete', { key: key(old) })),
    ).toBeUndefined();
  });

  const check = async (given: Given, of: Operation) => {
    const made = playing(given);
    const found = await revalidate(made.run, made.world, of);
    return { ...made, reason: found?.reason };
  };
  const pruning = { prune: true };
  const old = 'servers.web~1';
  const ofOld = operation('delete', { key: key(old) });
  const leaves = { [old]: remove };
  const retired = {
    ...{ declared: [web, firewall], bound: [web, firewall, old], settings: pruning, verdicts: leaves },
  };
  const leaving = (name: string) => ({ bound: [name], verdicts: { [name]: remove } });
  const added = (name: string) => ({ declared: [name], bound: [], verdicts: { [name]: create } });
  const leavesWith = (verdict: object) => ({ ...retired, verdicts: { ...leaves, [firewall]: verdict } });
  const unbound = { ...retired, bound: [firewall, old], there: [web, firewall, old] };
  const inFlight = { ...retired, open: [intentOf({ key: web, kind: 'server' })] };
  const earlier = { line: ['networks.old'], open: [intentOf({ key: 'networks.old' })] };
  const inTheWay = { bound: ['ips.b'], inTheWay: { 'ips.a': ['ips.c', 'ips.b'] } };
  const beside = { bound: ['ips.a', 'ips.b'], inTheWay: { 'ips.a': ['ips.b'] }, settings: pruning };
  const isOpen = 'networks.old, an earlier key of networks.n, has an open write';
  const ofNetwork = (verb: string) => operation(verb, { key: key('networks.n'), kind: 'network' });
  const ofIp = (verb: string) => operation(verb, { key: key('ips.a'), kind: 'ip' });
  test.each<[string, Given, Operation, string?]>([
    ['an operation that is not wanted', { declared: [web] }, operation('delete'), wanted],
    ['an unknown resource', {}, operation('create'), wanted],
    ['a deletion that the spec does not permit', leaving('networks.n'), ofNetwork('delete'), 'prune'],
    ['a permitted deletion', { ...leaving('networks.n'), settings: pruning }, ofNetwork('delete')],
    [
      'a creation whose line has an open write',
      { ...added('networks.n'), ...earlier },
      ofNetwork('create'),
      isOpen,
    ],
    ['a retiring server whose successor is not bound', unbound, ofOld, 'servers.web is not complete'],
    ['a retiring server whose successor has an open write', inFlight, ofOld, 'servers.web is not complete'],
    ['a retiring server whose firewall needs no write', { ...retired, bound: [web, old] }, ofOld],
    ['a retiring server whose firewall is missing', leavesWith(create), ofOld, `${firewall} is not complete`],
    ['a retiring server whose firewall is blocked', leavesWith(odd), ofOld, `${firewall} is not complete`],
    [
      'a creation in place of a resource that is still bound',
      { ...added('ips.a'), ...inTheWay },
      ofIp('create'),
      'ips.b must be deleted first',
    ],
    ['a deletion beside a bound resource', { ...leaving('ips.a'), ...beside }, ofIp('delete')],
  ])('with fresh reads, %s', async (_name, given, of, expected) => {
    const { reason } = await check(given, of);
    if (expected === undefined) return expect(reason).toBeUndefined();
    expect(reason).toContain(expected);
  });

  const replaced = { declared: [web], verdicts: { [web]: oldFirst } };
  const half = operation('delete', { replacement: 'create:servers.web' });
  test('a deletion that makes room reads the status of the project, and no other write does', async () => {
    const stopped = await check({ ...replaced, standing: 'Suspended' }, half);
    expect(stopped.ages).toEqual([70_000]);
    expect(stopped.reason).toBeDefined();
    expect((await check({ ...added(web), standing: 'Suspended' }, operation('create'))).ages).toEqual([]);
  });

  test('only a purchase reads the register', async () => {
    const readsOf = async (given: Given, of: Operation) =>
      (await check(given, of)).calls.filter(([name]) => name === 'intents').length > 0;
    expect(await readsOf(added(web), operation('create'))).toBe(true);
    expect(await readsOf(added('networks.n'), ofNetwork('create'))).toBe(false);
    expect(
      await readsOf({ declared: [web], verdicts: { [web]: update } }, operation('update', { changes })),
    ).toBe(false);
    const made = playing({
      declared: [web, address],
      verdicts: { [web]: create, [address]: remove },
      settings: pruning,
    });
    const found = await revalidate(
      made.run,
      made.world as World,
      operation('delete', { key: key(address), kind: 'ip' }),
    );
    expect([found, made.calls.filter(([name]) => name === 'intents').length > 0]).toEqual([undefined, true]);
  });

  test('the second half of a replacement is no duplicate', async () => {
    const foreign = { ...added(web), ips: [{ id: 51, address: 'a', server_id: 9 }] };
    expect((await check(foreign, operation('create'))).reason).toContain('could be a duplicate');
    const ended = { key: web, verb: 'delete', phase: 'closed', outcome: 'done', basis: 'entry' };
    const deleted = intentOf(ended);
    const second = operation('create', { replacement: 'delete:servers.web' });
    expect((await check({ ...foreign, past: [deleted] }, second)).reason).toBeUndefined();
    // The key of the creation in this scope says nothing about a creation in the earlier one.
    const elsewhere = { ...foreign, past: [intentOf(ended, 'blue')] };
    expect((await check(elsewhere, second)).reason).toContain('could be a duplicate');
    const withAddress = {
      ...foreign,
      declared: [web, address],
      bound: [address],
      verdicts: { [web]: create, [address]: remove },
      settings: pruning,
    };
    const deletion = operation('delete', {
      key: key(address),
      kind: 'ip',
      replacement: 'create:servers.web',
    });
    expect((await check(withAddress, deletion)).reason).toContain('could be a duplicate');
  });
});
