import { describe, expect, test } from 'vitest';
import type { ConfigError } from '../../../src/core/errors.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Subject, WorldParts } from '../../../src/core/kind.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import { createWorld } from '../../../src/core/world.ts';
import { clearNewKeys, giveBack, isOutdated, takeBack } from '../../../src/engine/claims/line.ts';
import { stubRun } from '../intents/stub-run.ts';

const web = 'servers.web' as ResourceKey;
const bound = (key: string, id: string, applied: string, more: object = {}) =>
  ({ key, id, kind: 'server', applied, boundAt: 1, ...more }) as unknown as Binding;
const inside = (key: string, parentId: string) => bound(key, parentId, 'x', { kind: 'firewall', parentId });
const [one, two] = [bound('servers.web~2001', '2001', 'small'), bound('servers.web', '2002', 'large')];

/** A server of another size is replaced, unless `grown` can be made of `small` in place. */
const server = {
  diff: ({ desired, binding }: Subject, seen: unknown) => {
    const [from, to] = [binding?.applied, (desired?.value as { size?: string })?.size];
    if (seen === undefined) return { verdict: { verdict: 'create', changes: [] } };
    if (from === 'odd') return { verdict: { verdict: 'blocked' } };
    if (from === to) return { verdict: { verdict: 'unchanged' } };
    return {
      verdict: { verdict: to === 'grown' ? 'update' : 'replace', changes: [{ path: 'size', from, to }] },
    };
  },
};

interface Given {
  readonly bindings?: readonly Binding[];
  readonly size?: string;
  readonly entry?: object | null;
  readonly gone?: readonly string[];
  readonly intents?: readonly object[];
  readonly waiting?: readonly object[];
  readonly repeating?: true;
  /** Closed writes that an operator gave up. */
  readonly given?: readonly object[];
}

/** The entry of `servers.web` asks for a size, and servers may retire from its key. */
function scene(given: Given = {}) {
  const { bindings = [one, two], size = 'small', entry = {}, gone = [], intents = [], waiting = [] } = given;
  const desired = { key: web, kind: 'server', managed: true, value: { size }, ...entry };
  const subjects = new Map<ResourceKey, object>(
    bindings.map((binding) => [binding.key, { key: binding.key, kind: binding.kind, binding }]),
  );
  if (entry !== null) subjects.set(web, { ...(subjects.get(web) ?? { key: web, kind: 'server' }), desired });
  const there = bindings.filter(({ key, kind }) => kind === 'server' && !gone.includes(key));
  const observed = new Map(there.map(({ key, id }) => [key, { id }]));
  const settings = { drift: 'correct' };
  const calls: unknown[] = [];
  const { run } = stubRun({
    past: given.given ?? [],
    more: {
      world: createWorld({ subjects, observed, settings, ips: [], networks: [] } as unknown as WorldParts),
      bindings: new Map(bindings.map((each) => [each.key, each])),
      intents: new Map((intents as readonly Intent[]).map((each) => [each.key, each])),
      moves: {
        waiting,
        renew: (next: object) => void calls.push(next),
        keep: async () => void calls.push('kept'),
      },
      refresh: async (since?: number) => void calls.push(`refresh ${since}`),
      mode: { repeating: given.repeating },
    },
  });
  (run.deps as { kinds: unknown }).kinds = new Map([['server', server]]);
  return { run, calls };
}

const givenUp = (more: object = {}) => ({
  ...{ key: 'servers.web~2001', kind: 'server', verb: 'delete', phase: 'closed', outcome: 'abandoned' },
  ...{ request: { path: { id: 2001 } }, answer: { end: 'reported' } },
  ...more,
});

const exchanged = [
  { from: 'servers.web', to: 'servers.web~2002' },
  { from: 'servers.web~2001', to: 'servers.web' },
];

