import { type Claim, objectName } from '../../core/claims.ts';
import { type Desired, type DesiredResource, nameInSpec } from '../../core/desired.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import type { ProofChecks, World } from '../../core/kind.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import type { Plan, Selection } from '../../core/plan.ts';
import type { Binding, Intent } from '../../core/state.ts';
import { SerialQueue } from '../../core/work.ts';
import { withHeldObjects } from '../claims/line.ts';
import { movedBindings, movesOf, ownNames, withRenames } from '../claims/moves.ts';
import { createRunState } from '../claims/run-state.ts';
import type { EngineDeps, Pause, Repeating } from '../deps.ts';
import { knownChecks } from '../intents/prove.ts';
import {
  createReadCache,
  type ObserveInput,
  observeAll,
  observeOne,
  type ReadCache,
  refuseOtherProject,
  refuseOtherState,
  subjectOf,
  worldOf,
} from '../observe.ts';
import {
  Grace,
  joined,
  type Run,
  type RunContext,
  type RunFacts,
  type RunFence,
  type RunMemory,
} from '../run.ts';
import { createStopwatch } from '../timing.ts';
import type { WriteGate } from '../write-gate.ts';

interface RunOptions {
  readonly stop?: AbortSignal | undefined;
  readonly halt?: AbortSignal | undefined;
  readonly repeating?: Repeating | undefined;
  /** Classes of writes that the API refuses, if an earlier part of this run has met the refusal. */
  readonly pauses?: Map<string, Pause>;
  readonly selection?: Selection | undefined;
  readonly destroy?: boolean | undefined;
  readonly unattended?: boolean | undefined;
  readonly saved?: Plan | undefined;
}

/** Loads the state, checks the project, and refreshes the view for the first time. The run only reads until then. */
export async function openRun(
  deps: EngineDeps,
  gate: WriteGate,
  file: Desired,
  options: RunOptions = {},
): Promise<Run> {
  const { repeating, selection, destroy = false } = options;
  const { stop = never(), halt = never() } = options;
  const attended = options.unattended !== true && options.saved === undefined;
  const { store, clock, kinds, profile } = deps;
  const token = () => deps.writes.token();
  const grace = new Grace(clock, stop, () => deps.writes.roomMs(1));
  const ended = AbortSignal.any([halt, grace.over]);
  const cache = repeating?.cache ?? createReadCache(deps.reads('operation', ended), clock, token);
  if (repeating !== undefined) cache.forgetLists();
  refuseOtherState(file, await store.info());
  const { asked, desired, flaggedBy, ...loaded } = await load(deps, file, destroy);
  const stopwatch = repeating?.stopwatch ?? createStopwatch(clock, profile.timeScale);
  stopwatch.keep(new Set([...loaded.intents.values()].map(({ id }) => id)));
  const broken = new AbortController();
  const fence: RunFence = {
    async check() {
      for (;;) {
        const token = deps.writes.token();
        const project = await cache.since(clock.monotonic() - freshMs).project();
        refuseOtherProject(desired, project);
        if (deps.writes.token() === token) return token;
      }
    },
    async read(work) {
      const token = await fence.check();
      const result = await work(cache.since(clock.monotonic()));
      return deps.writes.token() === token ? result : undefined;
    },
  };
  const context: RunContext = {
    ...{ deps, desired, cache, gate, stopwatch, fence, facts: createFacts(options.pauses ?? new Map()) },
    mode: { repeating, selection, destroy, attended },
    signals: {
      stop: AbortSignal.any([stop, halt, broken.signal]),
      halt: AbortSignal.any([ended, broken.signal]),
      grace,
      giveUp: (cause) => broken.abort(new Error('The run has failed.', { cause })),
    },
    kindOf(name) {
      const kind = kinds.get(name);
      if (kind === undefined) throw new Error(`Unknown kind: ${name}`);
      return kind;
    },
    report: ({ key, verb }, step, detail, wait) =>
      deps.onEvent?.({ type: 'progress', at: clock.now(), key, verb, step, detail, ...wait }),
  };
  const { bindings } = loaded;
  const proofChecks = await knownChecks(store);
  const seen = createView({ deps, desired, cache, bindings, onRefresh: repeating?.onRefresh, proofChecks });
  const state = createRunState({
    ...{ deps, asked, desired, cache, flaggedBy, onChange: seen.follow },
    ...loaded,
  });
  await seen.view.refresh(repeating === undefined ? undefined : 0);
  return joined(context, joined(state, seen));
}

