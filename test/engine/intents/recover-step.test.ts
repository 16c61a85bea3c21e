import { describe, expect, test } from 'vitest';
import { type Claim, objectName } from '../../../src/core/claims.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { WriteResult } from '../../../src/core/ports.ts';
import type { Intent } from '../../../src/core/state.ts';
import { TransportError } from '../../../src/core/transport.ts';
import { SerialQueue } from '../../../src/core/work.ts';
import { reserving } from '../../../src/engine/intents/probe-key.ts';
import { recovered } from '../../../src/engine/run/drain.ts';
import {
  askLineAgain,
  isNextProven,
  recover,
  recoverLeft,
  recoverRenamed,
  unprovenKeys,
} from '../../../src/engine/run/recover.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { worldOf } from '../../plan/support.ts';
import { load, sliders } from '../../support/rig.ts';
import { Texts } from '../../support/texts.ts';
import { answer, fresh, intentOf, lost, replayed, reused, runWith, sentAt, stubRun } from './stub-run.ts';

const hour = 3_600_000;
/** The refusals of a probe: of an unused key, of a key that an earlier state fenced, and of a key that holds an answer. */
const [invalid, fenced, taken] = [fresh, replayed, reused];
const refused = answer(422, { code: 'invalid', replayed: true });
const unpaid = answer(402, { code: 'payment_required' });
const unsent: WriteResult = { type: 'unsent', reason: 'it may not go' };
const unused = [invalid, fenced];
const made = (id: string | undefined, task: unknown = null, replayed = true) =>
  answer(201, { replayed, data: { id } as never, task: task as never });
const ip = (id: number, server: number | null = null) => ({ id, address: `a${id}`, server_id: server });
const baseline = { kind: 'project', id: '4711', identity: {}, holder: { is: 'baseline' }, at: 1 } as const;
const spec = 'ips: {a: {}}\n';
const past = (key: string, more: object = {}) =>
  intentOf({
    ...{ id: `past ${key}`, key, kind: takeApart(key as ResourceKey).kind, phase: 'closed', outcome: 'done' },
    ...more,
  });

interface Given {
  readonly file?: string;
  readonly ips?: readonly object[];
  readonly networks?: readonly object[];
  readonly observed?: Readonly<Record<string, object>>;
  readonly bindings?: Readonly<Record<string, string>>;
  readonly claims?: readonly Claim[];
  readonly open?: readonly Intent[];
  readonly past?: readonly Intent[];
  readonly line?: readonly string[];
  /** The answers to the writes, in turn, and the results of reads about them. */
  readonly answers?: readonly WriteResult[];
  readonly seen?: readonly (object | undefined)[];
  readonly stuck?: true;
  readonly paused?: true;
  readonly incarnations?: Record<string, number>;
  /** Whether a write with this spending is paused, by the number of sends so far. */
  readonly held?: (spend: string, sends: number) => boolean;
  readonly storesRefusals?: boolean;
  /** The age of the last record of the state. */
  readonly idleMs?: number;
  readonly impossible?: readonly string[];
  readonly entries?: Readonly<Record<string, object>>;
  readonly more?: object;
}