describe('src/engine/claims/line.ts: a retiring server as the spec asks for it', () => {
  async function taken(given: Given) {
    const { run, calls } = scene(given);
    const isHeld = await takeBack(run);
    return { isHeld, calls };
  }

  test('takes its key back, and the other server retires, each with its parts', async () => {
    const parts = [
      inside('servers.web~2001.firewall', '2001'),
      inside('servers.web.firewall', '2002'),
      bound('servers.web2', '2003', 'small'),
    ];
    expect(await taken({ bindings: [one, two, ...parts] })).toEqual({
      isHeld: false,
      calls: [
        {
          moves: [
            exchanged[0],
            { from: 'servers.web.firewall', to: 'servers.web~2002.firewall' },
            exchanged[1],
            { from: 'servers.web~2001.firewall', to: 'servers.web.firewall' },
          ],
          waiting: [],
        },
        'refresh undefined',
      ],
    });
  });

  test('a daemon plans from the reads that it has', async () => {
    expect((await taken({ repeating: true })).calls.at(-1)).toBe('refresh 0');
  });

  test.each<[string, Given]>([
    ['no server retires', { bindings: [two] }],
    ['the present server is as the spec asks', { size: 'large' }],
    ['both servers are as the spec asks', { bindings: [one, bound('servers.web', '2002', 'small')] }],
    ['the present server changes in place', { size: 'grown' }],
    ['the retiring server has other values too', { size: 'third' }],
    ['the retiring server cannot be compared', { bindings: [bound('servers.web~2001', '2001', 'odd'), two] }],
    ['the retiring server is gone', { gone: ['servers.web~2001'] }],
    [
      'the retiring server failed',
      { bindings: [bound('servers.web~2001', '2001', 'small', { tainted: { since: 0, reason: 'x' } }), two] },
    ],
    ['the entry is not managed', { entry: { managed: false } }],
    ['the spec has no entry', { entry: null }],
    ['a rename waits', { waiting: [{}] }],
    ['a part retires', { bindings: [bound('servers.web~2001', '2001', 'small', { kind: 'firewall' }), two] }],
    ['the API has accepted its deletion, which was given up', { given: [givenUp()] }],
  ])('continues to retire if %s', async (_name, given) => {
    expect(await taken(given)).toEqual({ isHeld: false, calls: [] });
  });

  test.each<[string, object]>([
    ['whose deletion the API has not answered', givenUp({ answer: undefined })],
    ['of which a part was given up', givenUp({ kind: 'firewall' })],
    ['whose creation was given up', givenUp({ verb: 'create' })],
    ['beside another server whose deletion was given up', givenUp({ request: { path: { id: 2009 } } })],
  ])('takes its key back: a server %s', async (_name, intent) => {
    expect((await taken({ given: [intent] })).calls[0]).toMatchObject({ moves: exchanged });
  });

  test.each<[string, readonly Binding[], readonly object[]]>([
    ['once a server retires', [one, two], [{ outcome: 'abandoned', limit: 200 }]],
    ['not if no server retires', [two], []],
  ])('the writes that were given up are read %s', async (_name, bindings, expected) => {
    const { run } = scene({ bindings });
    const read: object[] = [];
    const intents = async (query: object) => {
      read.push(query);
      return [];
    };
    const store = { intents };
    await takeBack({ ...run, deps: { ...run.deps, store } } as never);
    expect(read).toEqual(expected);
  });

  test('takes the key as the oldest of several', async () => {
    const named = (id: string, boundAt: number) => bound(`servers.web~${id}`, id, 'small', { boundAt });
    const [old, middle, young] = [named('2003', 5), named('2001', 6), named('2004', 9)];
    for (const retiring of [
      [old, middle, young],
      [young, old, middle],
      [middle, young, old],
    ]) {
      const { calls } = await taken({ bindings: [...retiring, two] });
      expect(calls[0]).toMatchObject({ moves: [exchanged[0], { from: 'servers.web~2003', to: web }] });
    }
  });

  test('nothing of the key retires if the key has no server', async () => {
    expect((await taken({ bindings: [one], gone: [] })).calls[0]).toMatchObject({ moves: [exchanged[1]] });
    const left = inside('servers.web.firewall', '2002');
    expect((await taken({ bindings: [one, left] })).calls[0]).toMatchObject({
      moves: [{ from: 'servers.web.firewall', to: 'servers.web~2002.firewall' }, exchanged[1]],
    });
  });

  const open = (key: string, more: object = {}) => ({
    key,
    kind: 'server',
    verb: 'delete',
    phase: 'accepted',
    ...more,
  });
  const until = (what?: string) => ({
    phase: 'blocked',
    blocked: { code: 'x', reason: '', candidates: [], until: what },
  });
  test.each<[string, object, boolean]>([
    ['of the retiring server', open('servers.web~2001'), true],
    ['of the present server', open('servers.web'), true],
    ['inside the retiring server', open('servers.web~2001.firewall'), true],
    ['of another server', open('servers.web2'), false],
    ['that an operator must settle', open('servers.web', until()), true],
    ['that the API refused', open('servers.web', until('file')), false],
    ['that waits, once refused', open('servers.web', { ...until('file'), phase: 'waiting' }), true],
  ])('waits for an open write %s', async (_name, intent, waits) => {
    const { isHeld, calls } = await taken({ intents: [intent] });

    expect(isHeld).toBe(waits);
    expect(calls[0]).toMatchObject(waits ? { moves: [], waiting: [{}] } : { moves: exchanged, waiting: [] });
    expect(calls).toHaveLength(waits ? 1 : 2);
  });
});

