import type { Conclusive, WriteResult } from '../../../src/core/ports.ts';
import type { Intent } from '../../../src/core/state.ts';
import { idempotencyKey } from '../../../src/engine/claims/scope.ts';
import type { Run } from '../../../src/engine/run.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';

const hour = 3_600_000;

/** The wall time of the first send of each intent of {@link stubRun}. */
export const sentAt = 1_000 * hour;

/** A run without an API and a state, for the tables of one step. It keeps the steps that it is asked to record, and its other calls. */
export function stubRun({
  ageMs = 0,
  past = [],
  claims = [],
  more = {},
}: {
  ageMs?: number;
  past?: readonly object[];
  claims?: readonly object[];
  /** Other members of the run. */
  more?: object;
} = {}) {
  const now = () => sentAt + ageMs;
  const recorded: { readonly stage?: object; readonly [field: string]: unknown }[] = [];
  const ends: { readonly outcome?: string; readonly [field: string]: unknown }[] = [];
  const calls: (readonly unknown[])[] = [];
  const noted =
    (name: string) =>
    (...given: readonly unknown[]) =>
      void calls.push([name, ...given]);
  const run = {
    deps: {
      clock: { now, monotonic: () => ageMs },
      random: { next: () => 0 },
      requestTimeoutMs: 20_000,
      profile: { timeScale: 1 },
      writes: { token: () => 't', room: async () => {}, digest: () => 'digest' },
      tasks: { earliest: async () => 9 },
      store: {
        ...{ intents: async () => past, claims: async () => claims, change: noted('change') },
        incarnation: async () => 0,
      },
      onEvent: noted('event'),
      kinds,
    },
    cache: { since: () => ({ apiNow: now }) },
    stopwatch: {
      since: (_id: string, moment: string, at: number) =>
        moment === 'begun' || moment === 'sent' ? now() - at : Number.NaN,
      mark: noted('mark'),
      isMarked: () => false,
    },
    kindOf: (name: Intent['kind']) => kinds.get(name),
    ...{
      bindings: new Map(),
      intents: new Map(),
      claims: new Map(),
      world: { subjects: new Map(), childrenOf: () => [] },
    },
    ...{ stop: new AbortController().signal, halt: new AbortController().signal, check: async () => 't' },
    gate: { isWaited: () => false, readyNext: () => {}, run: (write: () => unknown) => write() },
    observe: async () => {},
    ...{ report: noted('report'), change: noted('run.change'), mode: {}, desired: { projectId: 4711 } },
    update: async (intent: Intent, patch: { readonly stage?: object }) => {
      recorded.push(patch);
      return { ...intent, ...patch, ...patch.stage };
    },
    close: async (_intent: Intent, ended: object) => void ends.push({ ...ended }),
    ...more,
    facts: {
      ...{ answered: noted('answered'), pause: noted('pause') },
      ...{ expose: noted('expose'), supersede: noted('supersede') },
      ...{ exhaustedOf: () => [], pausedBy: () => undefined, plannedMost: () => undefined },
      ...('facts' in more ? (more.facts as object) : {}),
    },
  };
  return { run: asRun(run), recorded, ends, calls };
}

/** The members of a run by their group. */
const groups = {
  signals: ['stop', 'halt', 'grace', 'giveUp'],
  fence: ['check', 'read'],
  state: ['begin', 'update', 'close', 'change'],
  view: ['refresh', 'observe', 'observeIfOld'],
} as const;

/** A run of these members. The members of its groups may stand beside the groups: `stop` is `signals.stop`. */
export function asRun({ line, held, ...members }: Record<string, unknown>): Run {
  const grouped = Object.entries(groups).map(([group, names]) => {
    const given = names.flatMap((name) => (name in members ? [[name, members[name]]] : []));
    return [group, { ...(members[group] as object | undefined), ...Object.fromEntries(given) }];
  });
  const lines =
    line === undefined && held === undefined
      ? {}
      : { lines: () => ({ of: line, returning: () => ({ get: held }) }) };
  return { ...members, ...lines, ...Object.fromEntries(grouped) } as never;
}

interface Members extends Record<string, unknown> {
  readonly facts?: object;
  readonly deps?: { readonly store?: object; readonly writes?: object; readonly [name: string]: unknown };
}

/** The run with these members. Of its facts, dependencies, store and writes, it keeps those that are not named. */
export function runWith(
  run: Run,
  { facts, deps: { store, writes, ...deps } = {}, ...members }: Members,
): Run {
  return asRun({
    ...{ ...run, ...members },
    facts: { ...run.facts, ...facts },
    deps: {
      ...{ ...run.deps, ...deps },
      store: { ...run.deps.store, ...store },
      writes: { ...run.deps.writes, ...writes },
    },
  });
}

/** A conclusive answer with this status. */
export const answer = (status: number, more: Partial<Conclusive> = {}): Conclusive => ({
  ...{ type: 'answer', status, requestId: 'req_1', replayed: false },
  ...more,
});

/** How an API that stores refusals treats a used key. */
export const behaviour = { storesRefusals: true, reuse: { status: 409, code: 'reused' } };
/** The answers to a probe: of an unused key, of a key that has its answer already, and of a key that holds another one. */
export const fresh = answer(422, { code: 'invalid', invalidParams: [{ name: 'vdcsync_probe', reason: '' }] });
export const replayed = answer(422, { replayed: true });
export const reused = answer(409, { code: 'reused' });
export const lost: WriteResult = { type: 'ambiguous', reason: 'reset' };

/** @param scope of the spec whose key the intent has */
export function intentOf(more: object, scope?: string): Intent {
  const intent = {
    ...{ id: 'i', key: 'networks.x', kind: 'network', verb: 'create', phase: 'sending' },
    ...{ sends: 1, lost: 0, detail: 'no answer', incarnation: '0', attempt: 0, preimage: {} },
    request: { name: 'create_network', path: {}, body: {} },
    ...{
      createdAt: sentAt,
      firstSentAt: sentAt,
      firstSentApiAt: sentAt,
      lastSentAt: sentAt,
      lastSentApiAt: sentAt,
    },
    ...more,
  } as unknown as Intent;
  const { key, verb, incarnation, attempt } = intent;
  const of = { desired: { projectId: 4711, ...(scope === undefined ? {} : { scope }) } as never };
  const { idempotencyKey: recorded = idempotencyKey(of, { key, verb, incarnation, attempt }) } = intent;
  return { ...intent, idempotencyKey: recorded };
}