/** A run whose writes get the answers, and the log of its steps. */
function running(given: Given) {
  const { file = spec, ips = [ip(51)], networks = [], line, claims = [baseline] } = given;
  const log: string[] = [];
  const changes: object[] = [];
  const asked: object[] = [];
  const begun: Intent[] = [];
  const stub = stubRun();
  const answers = [...(given.answers ?? [])];
  const seen = [...(given.seen ?? [])];
  const desired = load(file);
  const resources = desired.resources.map((each) => ({ ...each, ...given.entries?.[each.key] }));
  const bindings = Object.entries(given.bindings ?? {}).map(
    ([key, id]) =>
      ({ ...takeApart(key as ResourceKey), id, identity: {}, boundAt: 1, applied: null }) as never,
  );
  const parts = { ips, networks, observed: new Map(Object.entries(given.observed ?? {})) };
  const world = worldOf({ ...desired, resources } as never, parts as never, bindings);
  const intents = new Map((given.open ?? []).map((each) => [each.key as string, each]));
  const incarnations = given.incarnations ?? {};
  const writesOf = (kind: string) => ({
    request: ({ subject }: { subject: { key: string; desired?: { value: { name?: string } } } }) => {
      if (given.impossible?.includes(subject.key)) throw new Error('it needs another one');
      const body = { name: subject.desired?.value.name };
      return { name: `create_${kind}`, path: {}, body };
    },
    accept: ({ data }: { data: object }) => data,
    evidence: async (of: object, _read: unknown, known: (kind: string) => Iterable<string>) => {
      asked.push({ ...of, known: [...known(kind)] });
      return seen.shift();
    },
  });
  const run = runWith(stub.run, {
    ...{ world, desired: { ...desired, resources }, intents },
    bindings: new Map(bindings.map((each) => [(each as { key: string }).key, each])),
    claims: new Map(claims.map((each) => [objectName(each), each])),
    cache: { since: () => ({ apiNow: () => sentAt, findNetworkInterfaces: async () => [] }) },
    observe: async () => world,
    facts: {
      lineQuestions: new SerialQueue(),
      allPaused: () => (given.paused ? {} : undefined),
      pausedBy: (_request: object, spend: string) =>
        given.held?.(spend, log.filter((each) => each === 'send' || each === 'probe').length)
          ? { code: 'held' }
          : undefined,
    },
    line: ({ key }: { key: ResourceKey }) => new Set([key, ...(line ?? [])]),
    read: async (read: (port: object) => unknown) => read({}),
    kindOf: (kind: string) => ({
      ...kinds.get(kind as never),
      timing: { urgency: 1, deadlineMs: 600_000, showsWithinMs: 5_000 },
      writes: writesOf(kind),
    }),
    begin: async (intent: Intent) => {
      begun.unshift(intent);
      intents.set(intent.key, intent);
      const { name } = intent.request.body as { name?: string };
      const as = name === undefined ? '' : ` as ${name}`;
      log.push(`begin ${intent.key} ${intent.incarnation}.${intent.attempt}${as} for ${intent.recovers}`);
    },
    update: async (intent: Intent, { stage, ...patch }: { stage?: object }) => {
      const next = { ...(intents.get(intent.key) ?? intent), ...patch, ...stage } as Intent;
      intents.set(intent.key, next);
      changes.push({ ...patch, ...stage });
      return next;
    },
    close: async (
      intent: Intent,
      ended: { outcome: string; because?: string; text: string },
      then: readonly object[],
    ) => {
      expect(then.every((each) => typeof each === 'object')).toBe(true);
      intents.delete(intent.key);
      const isIts = ({ key, incarnation, attempt }: Intent) =>
        key === intent.key && incarnation === intent.incarnation && attempt === intent.attempt;
      const at = begun.findIndex(isIts);
      if (at >= 0) begun[at] = { ...intent, phase: 'closed', ...ended } as unknown as Intent;
      for (const each of then as readonly { type: string; key?: string }[])
        if (each.type === 'next_incarnation')
          incarnations[each.key ?? ''] = (incarnations[each.key ?? ''] ?? 0) + 1;
      changes.push(...then);
      const why = ended.because === undefined ? '' : ` (${ended.because})`;
      log.push(`${ended.outcome} ${intent.key}${why}: ${ended.text}`);
    },
    deps: {
      kinds,
      clock: { ...stub.run.deps.clock, sleep: async (ms: number) => void log.push(`sleep ${ms / 1000} s`) },
      tasks: {
        wait: async (watch: { id: string; sort: string; deadlineMs: number }) => {
          log.push(`task ${watch.id} of ${watch.sort} within ${watch.deadlineMs / 1000} s`);
          return { end: given.stuck ? 'stuck' : 'done' };
        },
      },
      store: {
        intents: async (of: { key?: string; outcome?: string; limit: number }) => {
          if (of.limit < 50) return [];
          return [...begun.filter(() => of.limit > 50), ...(given.past ?? [])].filter(
            (each) =>
              (of.key === undefined || each.key === of.key) &&
              (of.outcome === undefined || partOutcome(each) === of.outcome),
          );
        },
        incarnation: async (key: string) => incarnations[key] ?? 0,
        lastAttempt: async (key: string, _verb: string, incarnation: string) =>
          log.filter((each) => each.startsWith(`begin ${key} ${incarnation}.`)).length +
          (given.past ?? []).filter((each) => each.key === key && each.incarnation === incarnation).length -
          1,
        journal: async () => [{ at: sentAt - (given.idleMs ?? 0) }],
        claimProject: async () => {},
        note: async () =>
          Object.fromEntries(
            ['ip', 'server', 'network', 'iso'].map((kind) => [
              `create_${kind}`,
              { storesRefusals: given.storesRefusals ?? true, reuse: { status: 409, code: 'reused' } },
            ]),
          ),
      },
      writes: {
        send: async ({ probe }: { probe?: number }) => {
          log.push(probe === undefined ? 'send' : 'probe');
          return answers.shift() ?? lost;
        },
      },
    },
    ...given.more,
  });
  return { run, log, changes, asked, intents, calls: stub.calls };
}

function partOutcome(intent: Intent): string | undefined {
  return 'outcome' in intent ? intent.outcome : undefined;
}

/** The steps of the questions to keys, one in each line. */
const texts = new Texts(import.meta.dirname, 'recover-step.txt');

const play = async (given: Given) => {
  const all = running(given);
  const any = await recover(all.run, false);
  const stages = [...all.intents.values()].map(({ key, phase }) => `${key} is ${phase}`);
  return { ...all, steps: [...all.log, ...stages, ...(any ? ['found'] : [])] };
};

const open = (more: object = {}) =>
  intentOf({
    ...{ key: 'ips.a', kind: 'ip', phase: 'unknown', recovers: 'ips.a', incarnation: '0' },
    request: { name: 'create_ip', path: {}, body: { name: 'a' } },
    unconfirmed: { why: 'lost', question: { stage: 'asking', probes: 0 } },
    ...more,
  });
const live = { verdict: 'done', id: '7' };
const gone = { verdict: 'not_yet' };
const web = `servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`;

