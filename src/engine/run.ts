import type { Desired } from '../core/desired.ts';
import { patched } from '../core/intent.ts';
import { isInside, type KindName, type ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { Selection, Spend, Verb } from '../core/plan.ts';
import type { WriteRequest } from '../core/ports.ts';
import type { Step } from '../core/progress.ts';
import type { Binding, Intent, IntentOutcome, IntentPatch, StateChange } from '../core/state.ts';
import { rememberBackups } from './books/left-backups.ts';
import {
  type HeldMove,
  type Move,
  moveChanges,
  movedBindings,
  movesOf,
  ownNames,
  rememberMoves,
} from './books/moves.ts';
import type { EngineDeps, Hold, Repeating } from './deps.ts';
import type { HoldScope } from './intents/outcome.ts';
import { dropLifted } from './intents/standing-holds.ts';
import { createStopwatch, type Stopwatch } from './intents/stopwatch.ts';
import { asSaid, withoutManaged } from './last-words.ts';
import type { ReadCache } from './read-cache.ts';
import {
  lookAtOne,
  refuseOtherProject,
  refuseOtherState,
  type SurveyInput,
  subjectOf,
  survey,
  worldOf,
} from './survey.ts';
import type { WriteGate } from './write-gate.ts';

/** How old a look may be that an operation is decided on, in ms. */
const freshMs = 60_000;
const catalogueFreshMs = 10 * 60_000;

/** What a run is given. */
interface RunParts {
  readonly deps: EngineDeps;
  readonly desired: Desired;
  readonly cache: ReadCache;
  readonly gate: WriteGate;
  /** Aborted: nothing new is sent. */
  readonly stop: AbortSignal;
  /** Aborted: every wait ends now. */
  readonly halt: AbortSignal;
  readonly repeating: Repeating | undefined;
  /** The part of the plan that this run is about. */
  readonly selection: Selection | undefined;
}

/** One run over one project: what its parts share, and nothing that outlives it. */
export interface Run extends RunParts {
  readonly stopwatch: Stopwatch;
  /** The state's bindings and open intents, as last made durable. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly intents: ReadonlyMap<ResourceKey, Intent>;
  /** The last look at everything; operations look again at their own part. */
  world: World;
  /** As it was when the plan in hand was made. */
  planned: World | undefined;
  /** Servers whose purchase waits for a second look at what networks count. */
  readonly doubted: Set<ResourceKey>;
  /** When servers of this run were accepted, for the time their firewalls took. Monotonic ms. */
  readonly openSince: Map<ResourceKey, number>;
  /** Of the last answer to each key, also where its intent is closed. */
  readonly requestIds: Map<ResourceKey, string>;
  /** GPU packages refused for want of cards, by server. */
  readonly exhausted: Map<ResourceKey, readonly string[]>;
  /** Keys whose ids were given to other keys, which are the values. */
  readonly superseded: Map<ResourceKey, ResourceKey>;

  kindOf(name: KindName): ResourceKind;
  /** Looks at everything; `since` (monotonic ms) is how old a read may be that no write has overtaken, now by default. */
  look(since?: number): Promise<World>;
  /** Looks at one resource again; `since` (monotonic ms) is how old the reads may be, a minute by default. */
  lookAgain(key: ResourceKey, since?: number): Promise<World>;
  /**
   * Throws `FenceError` unless the token is the spec's project's, as of the last minute.
   * Gives the token's name, so that nothing goes out under another one.
   */
  fence(): Promise<string>;
  hold(scope: HoldScope, request: WriteRequest, hold: Hold): void;
  heldBy(request: WriteRequest, spend: Spend): Hold | undefined;
  /** Every write is held. */
  allHeld(): Hold | undefined;
  holdAll(hold: Hold): void;
  /** Ends the run: nothing of it goes on after this. */
  giveUp(cause: unknown): void;
  /** Each of these is durable when it resolves, and only then to be seen above. */
  begin(intent: Intent): Promise<void>;
  update(intent: Intent, patch: IntentPatch): Promise<Intent>;
  close(
    intent: Intent,
    outcome: IntentOutcome,
    detail: string,
    changes: readonly StateChange[],
  ): Promise<void>;
  change(changes: readonly StateChange[]): Promise<void>;
  /** Keys that the file has renamed, until the state says so too. */
  readonly moves: Move[];
  /** Those that cannot be made yet: nothing else is planned meanwhile. */
  readonly heldMoves: HeldMove[];
  /** Asks anew what can move, now that writes have been settled; the next look shows it. */
  renewMoves(): void;
  /** Makes the moves durable. */
  keepMoves(): Promise<void>;
  /** Bindings of what is inside a server. */
  boundIn(server: ResourceKey): readonly Binding[];
  tell(key: ResourceKey, verb: Verb, step: Step, detail: string, untilMs?: number, deadlineMs?: number): void;
  /** Live ids of the kind that are some key's already, so that they are nobody's new ones. */
  known(kind: KindName, but?: Intent): ReadonlySet<string>;
}

export interface RunOptions extends RunParts {
  /** All that is managed goes. */
  readonly destroy: boolean;
}

/** Loads the state, makes sure of the project, and takes a first look at it. */
export async function startRun(options: RunOptions): Promise<Run> {
  const { deps, cache, repeating } = options;
  const { store, clock, kinds, profile } = deps;
  refuseOtherState(options.desired, await store.info());
  const said = (binding: Binding) => (options.destroy ? asSaid(binding, options.desired) : binding);
  const stored = new Map((await store.bindings()).map((binding) => [binding.key, said(binding)]));
  const intents = new Map((await store.openIntents()).map((intent) => [intent.key, intent]));
  const asked = options.destroy ? withoutManaged(options.desired, [...stored.values()]) : options.desired;
  const desired = ownNames(asked, stored, intents);
  const { moves, held } = movesOf(desired, stored, intents);
  const bindings = movedBindings(stored, moves);
  const wanted = new Map(desired.resources.map((resource) => [resource.key, resource]));
  const holds = repeating?.holds ?? new Map<string, Hold>();
  await dropLifted(deps, holds);
  const stopwatch = repeating?.stopwatch ?? createStopwatch(clock, profile.timeScale);
  stopwatch.keep(new Set([...intents.values()].map(({ id }) => id)));
  const broken = new AbortController();

  const input = (since: number): SurveyInput => ({
    desired,
    bindings,
    kinds,
    profile,
    read: cache.since(since),
    catalogueRead: cache.since(clock.monotonic() - catalogueFreshMs),
  });

  const boundIn = (server: ResourceKey) => [...bindings.values()].filter(({ key }) => isInside(key, server));

  /** The state's maps, and what the world makes of them, follow what was written: reading it back would cost as much as there is. */
  function follow(changes: readonly StateChange[]): void {
    for (const change of changes) {
      if (change.type === 'next_incarnation') continue;
      const key = change.type === 'bind' ? change.binding.key : change.key;
      if (change.type === 'bind') bindings.set(key, said(change.binding));
      else bindings.delete(key);
      if (run.world === undefined) continue;
      const subjects = new Map(run.world.subjects);
      const inside = [...subjects.values()].filter(({ parent }) => parent === key).map((each) => each.key);
      for (const touched of [key, ...inside]) {
        const subject = subjectOf({ wanted, bindings, kinds }, touched);
        if (subject === undefined) subjects.delete(touched);
        else subjects.set(touched, subject);
      }
      run.world = worldOf(input(0), { ...run.world, subjects });
    }
  }

  const run: Omit<Run, 'world'> & { world?: World } = {
    ...options,
    desired,
    stop: AbortSignal.any([options.stop, options.halt, broken.signal]),
    halt: AbortSignal.any([options.halt, broken.signal]),
    bindings,
    intents,
    moves: [...moves],
    heldMoves: [...held],
    stopwatch,
    openSince: new Map(),
    requestIds: new Map(),
    exhausted: new Map(),
    superseded: new Map(),
    planned: undefined,
    doubted: new Set(),
    kindOf(name) {
      const kind = kinds.get(name);
      if (kind === undefined) throw new Error(`No such kind: ${name}`);
      return kind;
    },
    async look(since = clock.monotonic()) {
      run.world = await survey(input(since));
      repeating?.onLook?.(run.world);
      return run.world;
    },
    async lookAgain(key, since = clock.monotonic() - freshMs) {
      const seen = await lookAtOne(input(since), run.world as World, key);
      // Others have looked and bound meanwhile, so only what was just seen is put in.
      const world = run.world as World;
      const observed = new Map(world.observed);
      observed.delete(key);
      for (const [each, what] of seen.observed) observed.set(each, what);
      run.world = worldOf(input(since), { ...world, ...seen, observed });
      return run.world;
    },
    async fence() {
      for (;;) {
        const token = deps.writes.token();
        const project = await cache.since(clock.monotonic() - freshMs).project();
        refuseOtherProject(desired, project);
        if (deps.writes.token() === token) return token;
      }
    },
    hold(scope, request, hold) {
      holds.set(scope === 'operation' ? request.name : scope, hold);
    },
    heldBy: (request, spend) =>
      holds.get('everything') ??
      holds.get(request.name) ??
      (spend === 'adds' ? holds.get('spending') : undefined),
    allHeld: () => holds.get('everything'),
    holdAll: (hold) => void holds.set('everything', hold),
    giveUp: (cause) => broken.abort(new Error('The run has failed.', { cause })),
    async begin(intent) {
      await store.beginIntent(intent);
      intents.set(intent.key, intent);
    },
    async update(intent, patch) {
      await store.updateIntent(intent.id, patch, clock.now());
      const next = patched(intents.get(intent.key) ?? intent, patch);
      intents.set(intent.key, next);
      return next;
    },
    async close(intent, outcome, detail, changes) {
      await rememberBackups({ store, bindings, boundIn, now: clock.now() }, changes, intent);
      await store.closeIntent(intent.id, outcome, detail, changes, clock.now());
      // What held on to it is looked at anew: it was read while the task was under way.
      if (intent.verb === 'delete') cache.forget(intent.request);
      intents.delete(intent.key);
      follow(changes);
    },
    async change(changes) {
      await rememberBackups({ store, bindings, boundIn, now: clock.now() }, changes);
      await store.change(changes, clock.now());
      follow(changes);
    },
    renewMoves() {
      const next = movesOf(desired, bindings, intents);
      const moved = movedBindings(bindings, next.moves);
      bindings.clear();
      for (const [key, binding] of moved) bindings.set(key, binding);
      run.moves.push(...next.moves);
      run.heldMoves.splice(0, run.heldMoves.length, ...next.held);
    },
    async keepMoves() {
      await rememberMoves(store, run.moves);
      const changes = moveChanges(run.moves, bindings);
      if (changes.length > 0) await run.change(changes);
      run.moves.length = 0;
    },
    boundIn,
    tell(key, verb, step, detail, untilMs, deadlineMs) {
      const at = clock.now();
      const until = untilMs === undefined ? {} : { untilMs };
      const deadline = deadlineMs === undefined ? {} : { deadlineMs };
      deps.onEvent?.({ type: 'progress', at, key, verb, step, detail, ...until, ...deadline });
    },
    known(kind, but) {
      const bound = [...bindings.values()].filter((each) => each.kind === kind).map(({ id }) => id);
      const underWay = [...intents.values()]
        .filter((each) => each.kind === kind && each.id !== but?.id)
        .flatMap(({ resourceId }) => resourceId ?? []);
      return new Set([...bound, ...underWay]);
    },
  };
  await run.look(repeating === undefined ? undefined : 0);
  return run as Run;
}