describe('src/engine/claims/line.ts: an operator gives a key back', () => {
  const given = async (scenery: Given) => {
    const { run, calls } = scene(scenery);
    return { id: await giveBack(run, web, '2001'), calls };
  };
  const refused = (scenery: Given) =>
    given(scenery).then(
      () => expect.fail('not refused'),
      ({ message, misuse, remedies }: ConfigError) => ({ message, misuse, remedies }),
    );

  test('to a retiring server, and the present server retires', async () => {
    expect(await given({})).toEqual({ id: '2002', calls: [{ moves: exchanged, waiting: [] }, 'kept'] });
    expect((await given({ bindings: [one] })).id).toBeUndefined();
    expect((await given({ size: 'third' })).id).toBe('2002');
    expect((await given({ size: 'large', bindings: [two] })).id).toBe('2002');
    expect((await given({ size: 'large', entry: null, bindings: [one] })).id).toBeUndefined();
  });

  test('unless the spec asks for the present server, which the next apply would bind again', async () => {
    expect(await refused({ size: 'large' })).toEqual({
      message:
        'servers.web is bound to 2002, which has the values of the spec. Server 2001 retires, and has other values.',
      misuse: false,
      remedies: [
        {
          ...{ type: 'edit', path: 'servers.web', set: { size: 'small' }, when: 'to keep server 2001' },
          next: [{ type: 'run', command: 'apply', args: [] }],
        },
      ],
    });
    expect((await refused({ size: 'small', bindings: [one, bound(web, '2002', 'small')] })).remedies).toEqual(
      [],
    );
  });

  test('unless one of the servers has an open write', async () => {
    const intents = [{ key: web, kind: 'server', verb: 'update', phase: 'accepted' }];
    expect(await refused({ intents })).toEqual({
      message: 'servers.web has an open write (update). Let it end first.',
      misuse: false,
      remedies: [{ type: 'run', command: 'apply', args: [] }],
    });
  });
});

