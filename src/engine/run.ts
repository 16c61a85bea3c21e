import type { Desired } from '../core/desired.ts';
import type { KindName, ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { Spend, Verb } from '../core/plan.ts';
import type { WriteRequest } from '../core/ports.ts';
import type { Step } from '../core/progress.ts';
import type { Binding, Intent, StateChange } from '../core/state.ts';
import type { EngineDeps, Repeating } from './engine.ts';
import type { HoldScope } from './outcome.ts';
import type { ReadCache } from './read-cache.ts';
import { refuseOtherProject, type SurveyInput, survey, surveyAgain } from './survey.ts';
import type { WriteGate } from './write-gate.ts';

/** How old a look may be that an operation is decided on, in ms. */
const freshMs = 60_000;
const catalogueFreshMs = 10 * 60_000;

/** Why nothing of a class is sent any more in this run. */
export interface Hold {
  readonly code: string;
  readonly reason: string;
}

/** One run over one project: what its parts share, and nothing that outlives it. */
export interface Run {
  readonly deps: EngineDeps;
  readonly desired: Desired;
  readonly cache: ReadCache;
  readonly gate: WriteGate;
  /** Aborted: nothing new is sent. */
  readonly stop: AbortSignal;
  /** Aborted: every wait ends now. */
  readonly halt: AbortSignal;
  readonly repeating: Repeating | undefined;
  /** The state's bindings and open intents, as last made durable. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly intents: ReadonlyMap<ResourceKey, Intent>;
  /** The last look at everything; operations look again at their own part. */
  world: World;
  /** When servers of this run were accepted, for the time their firewalls took. Wall ms. */
  readonly openSince: Map<ResourceKey, number>;
  /** GPU packages refused for want of cards, by server. */
  readonly exhausted: Map<ResourceKey, readonly string[]>;

  kindOf(name: KindName): ResourceKind;
  /** Looks at everything; `since` (wall ms) is how old a read may be that no write has overtaken, now by default. */
  look(since?: number): Promise<World>;
  /** Looks at one resource again; `since` (wall ms) is how old the reads may be, a minute by default. */
  lookAgain(key: ResourceKey, since?: number): Promise<World>;
  /** Throws `FenceError` unless the token is the spec's project's, as of the last minute. */
  fence(): Promise<void>;
  hold(scope: HoldScope, request: WriteRequest, hold: Hold): void;
  heldBy(request: WriteRequest, spend: Spend): Hold | undefined;
  change(changes: readonly StateChange[]): Promise<void>;
  /** Reads the intent back, as it stands in the state. */
  refreshIntents(): Promise<void>;
  refreshBindings(): Promise<void>;
  tell(key: ResourceKey, verb: Verb, step: Step, detail: string, untilMs?: number): void;
  /** Live ids that the state knows, so that they are nobody's new ones. */
  known(kind: KindName): ReadonlySet<string>;
}

export interface RunOptions {
  readonly deps: EngineDeps;
  readonly desired: Desired;
  readonly cache: ReadCache;
  readonly gate: WriteGate;
  readonly stop: AbortSignal;
  readonly halt: AbortSignal;
  readonly repeating: Repeating | undefined;
}

/** Loads the state and takes a first look at the project. */
export async function startRun(options: RunOptions): Promise<Run> {
  const { deps, desired, cache, repeating } = options;
  const { store, clock, kinds, profile } = deps;
  const bindings = new Map<ResourceKey, Binding>();
  const intents = new Map<ResourceKey, Intent>();
  const holds = repeating?.holds ?? new Map<string, Hold>();

  const input = (since: number): SurveyInput => ({
    desired,
    bindings,
    kinds,
    profile,
    read: cache.since(since),
    catalogueRead: cache.since(clock.now() - catalogueFreshMs),
  });

  const run: Omit<Run, 'world'> & { world?: World } = {
    ...options,
    bindings,
    intents,
    openSince: new Map(),
    exhausted: new Map(),
    kindOf(name) {
      const kind = kinds.get(name);
      if (kind === undefined) throw new Error(`No such kind: ${name}`);
      return kind;
    },
    async look(since = clock.now()) {
      run.world = await survey(input(since));
      repeating?.onLook?.(run.world);
      return run.world;
    },
    async lookAgain(key, since = clock.now() - freshMs) {
      run.world = await surveyAgain(input(since), run.world as World, key);
      return run.world;
    },
    async fence() {
      refuseOtherProject(desired, await cache.since(clock.now() - freshMs).project());
    },
    hold(scope, request, hold) {
      holds.set(scope === 'operation' ? request.name : scope, hold);
    },
    heldBy: (request, spend) =>
      holds.get('everything') ??
      holds.get(request.name) ??
      (spend === 'adds' ? holds.get('spending') : undefined),
    async change(changes) {
      await store.change(changes, clock.now());
      await run.refreshBindings();
    },
    async refreshIntents() {
      const open = await store.openIntents();
      intents.clear();
      for (const intent of open) intents.set(intent.key, intent);
    },
    async refreshBindings() {
      const stored = await store.bindings();
      bindings.clear();
      for (const binding of stored) bindings.set(binding.key, binding);
    },
    tell(key, verb, step, detail, untilMs) {
      const at = clock.now();
      deps.onEvent?.({
        type: 'progress',
        at,
        key,
        verb,
        step,
        detail,
        ...(untilMs === undefined ? {} : { untilMs }),
      });
    },
    known: (kind) =>
      new Set([...bindings.values()].filter((binding) => binding.kind === kind).map(({ id }) => id)),
  };
  await run.refreshBindings();
  await run.refreshIntents();
  await run.look(repeating === undefined ? undefined : 0);
  return run as Run;
}
