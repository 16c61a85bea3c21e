import { objectName } from '../core/claims.ts';
import type { Desired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Operation, Selection, Spend } from '../core/plan.ts';
import type { WriteRequest } from '../core/ports.ts';
import type { Step } from '../core/progress.ts';
import type { Binding } from '../core/state.ts';
import { movedBindings, movesOf, ownNames } from './claims/moves.ts';
import type { EngineDeps, Pause, Repeating } from './deps.ts';
import { flaggedBy, withoutManaged } from './destroy.ts';
import { withFound } from './found.ts';
import type { PauseScope } from './intents/outcome.ts';
import { dropLifted } from './intents/pauses.ts';
import { createStopwatch, type Stopwatch } from './intents/stopwatch.ts';
import { refuseOtherProject, refuseOtherState } from './observe.ts';
import type { ReadCache } from './read-cache.ts';
import { createRunState, type RunState } from './run-state.ts';
import { createView, freshMs, type RunView } from './run-view.ts';
import type { WriteGate } from './write-gate.ts';

/** The input of a run. */
interface RunParts {
  readonly deps: EngineDeps;
  readonly desired: Desired;
  readonly cache: ReadCache;
  readonly gate: WriteGate;
  /** Aborted: no new write is sent. */
  readonly stop: AbortSignal;
  /** Aborted: every wait ends at once. */
  readonly halt: AbortSignal;
  readonly repeating: Repeating | undefined;
  /** Classes of writes that the API refuses, if an earlier part of this run has met the refusal. */
  readonly pauses?: Map<string, Pause> | undefined;
  /** The part of the plan that this run applies. */
  readonly selection: Selection | undefined;
  /** Deletes all managed resources. */
  readonly destroy: boolean;
}

/** Classes of writes that the API refuses. This run sends no more writes of these classes. */
interface RunPauses {
  pause(scope: PauseScope, request: WriteRequest, pause: Pause): void;
  heldBy(request: WriteRequest, spend: Spend): Pause | undefined;
  /** The refusal that pauses every write, if there is one. */
  allPaused(): Pause | undefined;
  pauseAll(pause: Pause): void;
}

/** One run over one project. It holds the objects that its parts share, and only for the time of the run. */
export interface Run extends RunParts, RunState, RunView, RunPauses {
  readonly stopwatch: Stopwatch;
  /** The world that the current plan was made from. */
  planned: World | undefined;
  /** Servers whose purchase waits for a second read of the server counts of networks. */
  readonly doubted: Set<ResourceKey>;
  /** The times when servers of this run were accepted, to measure the time without a firewall. Monotonic ms. */
  readonly openSince: Map<ResourceKey, number>;
  /** The request id of the last answer to each key, also after its intent is closed. */
  readonly requestIds: Map<ResourceKey, string>;
  /** GPU packages that no host had capacity for, by server. */
  readonly exhausted: Map<ResourceKey, readonly string[]>;
  /** Keys whose ids were given to other keys. The values are the other keys. */
  readonly superseded: Map<ResourceKey, ResourceKey>;

  kindOf(name: KindName): ResourceKind;
  /**
   * Throws `FenceError` unless the token belongs to the project of the file, as of the last minute. Returns the name
   * of the token, so that no request goes out under another token.
   */
  fence(): Promise<string>;
  /** Ends the run. No step of the run continues after this call. */
  giveUp(cause: unknown): void;
  /**
   * Wall ms: `untilMs` is the time when the step continues, `deadlineMs` the time when the step is given up. `code`
   * is the code of the refusal that the step waits for.
   */
  tell(
    of: Pick<Operation, 'key' | 'verb'>,
    step: Step,
    detail: string,
    wait?: { readonly untilMs: number; readonly deadlineMs?: number; readonly code?: string },
  ): void;
}

/** Loads the state, checks the project, and refreshes the view for the first time. */
export async function startRun(options: RunParts): Promise<Run> {
  const { deps, cache, repeating } = options;
  const { store, clock, kinds, profile } = deps;
  refuseOtherState(options.desired, await store.info());
  const { desired, flaggedBy, ...loaded } = await load(options);
  const pauses = repeating?.pauses ?? options.pauses ?? new Map<string, Pause>();
  await dropLifted(deps, pauses);
  const stopwatch = repeating?.stopwatch ?? createStopwatch(clock, profile.timeScale);
  stopwatch.keep(new Set([...loaded.intents.values()].map(({ id }) => id)));
  const broken = new AbortController();
  const view = createView({
    deps,
    desired,
    cache,
    bindings: loaded.bindings,
    onRefresh: repeating?.onRefresh,
  });

  const run: Run = {
    ...options,
    ...createRunState({ ...{ deps, desired, cache, flaggedBy, onChange: view.follow }, ...loaded }),
    ...holding(pauses),
    get world() {
      return view.world;
    },
    ...{ look: view.look, observe: view.observe, observeIfOld: view.observeIfOld },
    ...{ desired, stopwatch },
    stop: AbortSignal.any([options.stop, options.halt, broken.signal]),
    halt: AbortSignal.any([options.halt, broken.signal]),
    planned: undefined,
    doubted: new Set(),
    openSince: new Map(),
    requestIds: new Map(),
    exhausted: new Map(),
    superseded: new Map(),
    kindOf(name) {
      const kind = kinds.get(name);
      if (kind === undefined) throw new Error(`Unknown kind: ${name}`);
      return kind;
    },
    async fence() {
      for (;;) {
        const token = deps.writes.token();
        const project = await cache.since(clock.monotonic() - freshMs).project();
        refuseOtherProject(desired, project);
        if (deps.writes.token() === token) return token;
      }
    },
    giveUp: (cause) => broken.abort(new Error('The run has failed.', { cause })),
    tell: ({ key, verb }, step, detail, wait) =>
      deps.onEvent?.({ type: 'progress', at: clock.now(), key, verb, step, detail, ...wait }),
  };
  await run.look(repeating === undefined ? undefined : 0);
  return run;
}

/** Loads the state, and combines the file with the state. */
async function load({ deps: { store, clock }, desired: file, destroy }: RunParts) {
  const flagged = (binding: Binding) => (destroy ? flaggedBy(binding, file) : binding);
  const claims = new Map((await store.claims()).map((claim) => [objectName(claim), claim]));
  const stored = new Map((await store.bindings()).map((binding) => [binding.key, flagged(binding)]));
  const intents = new Map((await store.openIntents()).map((intent) => [intent.key, intent]));
  const asked = destroy
    ? withoutManaged(file, [...stored.values()])
    : withFound(file, claims.values(), stored, clock.now());
  const desired = ownNames(asked, stored, intents);
  const { moves, held: waitingMoves } = movesOf(desired, stored, intents);
  const bindings = movedBindings(stored, moves);
  return { desired, flaggedBy: flagged, bindings, claims, intents, moves, waitingMoves };
}

function holding(pauses: Map<string, Pause>): RunPauses {
  return {
    pause(scope, request, pause) {
      pauses.set(scope === 'operation' ? request.name : scope, pause);
    },
    heldBy: (request, spend) =>
      pauses.get('everything') ??
      pauses.get(request.name) ??
      (spend === 'adds' ? pauses.get('spending') : undefined),
    allPaused: () => pauses.get('everything'),
    pauseAll: (pause) => void pauses.set('everything', pause),
  };
}