describe('src/engine/claims/line.ts: the spec is combined with the state again', () => {
  const found = { kind: 'server', id: '2001', holder: { is: 'found', key: web } };
  const asks = (more: object = {}) => ({ key: web, kind: 'server', managed: true, value: {}, ...more });
  const outdated = (held: object | undefined, resources: readonly object[], more: object = {}) => {
    const { run } = stubRun({
      more: {
        desired: { resources },
        bindings: new Map(),
        world: { subjects: new Map(resources.map((desired) => [(desired as Subject).key, { desired }])) },
        lines: () => ({ returning: () => new Map(held === undefined ? [] : [[web, held]]) }),
        moves: { waiting: [] },
        ...more,
      },
    });
    return isOutdated(run);
  };
  const named = [asks({ key: 'servers.other' }), asks({ key: 'servers.b', id: '2001' })];
  const bindings = new Map([['servers.a', bound('servers.a', '2001', 'small')]]);

  test.each<[string, boolean, boolean]>([
    ['a key of the line was answered with a resource', outdated(found, [asks()]), true],
    ['the plan has it already', outdated(found, [asks({ held: { by: 'found' }, id: '2001' })]), false],
    ['the plan has another object', outdated(found, [asks({ held: { by: 'found' }, id: '2000' })]), true],
    ['the entry has that id', outdated(found, [asks({ id: '2001' })]), true],
    ['no plan has read the entry', outdated(found, [], { world: { subjects: new Map() } }), true],
    ['the key has no entry', outdated(found, [], { world: { subjects: new Map([[web, {}]]) } }), true],
    ['one was released', outdated({ ...found, holder: { is: 'released', formerKey: web } }, [asks()]), false],
    ['a rename waits', outdated(found, [asks()], { moves: { waiting: [{}] } }), false],
    ['the state has no resource', outdated(undefined, [asks()]), false],
    ['an entry names the id of a key that has left', outdated(undefined, named, { bindings }), true],
    ['no key has that id', outdated(undefined, named), false],
  ])('if %s', (_name, is, expected) => {
    expect(is).toBe(expected);
  });
});

describe('src/engine/claims/line.ts: a key that a rename waits for', () => {
  /** `seen`: whether each read in turn shows the resource of the key. */
  async function cleared({ seen = [false, false], code = 'moved_onto_bound', isDry = false, reads = true }) {
    const calls: unknown[] = [];
    let read = 0;
    const bindings = [two, inside('servers.web.firewall', '2002')];
    const note = (name: string) => (given?: unknown) =>
      void calls.push(given === undefined ? name : [name, given]);
    const { run } = stubRun({
      more: {
        world: createWorld({
          subjects: new Map([[web, { key: web, kind: 'server', binding: two, desired: { key: web } }]]),
          ...{ observed: new Map(), settings: { drift: 'correct' }, ips: [], networks: [] },
        } as unknown as WorldParts),
        bindings: new Map(bindings.map((each) => [each.key, each])),
        moves: { waiting: [{ blocked: { key: web, code } }], free: note('free'), renew: note('renew') },
        change: async (changes: unknown) => note('change')(changes),
        observe: async (key: ResourceKey) => {
          read += 1;
          calls.push(`observe ${key}`);
        },
        ...{ read: async (work: () => unknown) => (reads ? work() : undefined), stop: 'stop' },
        ...{ cache: { forgetLists: note('forget') }, refresh: async () => note('refresh')() },
      },
    });
    const gone = { verdict: { verdict: 'release', gone: true, reason: 'it is gone' } };
    const kind = {
      diff: ({ desired }: Subject) =>
        desired === undefined && !seen[read] ? gone : { verdict: { verdict: 'delete' } },
    };
    Object.assign(run.deps, { kinds: new Map([['server', kind]]) });
    Object.assign(run.deps.clock, { sleep: async (ms: number) => void calls.push(`sleep ${ms}`) });
    await (isDry ? clearNewKeys(run, true) : clearNewKeys(run));
    return calls;
  }

  const ended = [
    { type: 'release', key: web, gone: true, reason: 'it is gone' },
    { type: 'release', key: 'servers.web.firewall', gone: false, reason: 'deleted with its server' },
  ];
  const again = ['sleep 60000', `observe ${web}`];

  test.each<[string, Parameters<typeof cleared>[0], readonly unknown[]]>([
    ['is free after two empty reads', {}, [...again, ['change', ended], 'renew', 'forget', 'refresh']],
    ['is free in a plan after one read', { isDry: true }, [['free', ended], 'forget', 'refresh']],
    ['keeps a resource that exists', { seen: [true] }, []],
    ['keeps a resource that the second read shows', { seen: [false, true] }, again],
    ['keeps its resource without a second read', { reads: false }, ['sleep 60000']],
    ['keeps its resource if the rename waits for another reason', { code: 'open_write' }, []],
  ])('%s', async (_name, given, calls) => {
    expect(await cleared(given)).toEqual(calls);
  });
});
