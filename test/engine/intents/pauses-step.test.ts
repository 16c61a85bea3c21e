import { describe, expect, test } from 'vitest';
import type { PauseScope } from '../../../src/core/claims.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import { type Operation, operationId, type Plan } from '../../../src/core/plan.ts';
import { resolveText } from '../../../src/core/remedy.ts';
import type { Pause } from '../../../src/engine/deps.ts';
import {
  heldClasses,
  heldSpending,
  keepRefused,
  lift,
  pauseClass,
  pausedBefore,
  withPauses,
} from '../../../src/engine/intents/pauses.ts';
import { Texts } from '../../support/texts.ts';
import { intentOf, sentAt, stubRun } from './stub-run.ts';

const key = (name: string) => name as ResourceKey;
const web = key('servers.web');
const since = 'paused since 1970-01-01 00:00:00 UTC: no';
interface Refused {
  readonly scope?: PauseScope;
  readonly kind?: string;
  readonly verb?: string;
  readonly code?: string;
  readonly token?: string;
  readonly at?: number;
  readonly name?: string;
  readonly unpaid?: true;
}
const claim = ({
  scope = 'spending',
  kind = 'server',
  verb = 'create',
  code = 'odd',
  token = 't',
  at = 0,
  ...more
}: Refused = {}) => ({
  ...{ kind: 'project', id: `paused ${scope}`, identity: {}, at },
  holder: { is: 'paused', scope, kind, verb, code, reason: 'no', token, ...more },
});
const baseline = { kind: 'project', id: '1', identity: {}, at: 5, holder: { is: 'baseline' } };
const depsWith = (...claims: object[]) => stubRun({ claims: [baseline, ...claims] });
const operated: Refused = { scope: 'operation' };
const of = (kind: string, verb: string, code = 'odd'): Refused => ({ ...operated, kind, verb, code });
const written = (kind: string, verb: string, spend: string) =>
  ({ kind, verb, spend }) as unknown as Operation;

const operation = (verb: Operation['verb'], name: string, more: object = {}): Operation => {
  const { kind } = takeApart(key(name));
  const spend = verb === 'create' && /server|ip/.test(kind) ? 'adds' : verb === 'delete' ? 'reduces' : 'none';
  return {
    id: operationId(verb, key(name)),
    key: key(name),
    kind,
    verb,
    changes: [],
    needs: [],
    spend,
    risk: 'safe',
    ...more,
  } as Operation;
};
const id = (verb: Operation['verb'], name: string) => operationId(verb, key(name));

/** The remedies of pauses, and what they hold of a plan. */
const texts = new Texts(import.meta.dirname, 'pauses-step.txt');