function never(): AbortSignal {
  return new AbortController().signal;
}

/**
 * Loads the state, and combines the spec with the state. `asked`: the spec with its renames, also for a `destroy`. A spec
 * ignores resources only as long as it has `unmanaged: ignore`.
 */
async function load({ store, hidden }: EngineDeps, file: Desired, destroy: boolean) {
  const counts = ({ holder }: Claim) =>
    holder.is !== 'ignored' || holder.by !== 'file' || file.settings.unmanaged === 'ignore';
  const recorded = hidden.recorded(await store.claims());
  const named = (some: readonly Claim[]) => new Map(some.map((claim) => [objectName(claim), claim]));
  const claims = named(recorded.filter(counts));
  const uncounted = named(recorded.filter((claim) => !counts(claim)));
  const stored = new Map(hidden.recorded(await store.bindings()).map((binding) => [binding.key, binding]));
  const intents = new Map(hidden.recorded(await store.openIntents()).map((intent) => [intent.key, intent]));
  const asked = ownNames(
    withRenames(withHeldObjects(file, claims, stored), stored, intents),
    stored,
    intents,
  );
  const flagged = (binding: Binding) => (destroy ? flaggedBy(binding, asked) : binding);
  const { moves, waiting: waitingMoves } = movesOf(asked, stored, intents);
  const bindings = new Map(
    [...movedBindings(stored, moves)].map(([key, binding]) => [key, flagged(binding)]),
  );
  const desired = destroy ? withoutManaged(asked, [...bindings.values()], intents) : asked;
  return { asked, desired, flaggedBy: flagged, bindings, claims, uncounted, intents, moves, waitingMoves };
}

function createFacts(pauses: Map<string, Pause>): RunFacts {
  const exposed = new Map<ResourceKey, number>();
  const created = new Set<ResourceKey>();
  const requestIds = new Map<ResourceKey, string>();
  const exhausted = new Map<ResourceKey, readonly string[]>();
  const superseded = new Map<ResourceKey, ResourceKey>();
  let stopped: ResourceKey | undefined;
  let planned: ReadonlyMap<ResourceKey, string> = new Map();
  return {
    pause: (scope, request, pause) => void pauses.set(scope === 'operation' ? request.name : scope, pause),
    pausedBy: (request, spend) =>
      pauses.get('everything') ??
      pauses.get(request.name) ??
      (spend === 'adds' ? pauses.get('spending') : undefined),
    allPaused: () => pauses.get('everything'),
    pauseAll: (pause) => void pauses.set('everything', pause),
    exposedSince: (server) => exposed.get(server),
    expose(server, at, isNew) {
      exposed.set(server, at);
      if (isNew) created.add(server);
    },
    isNew: (server) => created.has(server),
    requestIdOf: (key) => requestIds.get(key),
    answered: (key, requestId) => void requestIds.set(key, requestId),
    exhaustedOf: (server) => exhausted.get(server) ?? [],
    exhaust: (server, packages) => void exhausted.set(server, packages),
    stoppedReplacement: () => stopped,
    stopReplacements: (because) => {
      stopped ??= because;
    },
    recreated: new Set(),
    lineQuestions: new SerialQueue(),
    plannedMost: (key) => planned.get(key),
    countPlanned: (most) => {
      planned = most;
    },
    supersededBy: (key) => superseded.get(key),
    supersede: (key, by) => void superseded.set(key, by),
  };
}

/**
 * The part of the spec that remains when all managed resources are deleted (`vdcsync destroy`): the unmanaged entries
 * whose resources the state binds, or creates. vdcsync releases these resources and does not delete them.
 */
function withoutManaged(
  desired: Desired,
  bindings: readonly Binding[],
  open: ReadonlyMap<ResourceKey, Intent>,
): Desired {
  const resources = desired.resources.filter(
    (each) => !each.managed && (open.has(each.key) || bindings.some((binding) => isOf(binding, each))),
  );
  return { ...desired, resources, digest: `${desired.digest} destroyed` };
}