describe('src/engine/run/recover.ts', () => {
  /** No list shows another resource, and an entry has left the spec. */
  const leftEntry = { ips: [], bindings: { 'ips.left': '9' } };
  const withTask = made('7', { id: 't1' });
  const gones = [gone, gone];
  const reserved = [taken, taken, fenced];
  const [thrice, refusals] = [Array(3).fill(taken), Array(3).fill(unpaid)];
  const [certain, uncertain] = [true, false].map((is) => ({ ...live, certain: is }));
  const nameless = { answers: [taken, made(undefined)] };
  const [silent, goneThen] = [
    [...reserved, ...refusals],
    [taken, made('7'), ...unused],
  ];
  const goingToo = { bindings: { 'ips.old': '9' }, answers: [...reserved, ...unused] };
  const earlierHas = { line: ['ips.z'], answers: [...reserved, ...unused, taken, made('7')], seen: [live] };
  const secondNext = [...reserved, fenced, taken, taken, made('7')];
  const withoutId = { answers: [...reserved, taken, taken, made(undefined)], seen: [undefined] };
  const isLive = { answers: [taken, made('7')], seen: [live] };
  const lateHold = (spend: string, sends: number) => spend === 'none' && sends > 0;
  const named = (file: string) => ({ file: `ips: {a: {}${file}\n` });
  test.each<[string, Given]>([
    ['an unused key', { answers: unused }],
    ['a key that an earlier state fenced, and the next one', { answers: [fenced, ...unused] }],
    ['the answer of a live resource', isLive],
    ['an accepted probe', { answers: [made('7', null, false)], seen: [live] }],
    ['the answer of a resource that is gone', { answers: [taken, made('7'), ...unused], seen: gones }],
    ['the answer of one that is gone, with a task', { answers: [taken, withTask, ...unused], seen: gones }],
    ['the answer of one without a task', { answers: [taken, made('7', 'missing'), ...unused], seen: gones }],
    ['the answer of a resource that a later read shows', { answers: [taken, made('7')], seen: [gone, live] }],
    ['no read', { answers: [taken, made('7')], seen: [undefined] }],
    ['no second read', { answers: [taken, made('7')], seen: [gone] }],
    ['the answer of one whose task is stuck', { answers: [taken, withTask], seen: [gone], stuck: true }],
    ['an answer without an id, and a resource that reads show', { ...nameless, seen: [certain, live] }],
    ['an answer without an id, and reads that show no certain resource', { ...nameless, seen: [uncertain] }],
    ['a stored refusal', { answers: [taken, refused, ...unused] }],
    ['a key that refuses the original too', { answers: [...thrice, ...unused] }],
    [
      'a key that refuses the original too, and an earlier replacement',
      { answers: [...thrice, taken, ...unused] },
    ],
    ['that it is reserved, and an unmanaged resource', { answers: [taken, taken, fenced, ...unused] }],
    ['that it is reserved, an unmanaged resource, and one that goes', goingToo],
    ['that it is reserved', { ...leftEntry, answers: [taken, taken, fenced, ...unused] }],
    ['that it is reserved, and an earlier key the resource', { ...leftEntry, ...earlierHas }],
    ['that it is reserved, and the key after the next one the resource', { ...isLive, answers: secondNext }],
    ['that it is reserved, and of the next key nothing', { ...leftEntry, answers: silent }],
    ['that it is reserved, and the next key a resource without an id', { ...leftEntry, ...withoutId }],
    ['no replay', { answers: [taken, made('7', null, false)], seen: [live] }],
    ['a lost replay', { answers: [taken, lost] }],
    ['a replay that the API refuses for now', { answers: [taken, unpaid] }],
    ['a replay that is not sent', { answers: [taken, unsent, taken, made('7')], seen: [live] }],
    ['no answer at first', { answers: [lost, ...unused] }],
    ['a refusal for want of payment', { answers: Array(3).fill(unpaid) }],
    ['a class that is paused meanwhile', { answers: [unpaid], held: lateHold }],
    ['spending that is paused', { answers: [taken, taken, taken], held: (spend) => spend === 'adds' }],
    ['an API that stores no refusals', { storesRefusals: false }],
    ['eight keys that earlier states fenced', { answers: Array(9).fill(fenced) }],
    ['the answer of a resource that another entry names', { ...named(', b: {id: 7}}'), answers: goneThen }],
    [
      'the answer of a resource whose id a resource of another kind has',
      { ...isLive, ...named('}\nnetworks: {n: {id: 7}}') },
    ],
    ['two entries', { file: 'ips: {a: {}, b: {}}\n', answers: [...unused, taken, made('7')], seen: [live] }],
  ])('the key shows %s (%#)', async (name, given) => {
    expect((await play(given)).steps.join('\n')).toBe(texts.of(`the key shows ${name}`));
  });

  test.each<[string, Given]>([
    ['whose class is paused before', { held: (spend) => spend === 'none' }],
    ['whose request needs another resource', { impossible: ['ips.a'] }],
  ])('a key %s is not asked', async (_name, given) => {
    expect((await play(given)).steps).toEqual([]);
  });

  const server = 'servers: {web: {id: 9, managed: false}}\n';
  const network = 'networks: {n: {cidr: 10.1.0.0/24}}\n';
  const sameName = (...ids: string[]) => ({ observed: { 'networks.n': { sameName: ids } } });
  const ofFound = { entries: { 'ips.a': { id: '7', held: { by: 'found', identity: {} } } } };
  const isBound = { bindings: { 'ips.a': '7' } };
  const writes = { open: [open({ recovers: undefined })] };
  const old = { ips: [], line: ['ips.z'] };
  const unidentified = (more: object = {}): Claim => ({
    ...{ kind: 'project', id: 'servers.z', identity: {}, at: 1 },
    holder: { is: 'unidentified', key: 'servers.z' as ResourceKey, ...more },
  });
  const bareOne = `servers: {web: {${sliders}}}\n`;
  const besideLive = (cidr: string) => ({
    ...{ file: 'networks: {m: {cidr: 10.1.0.0/24}, n: {cidr: 10.2.0.0/24}}\n', ips: [] },
    bindings: { 'networks.n': '3' },
    observed: { 'networks.n': { id: '3', sameName: [], live: { id: 3, name: 'n', cidr, server_count: 0 } } },
  });
  const alone = { file: bareOne, ips: [] };
  const counted = { id: 3, name: 'n', server_count: 1 };
  const isPart = {
    bindings: { 'servers.web': '9' },
    observed: { 'servers.web': { id: '9', interfaces: [], addresses: [] } },
  };
  const leaving = (more: object = {}) => ({
    ips: [],
    open: [intentOf({ key: 'ips.left', kind: 'ip', ...more })],
  });
  const [once, isAddress] = [
    { incarnations: { 'ips.a': 1 } },
    { bindings: { 'servers.web.public_ipv4': '9' } },
  ];
  const ofNew = ', public_ipv4: {new: true}';
  const isNamed = unidentified({ settled: true });
  const claimed = (...of: readonly Claim[]) => ({ claims: [baseline, ...of] });
  const oneTaken = { file: network.replace('{n', '{m: {cidr: 10.2.0.0/24}, n'), ips: [], ...sameName('3') };
  const [ignoring, reporting] = ['settings: {unmanaged: ignore}\n', 'settings: {drift: report}\n'];
  const pair = (more: string) => `servers: {a: {${sliders}}, b: {${sliders}${more}}}\n`;
  test.each<[string, Given, string]>([
    ['an empty project', { ips: [] }, ''],
    ['a free address', {}, 'ips.a'],
    ['a network, beside a free address', { file: network }, 'networks.n'],
    ['a network whose name is taken', { file: network, ips: [], ...sameName('3') }, 'networks.n'],
    ['a network without another one of its name', { file: network, ips: [], ...sameName() }, ''],
    ['a server that no list shows', { ips: [], claims: [], networks: [counted] }, 'ips.a'],
    ['a file that ignores others', { file: ignoring + spec }, ''],
    ['a file that ignores others: a network', { file: ignoring + network, ...sameName('3') }, 'networks.n'],
    ['a key that this state has used', { past: [past('ips.a')] }, ''],
    ['a key that was not used since its resource is gone', { past: [past('ips.a')], ...once }, 'ips.a'],
    ['a key that this state has not sent', { past: [past('ips.a', { sends: 0 })] }, 'ips.a'],
    ['an earlier key, after its own key', old, 'ips.a ips.z'],
    ['both keys', { line: ['ips.z'] }, 'ips.a ips.z'],
    ['an earlier key that this state has used', { ...old, past: [past('ips.z')] }, ''],
    ['two networks, of which one has its name taken', oneTaken, 'networks.m networks.n'],
    ['a key with an open write, and an earlier key', { ...old, ...writes }, ''],
    ['a bound key', { ...isBound, observed: { 'ips.a': { id: '7', live: ip(7) } } }, ''],
    ['a bound key whose resource is gone', isBound, 'ips.a'],
    ['a bound key whose resource is gone, and no other resource', { ...isBound, ips: [] }, ''],
    ['a bound key whose resource is gone, with an open write', { ...isBound, ...writes }, ''],
    ['a key with an open write', writes, ''],
    ['a part', { file: web, ...isPart }, ''],
    ['a resource that is not managed', { file: server }, ''],
    ['a resource with an id', { file: 'ips: {a: {id: 7}}\n' }, ''],
    ['a found resource that is absent', ofFound, 'ips.a'],
    ['a found resource that exists', { ...ofFound, observed: { 'ips.a': { id: '7' } } }, ''],
    ['a found resource that is absent, beside drift reports', { file: reporting + spec, ...ofFound }, ''],
    ['a file that only reports drift', { file: reporting + spec }, 'ips.a'],
    ['a network and an address, beside a free address', { file: network + spec }, 'networks.n ips.a'],
    ['two servers without an address', { file: pair(''), ips: [] }, 'servers.a servers.b'],
    ['a server with an address, and one without', { file: pair(ofNew), ips: [] }, 'servers.a servers.b'],
    ['a server without an address, and an address', { file: `${bareOne}${spec}`, ips: [] }, ''],
    ['an address where another has left the spec', { ips: [], bindings: { 'ips.left': '9' } }, 'ips.a'],
    ['an address where another, which is being created, has left the spec', leaving(), 'ips.a'],
    ['an address where an earlier key of another is in question', leaving({ recovers: 'ips.b' }), ''],
    ['an address where a network has left the spec', { ips: [], bindings: { 'networks.left': '9' } }, ''],
    ['an address where that of a server has left the spec', { ips: [], ...isAddress }, ''],
    ['a network, beside one that is replaced', besideLive('10.9.0.0/24'), 'networks.m'],
    ['a network, beside one that stays', besideLive('10.2.0.0/24'), ''],
    ['a bare one, beside an unidentified', { ...alone, ...claimed(unidentified()) }, 'servers.web'],
    ['a bare server, beside one that the operator has named', { ...alone, ...claimed(isNamed) }, ''],
    [
      'a server with an address, beside an unidentified one',
      { file: web, ips: [], ...claimed(unidentified()) },
      '',
    ],
    ['a run that is to stop', { more: { stop: AbortSignal.abort() } }, ''],
    ['a run in which all is paused', { paused: true }, ''],
  ])('%s: the keys that are asked', async (_name, given, expected) => {
    const { log } = await play({ ...given, answers: [...unused, ...unused] });
    expect(log.flatMap((each) => /^begin (\S+)/.exec(each)?.[1] ?? []).join(' ')).toBe(expected);
    if (expected === '') expect(log).toEqual([]);
  });

  const asking = { open: [open({ sends: 0 })], answers: unused };
  const answeredLive = { answers: [taken, made('7')], seen: [live] };
  const earlierAsked = { open: [open({ key: 'ips.z', sends: 0 })], answers: [...unused, ...unused] };
  const sentOnce = { open: [open({ phase: 'sending' })] };
  const doubted = { why: 'conflict', question: { stage: 'taken', probes: 1, conflict: true } };
  test.each<[string, Given]>([
    ['a question without an answer', asking],
    ['a question in an empty project', { ...asking, ips: [] }],
    ['a question whose request was sent', { ...sentOnce, answers: unused }],
    ['a question that was sent under a fenced key', { ...sentOnce, answers: [fenced] }],
    ['a question whose request was sent, and that has an answer', { ...sentOnce, ...answeredLive }],
    ['a conflict', { open: [open({ unconfirmed: doubted })] }],
    ['an old question', { open: [open({ firstSentAt: sentAt - 24 * hour })] }],
    ['accepted', { open: [open({ phase: 'accepted', answer: { id: '7', facts: {} } })] }],
    ['an earlier key with an open write', { ...old, open: [open({ key: 'ips.z', recovers: undefined })] }],
    ['an earlier key with an open question', { ...old, ...earlierAsked }],
  ])('an earlier run left %s', async (name, given) => {
    expect((await play(given)).steps.join('\n')).toBe(texts.of(`an earlier run left ${name}`));
  });

  test('an earlier run left a question about the next key, and the present one is asked after it', async () => {
    const next = open({ incarnation: '1', sends: 0 });
    const { log } = await play({ open: [next], answers: [...unused, ...unused] });
    expect(log.filter((each) => each.startsWith('begin'))).toEqual(['begin ips.a 0.0 for ips.a']);
  });

  test('a conflict is asked about again once its entry was edited', async () => {
    const blocked = { code: 'key_conflict', reason: 'no', candidates: [] };
    const conflict = open({ phase: 'blocked', blocked, basis: 'sha256:before' });
    // Another incarnation was counted in the meantime.
    const counted = { incarnations: { 'ips.a': 1 }, past: [past('ips.a', { incarnation: '0' })] };
    const { log } = await play({ open: [conflict], answers: [taken], ...counted });
    expect(log).toContain('void ips.a: the entry was edited since');
    expect(log.find((each) => each.startsWith('begin'))).toMatch(/^begin ips\.a 0\./);
  });

  test('an earlier key gives the name of its entry, unless the entry has a name', async () => {
    const networks = (more = '') => `networks: {n: {cidr: 10.1.0.0/24${more}}}\n`;
    const bodies = async (file: string) =>
      (await play({ file, ips: [], line: ['networks.z'], answers: [...unused, ...unused] })).log.find(
        (each) => each.startsWith('begin networks.z'),
      );
    expect([await bodies(networks()), await bodies(networks(', name: x'))]).toEqual([
      'begin networks.z 0.0 as z for networks.n',
      'begin networks.z 0.0 as x for networks.n',
    ]);
  });

  test.each([
    ['its own name', {}, ['n', 'z']],
    ['a name in the spec', { named: true }, ['n']],
    ['no earlier key', { moved: undefined }, ['n']],
    ['the name of its earlier key', { moved: 'networks.n' }, ['n']],
  ])('a key that refuses the entry is asked under the name that a rename keeps: %s', async (_name, more, names) => {
    const entry = { moved: 'networks.z', named: false, ...more };
    const line = entry.moved === undefined ? [] : [entry.moved];
    const entries = { 'networks.n': entry };
    const file = 'networks: {n: {cidr: 10.1.0.0/24}}\n';
    const networks = [{ id: 3, name: 'n', cidr: '10.1.0.0/24' }];
    const observed = { 'networks.n': { sameName: networks } };
    const answers = [taken, taken, taken, made('3')];
    const { log } = await play({ file, networks, observed, entries, line, answers, seen: [live] });
    const begun = log.flatMap((each) => /^begin networks\.n 0\.\d as (\w+)/.exec(each)?.[1] ?? []);
    expect(begun.slice(0, 2)).toEqual(names);
    const isAsked = log.includes('void networks.n: a rename may have kept the name');
    expect(isAsked).toBe(names.length === 2);
    if (isAsked) expect(log.at(-1)).toContain('found under its idempotency key: 3');
  });

  const question = (stage: string, more: object = {}) => ({
    unconfirmed: { why: 'lost', question: { stage, probes: 1, ...more } },
  });
  const again = { phase: 'unknown', dueAt: sentAt };
  const unasked = { why: 'lost', question: { stage: 'taken', probes: 0 } };
  const unsentOnce = { phase: 'unknown', ...question('taken'), sends: 0 };
  const probedTwice = { phase: 'unknown', ...question('taken', { probes: 2 }) };
  const sending = [
    question('asking'),
    { phase: 'unknown', ...question('taken') },
    { phase: 'sending', ...question('taken'), sends: 1, lastSentAt: sentAt },
  ];
  test.each<[string, readonly WriteResult[], readonly object[]]>([
    ['its answer', [taken, made('7')], [...sending, { phase: 'sending' }, { type: 'claim' }]],
    ['a lost answer', [taken, lost], [...sending, { phase: 'unknown', ...question('taken'), lost: 1 }]],
    ['a conflict', [taken, taken], [...sending, { ...again, lost: 0, unconfirmed: doubted }]],
    ['a request that was not sent', [taken, unsent], [...sending, unsentOnce, probedTwice]],
    [
      'an answer without an id',
      [taken, made(undefined)],
      [...sending, { phase: 'sending' }, { ...again, unconfirmed: unasked }],
    ],
  ])('the record of a question, and of %s', async (_name, answers, expected) => {
    const { changes } = await play({ answers, seen: answers.includes(taken) ? [live] : [] });
    expect(changes.slice(0, expected.length)).toMatchObject(expected);
  });

  test('the reads about an answer', async () => {
    const { asked, calls } = await play({
      answers: [taken, made(undefined)],
      seen: [{ ...live, certain: true }, live],
      bindings: { 'ips.z': '9' },
    });
    expect(asked).toMatchObject([
      { phase: 'accepted', verb: 'create', changes: [], preimage: {}, known: ['9'] },
      {
        phase: 'accepted',
        answer: { id: '7', facts: {}, at: 0, to: 'unknown_send', end: 'reported' },
        known: [],
      },
    ]);
    expect(asked.at(-1)).toHaveProperty('answer.facts', {});
    expect(calls.map(([name, , what]) => [name, what])).toContainEqual(['report', 'queued']);
    const later = await play({ answers: [taken, made('7')], seen: [gone, live] });
    expect(later.calls.at(-1)?.slice(2)).toEqual(['checking', 'whether 7 still exists']);
  });

  const left = (more: object = {}) =>
    past('servers.old', {
      ...{ outcome: 'absent', because: 'gone', incarnation: '0' },
      entry: { value: { name: 'old' }, protect: false },
      request: { name: 'create_server', path: {}, body: { name: 'old' } },
      ...more,
    });
  test.each<[string, Given, boolean]>([
    ['a server whose creation is gone', { past: [left()] }, true],
    ['a server whose next incarnation was asked', { past: [left()], incarnations: {} }, false],
    ['an address', { past: [left({ key: 'ips.z', kind: 'ip' })], incarnations: { 'ips.z': 1 } }, false],
    ['a server that was created', { past: [left({ outcome: 'done' })] }, false],
    ['a deletion', { past: [left({ verb: 'delete' })] }, false],
    [
      'a server in the spec',
      { past: [left({ key: 'servers.web' })], file: web, incarnations: { 'servers.web': 1 } },
      false,
    ],
    ['an earlier creation', { past: [left({ id: 'later' }), left()] }, true],
    ['a creation without an entry', { past: [left({ entry: undefined })] }, false],
    ['an old creation', { past: [left({ firstSentAt: sentAt - 24 * hour })] }, false],
  ])('asks about an entry that has left: %s', async (_name, given, isAsked) => {
    const { run, log } = running({ incarnations: { 'servers.old': 1 }, ...given, answers: unused });
    await recoverLeft(run);
    expect(log.filter((each) => each.startsWith('begin'))).toEqual(
      isAsked ? ['begin servers.old 1.0 as old for servers.old'] : [],
    );
  });

  test('asks about an entry that has left with the request that was sent', async () => {
    const request = { name: 'create_server', path: {}, body: { name: 'older' } };
    const given = { past: [left({ request })], incarnations: { 'servers.old': 1 }, answers: [taken, taken] };
    const { run, log } = running(given);
    await recoverLeft(run);
    expect(log).toEqual(['begin servers.old 1.0 as older for servers.old', 'probe', 'send', 'probe']);
  });

  test.each([
    ['asked', [past('ips.a', { incarnation: '1', outcome: 'absent' })], true],
    ['not asked', [], false],
  ])('the next key of a bound resource was %s', async (_name, more, is) => {
    const { run } = running({ bindings: { 'ips.a': '7' }, past: [...more, past('ips.a')] });
    expect(await isNextProven(run, 'ips.a' as ResourceKey)).toBe(is);
  });

  const foreign = { because: 'reserved', outcome: 'void' };
  const reservation = { ...foreign, request: { name: 'allocate_ip', path: {}, body: {}, probe: reserving } };
  const unaskable = { id: 'q', because: 'unaskable', outcome: 'void' };
  test.each<[string, readonly Intent[], boolean]>([
    ['was never used', [], false],
    ['was used', [past('ips.a')], true],
    ['was used by an update', [past('ips.a', { verb: 'update' })], false],
    ['is used', [past('ips.a', { phase: 'sending' })], false],
    ['was asked, and is unused', [past('ips.a', { because: 'unused', sends: 0 })], true],
    ['has an unused next one', [past('ips.a', { because: 'unused', sends: 0, incarnation: '1' })], false],
    ['was declared absent', [past('ips.a', { because: 'reported_absent', sends: 0 })], true],
    ['was given up', [past('ips.a', { outcome: 'void' })], false],
    ['another state has reserved', [past('ips.a', foreign)], false],
    ['this state has reserved', [past('ips.a', reservation)], true],
    ['this state could not reserve', [past('ips.a', { ...reservation, because: 'used_elsewhere' })], false],
    ['was not sent', [past('ips.a', { sends: 0 })], false],
    ['was replayed', [past('ips.a', { because: 'replayed' })], false],
    ['could not be asked since', [past('ips.a', unaskable), past('ips.a')], true],
    ['showed the resource of another state', [past('ips.a', { answer: { to: 'unknown_send' } })], false],
  ])('a key that %s is proven: %s', async (_name, all, is) => {
    const { run } = running({ past: all, line: ['ips.z', 'ips.a'] });
    expect(await unprovenKeys(run, { key: 'ips.x' as ResourceKey })).toEqual(
      is ? ['ips.z'] : ['ips.z', 'ips.a'],
    );
  });

  const bare = `servers: {web: {${sliders}}}\n`;
  const ignored: Claim = {
    ...{ kind: 'ip', id: '51', identity: { address: 'a51' }, at: 1 },
    holder: { is: 'ignored', by: 'operator' },
  };
  const own = [{ id: 3, name: 'n', cidr: '10.1.0.0/24', is_default: false }];
  const main = [{ id: 31, name: 'default', cidr: '10.0.0.0/24', is_default: true }];
  const later = ['1.0', '2.0', '3.0'];
  const idle = { ips: [], claims: [baseline] };
  const aged = { ...idle, idleMs: 23 * hour };
  const sent = (hours: number, more: object = {}) =>
    past('servers.web', { outcome: 'absent', firstSentAt: sentAt - hours * hour, ...more });
  test.each<[string, Given, readonly string[]]>([
    ['an address', {}, ['0.0', '1.0', '2.0', '3.0']],
    ['a network', { ips: [], networks: own }, ['1.0', '2.0', '3.0']],
    ['a network and the default one', { ips: [], networks: [...main, ...own] }, ['1.0', '2.0', '3.0']],
    ['an address and the default network', { networks: main }, ['0.0', '1.0', '2.0', '3.0']],
    ['nothing but the default network', { ips: [], networks: main }, []],
    ['an address, and the state is not new', { claims: [baseline] }, ['0.0', '1.0', '2.0', '3.0']],
    ['an ignored address, and the state is not new', { claims: [baseline, ignored] }, []],
    ['nothing, and the state is a day old', aged, later],
    ['nothing, and the clock was set back', { ips: [], claims: [baseline], idleMs: -23 * hour }, later],
    ['nothing, and the state is younger', { ips: [], claims: [baseline], idleMs: 23 * hour - 1 }, []],
    [
      'nothing, the state is a day old, and the spec has an address too',
      { ...aged, file: bare + spec },
      later,
    ],
    ['nothing, and the last key is a day old', { ...idle, past: [sent(23)] }, later],
    ['nothing, and the last key is younger', { ...idle, past: [sent(22.99)] }, []],
    ['nothing, and the last key was recorded a day ago', { ...idle, past: [sent(23, { sends: 0 })] }, []],
    [
      'nothing, and the last key that was sent is a day old',
      { ...idle, past: [sent(0, { id: 'unsent', sends: 0 }), sent(23)] },
      later,
    ],
    ['an old state that has the server', { ...aged, bindings: { 'servers.web': '7' } }, []],
    ['an old state, beside an address', { ...aged, file: web }, []],
    ['an address, and the server has one too', { file: web }, ['0.0']],
    ['the server', { answers: [...unused, taken, made('7')], seen: [live] }, ['0.0', '1.0']],
  ])('the later keys of a server, if the project holds %s', async (_name, given, keys) => {
    const answers = Array.from({ length: 8 }, () => unused).flat();
    const { log, steps } = await play({ file: bare, claims: [], answers, ...given });
    expect(steps.includes('found')).toBe(given.seen !== undefined);
    expect(log.flatMap((each) => /^begin servers\.web (\S+)/.exec(each)?.[1] ?? [])).toEqual(keys);
  });

  test('the later keys of a server are asked once', async () => {
    const answers = Array.from({ length: 8 }, () => unused).flat();
    const { run, log } = running({ file: bare, claims: [], answers });
    await recover(run, false);
    const asked = log.length;
    expect(await recover(run, false)).toBe(false);
    expect(log.slice(asked)).toEqual([]);
  });

  test('a single refusal under a later key is unconfirmed, and the key is probed again', async () => {
    const answers = [...unused, taken, taken, made('7')];
    const { log } = await play({ file: bare, claims: [], answers, seen: [live] });
    expect(log.filter((each) => each === 'probe' || each === 'send').join(' ')).toBe(
      'probe probe probe probe send',
    );
    const { log: misread } = await play({
      file: bare,
      claims: [],
      answers: [...unused, taken, fenced, ...unused, ...unused],
    });
    expect(misread).not.toContain('send');
  });

  const z = (more: object = {}) => past('ips.z', { because: 'unused', sends: 0, outcome: 'absent', ...more });
  const asks = 'begin ips.z 0 for ips.a';
  const givenUp = z({ because: undefined, outcome: 'void' });
  const found = z({ because: 'found' });
  const askedTwice = [asks, 'probe', 'probe', 'absent ips.z'];
  const hasBought = [asks, 'probe', 'send', 'absent ips.z'];
  const next = ['begin ips.z 1 for ips.a', ...askedTwice.slice(1)];
  const isAsked = (id: string, moment: string) => id === 'past ips.z' && moment === 'asked';
  test.each<[string, Given, readonly string[], string?]>([
    ['is unused', { past: [z()], answers: unused }, askedTwice],
    ['was used', { past: [past('ips.z')], answers: unused }, askedTwice],
    ['was never used', { answers: unused }, askedTwice],
    ['showed a resource of another entry', { past: [z({ because: 'found', outcome: 'void' })] }, []],
    ['has bought since', { past: [z()], answers: [taken, made('7')], seen: [live] }, hasBought, 'ips.z'],
    ['cannot be asked', { past: [z()], storesRefusals: false }, []],
    ['showed a resource that is gone', { past: [found], answers: unused }, next],
    ['was given up', { past: [givenUp], answers: unused }, askedTwice],
    [
      'did not answer since it showed a resource that is gone',
      { past: [givenUp, found], answers: unused },
      next,
    ],
    ['was used since it showed a resource', { past: [past('ips.z'), found], answers: unused }, askedTwice],
    ['was asked in this run', { past: [z()], more: { stopwatch: { isMarked: isAsked } } }, []],
    ['is the only one', { past: [past('ips.a')], line: [] }, []],
  ])('before a purchase, an earlier key that %s', async (_name, given, steps, found) => {
    const { run, log, calls } = running({ line: ['ips.z'], ...given });
    const [entry] = run.desired.resources;
    expect(await askLineAgain(run, entry as never, 0)).toBe(found);
    const withoutAttempt = (line: string) => line.replace(/\.\d for /, ' for ');
    expect(log.map((each) => withoutAttempt(each).replace(/( \(\w+\))?: .*/, ''))).toEqual(steps);
    const marks = calls.filter(([name, , moment]) => name === 'mark' && moment === 'asked');
    expect(marks).toHaveLength(found === undefined && steps.length > 0 ? 1 : 0);
  });

  test('before a replacement, the next incarnation of an earlier key is asked', async () => {
    const { run, log } = running({ line: ['ips.z'], past: [past('ips.z')], answers: unused });
    const [entry] = run.desired.resources;
    expect(await askLineAgain(run, entry as never, 1)).toBeUndefined();
    expect(log[0]).toMatch(/^begin ips.z 1\.0 for ips.a/);
  });

  test.each([
    ['once it has its binding', [], true],
    ['not as long as it waits', [{}], false],
  ])('a rename that waited is asked about %s', async (_name, waiting, is) => {
    const steps: string[] = [];
    const more = {
      moves: { waiting },
      cache: { since: () => ({ apiNow: () => sentAt }), forgetLists: () => void steps.push('forget') },
      refresh: async () => void steps.push('refresh'),
    };
    const { run, log } = running({ answers: [taken, made('7')], seen: [live], more });
    expect(await recoverRenamed(run)).toBe(is);
    expect(steps).toEqual(is ? ['forget', 'refresh'] : []);
    expect(log.length > 0).toBe(is);
  });

  test('a failed read ends a question, and so does the end of the run; another error does not', async () => {
    const reason = new Error('stop');
    const { run } = running({ more: { stop: AbortSignal.abort(reason) } });
    const ask = (error: unknown) => recovered(run, () => Promise.reject(error));
    expect(await ask(new TransportError('reset', 'unknown', 'ECONNRESET'))).toBeUndefined();
    expect(await ask(reason)).toBeUndefined();
    await expect(ask(new Error('bug'))).rejects.toThrow('bug');
    expect(await recovered(run, async () => true)).toBe(true);
  });
});