describe('src/engine/intents/pauses.ts', () => {
  test('a refusal is recorded, for this run and for later runs', async () => {
    const { run, calls } = stubRun();
    const write = intentOf({ kind: 'server' });
    const refusal = { code: 'odd', reason: 'no' };
    await pauseClass(run, write, 'everything', refusal);
    await pauseClass(run, write, 'everything', refusal, 'operation');
    const paused = ['pause', 'everything', write.request, refusal];
    const { name } = write.request;
    const claimed = (scope: string, id: string) => {
      const holder = { is: 'paused', scope, kind: 'server', verb: 'create', ...refusal, token: 't', name };
      return [
        'change',
        [{ type: 'claim', claim: { kind: 'project', id, identity: {}, holder, at: sentAt } }],
        sentAt,
      ];
    };
    expect(calls).toEqual([
      ...[paused, claimed('everything', 'paused everything')],
      ...[paused, claimed('operation', 'paused create server')],
    ]);
  });

  test.each<[string, Refused, object, boolean]>([
    ['every write', { scope: 'everything' }, written('network', 'delete', 'none'), true],
    ['its operation, by another verb', operated, written('server', 'delete', 'reduces'), false],
  ])('an accepted write ends the pause of %s', async (_name, refused, write, ends) => {
    const { run, calls } = depsWith(claim(refused));
    await lift(run.deps, write as Operation);
    const reason = 'the API accepts these writes again';
    expect(calls).toEqual(
      ends ? [['change', [{ type: 'unclaim', object: claim(refused), reason }], sentAt]] : [],
    );
  });

  const minute = 60_000;
  test.each<[string, Refused, { status?: string; now?: number }, (number | null)?]>([
    ['spending, half an hour', {}, { now: 29 * minute }, 30 * minute],
    ['spending, no longer', {}, { now: 30 * minute }],
    ['spending, as long as the project is not Active', {}, { status: 'Suspended', now: 100 * minute }, null],
    ['spending, until the project is Active again', { unpaid: true }, { now: minute }],
    ['spending, by another token', { token: 'other' }, {}, 30 * minute],
    ['every write, half an hour', { scope: 'everything' }, { status: 'Suspended' }, 30 * minute],
    ['an operation by its name', { scope: 'operation', name: 'createServer' }, {}, 30 * minute],
    ['no operation without a name', { scope: 'operation' }, {}],
  ])('a process of many runs pauses %s', async (_name, refused, { status = 'Active', now = 1 }, probeAt) => {
    const holding = { token: 't', status, now, probeMs: 30 * minute };
    const { scope = 'spending', name = scope } = refused;
    const held = { scope: name, code: 'odd', reason: 'no', since: 0, probeAt };
    expect(heldClasses([claim(refused)] as never, holding)).toEqual(probeAt === undefined ? [] : [held]);
  });

  test('a run keeps to the refusals of earlier runs, and records that the project is not Active', async () => {
    const keeping = async (status: string, refused: Refused) => {
      const { run, calls } = depsWith(claim(refused));
      const pauses = new Map<string, Pause>();
      const claims = new Map([['it', claim(refused)]]);
      await keepRefused({ ...run, claims, world: { project: { status } } } as never, { probeMs: 1 }, pauses);
      return [[...pauses.keys()], calls.flatMap(([, changes]) => changes)];
    };
    const at = sentAt;
    const marked = { type: 'claim', claim: claim({ at, unpaid: true }) };
    expect(await keeping('Active', { at })).toEqual([['spending'], []]);
    expect(await keeping('Suspended', { at })).toEqual([['spending'], [marked]]);
    expect(await keeping('Suspended', { at, unpaid: true })).toEqual([['spending'], []]);
    expect(await keeping('Suspended', { at, scope: 'everything' })).toEqual([['everything'], []]);
    expect(await keeping('Active', { at, unpaid: true })).toEqual([[], []]);
  });
  test.each<[string, Refused, 'held' | 'passes']>([
    ['spending', {}, 'held'],
    ['spending, by another token', { token: 'other' }, 'held'],
    ['writes without a scope', { scope: 'everything', code: 'insufficient_scope' }, 'held'],
    ['every write', { scope: 'everything', code: 'http_401' }, 'held'],
    ['every write, for a request of a wrong form', { scope: 'everything', code: 'http_405' }, 'held'],
    ['every write, by another token', { scope: 'everything', token: 'other' }, 'passes'],
    ['its operation', { scope: 'operation' }, 'held'],
    ['its operation, without permissions', { scope: 'operation', code: 'insufficient_privileges' }, 'held'],
  ])('a pause of %s blocks a deletion that makes room', async (name, refused, is) => {
    const second = [written('network', 'create', 'none'), written('server', 'create', 'adds')];
    const paused = await pausedBefore(depsWith(claim(refused)).run.deps, second, {
      key: web,
      verb: 'delete',
    });
    if (is === 'passes') return expect(paused).toBeUndefined();
    expect(paused).toMatchObject({ code: refused.code ?? 'odd', reason: since });
    expect(resolveText(paused?.remedies ?? []).replaceAll(' | ', '\n')).toBe(texts.of(`a pause of ${name}`));
    expect(
      await pausedBefore(depsWith(claim(refused)).run.deps, [], { key: web, verb: 'delete' }),
    ).toBeUndefined();
  });

  test.each<[string, Refused, boolean]>([
    ['the deletion after it', { scope: 'operation', verb: 'delete' }, true],
    ['spending', {}, false],
  ])('a pause of %s blocks a creation that comes first: %s', async (_name, refused, isHeld) => {
    const second = [written('server', 'delete', 'adds')];
    const paused = await pausedBefore(depsWith(claim(refused)).run.deps, second, {
      key: web,
      verb: 'create',
    });
    expect(paused !== undefined).toBe(isHeld);
  });

  test('the pause of spending has a text of its own', async () => {
    const { store } = depsWith(claim({ scope: 'everything' }), claim({ token: 'other' })).run.deps;
    const held = await heldSpending(store);
    expect(held?.reason).toBe(since);
    expect(resolveText(held?.remedies ?? [])).toBe(
      'pay the open invoice, or have the project made Active again; then vdcsync apply',
    );
    expect(await heldSpending(depsWith(claim({ scope: 'everything' })).run.deps.store)).toBeUndefined();
  });

  /** The blocked keys of the plan, each with the command that follows the end of the pause. */
  const plan = async (
    operations: readonly Operation[],
    refused: Refused,
    blocked: readonly object[] = [],
  ) => {
    const made = { operations, blocked, summary: {} } as unknown as Plan;
    const reckon = (left: readonly Operation[]) => ({ reckoned: left.map((each) => each.key) });
    const held = await withPauses(depsWith(claim(refused)).run.deps, { plan: made, reckon: reckon as never });
    const { reckoned } = held as unknown as { reckoned?: readonly string[] };
    const text = held.blocked.map(({ key: name, verb, code, reason, remedies = [] }) => {
      const next = /(?:then |^)(vdcsync .*|resolve .*)$/.exec(resolveText(remedies))?.[1] ?? '';
      return `${verb} ${name}: ${code === 'dependency_blocked' ? reason : code}, ${next}`;
    });
    return { text, reckoned, isSame: held === made };
  };
  const first = { replacement: id('create', web) };
  const halves = [
    operation('delete', web, first),
    operation('create', web, { replacement: id('delete', web) }),
  ];
  const retired = key('servers.web~1');
  const newFirst = [
    operation('create', web, { replacement: id('delete', retired) }),
    operation('delete', retired, { replacement: id('create', web) }),
  ];
  const firewall = key('servers.web.firewall');
  const part = operation('create', firewall, { needs: [id('create', web)] });
  const spending: Refused = {};
  const needsWeb = { needs: [id('create', web)] };
  const needsN = { needs: [id('create', 'networks.n')] };
  const [ofNetwork, network] = [of('network', 'create'), operation('create', 'networks.n')];
  const around = [network, ...halves.map((each) => ({ ...each, ...needsN }))];
  const earlier = [...newFirst, operation('delete', `${web}~0`, needsWeb)];
  const withAddress = [operation('delete', 'servers.web.public_ipv4'), operation('create', web)];
  const unprivileged = of('server', 'create', 'insufficient_privileges');
  const backup = operation('create', 'servers.web.backup');
  const setsWall = operation('update', firewall);
  const waits = (verb: string, name: string, other: string) =>
    `${verb} ${name}: waits for ${other}, which is paused, resolve ${other} first`;
  test.each<[string, readonly Operation[], Refused]>([
    ['a creation', [operation('create', 'ips.a')], spending],
    ['no adoption', [operation('adopt', 'ips.a', { spend: 'adds' })], spending],
    ['a replacement that begins with the creation', newFirst, spending],
    ['a replacement that begins with the creation, for a quota', newFirst, of('server', 'create')],
    ['a replacement that begins with the creation, for want of permissions', newFirst, unprivileged],
    ['both halves, for a quota', halves, of('server', 'create')],
    ['a server that retired before the next replacement', earlier, of('server', 'delete')],
    ['a server whose address is deleted for it', withAddress, spending],
    ['an operation between two halves', around, ofNetwork],
    ['a part of a replaced server', [...newFirst, part], of('firewall', 'update')],
    ['a part of a new server', [operation('create', web), part], of('firewall', 'create')],
    ['no part of a replaced server that is not paused', [...newFirst, part, network], ofNetwork],
    ['a backup of a replaced server', [...newFirst, backup], of('backup', 'create')],
    ['an update of a part of a replaced server', [...newFirst, setsWall], of('firewall', 'update')],
  ])('a plan pauses %s', async (name, operations, refused) => {
    const { text, isSame } = await plan(operations, refused);
    expect(text.join('\n')).toBe(texts.of(`a plan pauses ${name}`));
    expect(isSame).toBe(text.length === 0);
  });

  test('the plan counts the remaining operations, and keeps those that were blocked before', async () => {
    const before = { key: key('ips.z'), verb: 'create', code: 'old', reason: '', remedies: [] };
    const operations = [
      operation('create', web),
      part,
      operation('create', 'networks.n'),
      operation('create', 'ips.z', { spend: 'none' }),
    ];
    const { text, reckoned } = await plan(operations, spending, [before]);
    expect(text).toEqual([
      'create ips.z: old, ',
      'create servers.web: odd, vdcsync apply',
      waits('create', firewall, web),
    ]);
    expect(reckoned).toEqual(['networks.n']);
  });
});