/** A binding with the deletion protection that the spec asks for now, even if no apply has recorded the protection. */
function flaggedBy(binding: Binding, { resources }: Desired): Binding {
  const { kind, parent } = takeApart(binding.key);
  const server = resources.find(
    ({ key, moved }) => parent !== undefined && (key === parent || moved === parent),
  );
  const { keep_ip = false } = server?.value ?? {};
  return {
    ...binding,
    protect: binding.protect || resources.some((each) => each.protect && isOf(binding, each)),
    keep: binding.keep || (isAddress(kind) && keep_ip),
  };
}

/** Matches by the current key, the previous key, or the id or the name of the entry. */
function isOf({ key, kind, id, identity }: Binding, entry: DesiredResource): boolean {
  if (entry.key === key || entry.moved === key) return true;
  const isNamed = identity.name !== undefined && identity.name === nameInSpec(entry);
  return entry.kind === kind && (entry.id === id || isNamed);
}

/** The highest age of an observation that decides an operation, in ms. */
const freshMs = 60_000;
const catalogueFreshMs = 10 * 60_000;

interface ViewOptions {
  readonly deps: EngineDeps;
  readonly proofChecks: ProofChecks | undefined;
  readonly desired: Desired;
  /** Always shows the current bindings. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly cache: ReadCache;
  readonly onRefresh: ((world: World) => void) | undefined;
}

/** A view without content before its first refresh. */
function createView({ deps, desired, bindings, cache, onRefresh, proofChecks }: ViewOptions) {
  const { clock, kinds, profile } = deps;
  const wanted = new Map(desired.resources.map((resource) => [resource.key, resource]));
  let latest: World | undefined;
  /** The start of the last refresh, and the time when each resource was observed since. Monotonic ms. */
  let allAt = 0;
  const refreshedAt = new Map<ResourceKey, number>();

  const known = (): World => {
    if (latest === undefined) throw new Error('The view has no content before its first refresh.');
    return latest;
  };

  const input = (since: number): ObserveInput => ({
    ...{ desired, bindings, kinds, profile, proofChecks },
    read: cache.since(since),
    catalogueRead: cache.since(clock.monotonic() - catalogueFreshMs),
  });

  async function observe(key: ResourceKey, since = clock.monotonic() - freshMs): Promise<World> {
    const at = clock.monotonic();
    const seen = await observeOne(input(since), known(), key);
    // Other callers may have observed and bound resources meanwhile, so only the new observations are merged.
    const now = known();
    const observed = new Map(now.observed);
    observed.delete(key);
    for (const [each, what] of seen.observed) observed.set(each, what);
    latest = worldOf(input(since), { ...now, ...seen, observed });
    refreshedAt.set(key, at);
    return latest;
  }

  const view = {
    observe,
    async refresh(since = clock.monotonic()) {
      latest = await observeAll(input(since));
      allAt = since;
      onRefresh?.(latest);
      return latest;
    },
    async observeIfOld(key: ResourceKey) {
      const oldest = clock.monotonic() - freshMs;
      const isFresh = Math.max(allAt, refreshedAt.get(key) ?? 0) >= oldest;
      return isFresh ? known() : observe(key);
    },
  };

  return {
    view,
    get world() {
      return known();
    },
    /** Takes the changed binding of a key into the view, without a read. */
    follow(key: ResourceKey): void {
      if (latest === undefined) return;
      if (bindings.has(key)) refreshedAt.set(key, clock.monotonic());
      const subjects = new Map(latest.subjects);
      const inside = [...subjects.values()].filter(({ parent }) => parent === key).map((each) => each.key);
      for (const touched of [key, ...inside]) {
        const subject = subjectOf({ wanted, bindings }, touched);
        if (subject === undefined) subjects.delete(touched);
        else subjects.set(touched, subject);
      }
      // The observations are those of the server that had the key before.
      const { kind, id } = bindings.get(key) ?? {};
      const seen = latest.observed.get(key)?.id ?? id;
      const isAnother = kind !== undefined && factsOf(kind).container && seen !== id;
      const stale = new Set(isAnother ? [key, ...inside] : []);
      const observed = new Map([...latest.observed].filter(([each]) => !stale.has(each)));
      latest = worldOf(input(0), { ...latest, subjects, observed });
    },
  } satisfies Pick<RunMemory, 'view' | 'world'> & { follow: (key: ResourceKey) => void };
}