describe('src/engine/run/recover.ts: before a destroy', () => {
  const used = past('ips.a', { sends: 1 });

  test.each<[string, Given, boolean]>([
    ['never used', {}, true],
    ['never used, beside a bound one', { file: 'ips: {a: {}, b: {}}', bindings: { 'ips.b': '9' } }, true],
    ['never used, of a spec that ignores others', { file: `settings: {unmanaged: ignore}\n${spec}` }, true],
    ['bound', { bindings: { 'ips.a': '7' } }, false],
    ['used', { past: [used] }, false],
    ['used, and the resource is gone', { past: [used], incarnations: { 'ips.a': 1 } }, false],
    ['used, beside one that was not', { file: 'ips: {a: {}, b: {}}', past: [used] }, true],
    ['named by its id', { file: 'ips: {a: {id: 7}}' }, false],
    ['of an unmanaged entry', { file: 'networks: {n: {managed: false}}' }, false],
    ['inside a server', { file: web, bindings: { 'servers.web': '1' } }, false],
  ])('the key of a resource is asked if it was %s', async (_name, given, isAsked) => {
    const { run, log } = running({ ips: [], ...given, answers: isAsked ? unused : [] });
    await recover(run, true);
    expect(log.length > 0).toBe(isAsked);
  });
});
