import type { Claim, HeldClaim, PauseScope } from '../core/claims.ts';
import type { Clock } from '../core/clock.ts';
import type { Desired, DesiredResource } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import { isInside, type ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Operation, Selection, Spend } from '../core/plan.ts';
import type { ReadPort, WriteRequest } from '../core/ports.ts';
import type { Step } from '../core/progress.ts';
import type { Binding, Ended, Intent, IntentPatch, StateChange } from '../core/state.ts';
import type { SerialQueue } from '../core/work.ts';
import type { WaitingRename } from '../plan/objections.ts';
import type { EngineDeps, Pause, Repeating } from './deps.ts';
import type { ReadCache } from './observe.ts';
import { absenceGapMs, type Stopwatch } from './timing.ts';
import type { WriteGate } from './write-gate.ts';

/** One run over one project: its context, which never changes, and its memory, which only its own methods change. */
export type Run = RunContext & RunMemory;

/** The objects that a run is started with, and that its parts share. */
export interface RunContext {
  readonly deps: EngineDeps;
  /** The spec, combined with the state. */
  readonly desired: Desired;
  readonly cache: ReadCache;
  readonly gate: WriteGate;
  readonly signals: RunSignals;
  readonly mode: RunMode;
  readonly facts: RunFacts;
  readonly stopwatch: Stopwatch;
  kindOf(name: KindName): ResourceKind;
  readonly fence: RunFence;
  /**
   * Wall ms: `untilMs` is the time when the step continues or usually ends, `deadlineMs` the time when the step is given up. `code`
   * is the code of the refusal that the step waits for.
   */
  report(
    of: Pick<Operation, 'key' | 'verb'>,
    step: Step,
    detail: string,
    wait?: { readonly untilMs?: number; readonly deadlineMs?: number; readonly code?: string },
  ): void;
}

/** The ends of a run. */
export interface RunSignals {
  /** Aborted: no new write is sent. */
  readonly stop: AbortSignal;
  /** Aborted: every wait ends at once. This follows `stop`, when the firewalls of open servers are set. */
  readonly halt: AbortSignal;
  readonly grace: Grace;
  /** Ends the run. No step of the run continues after this call. */
  giveUp(cause: unknown): void;
}

/** Holds a run to the project of the spec. */
export interface RunFence {
  /**
   * Throws `FenceError` unless the token belongs to the project of the spec, as of the last minute. Returns the name
   * of the token, so that no request goes out under another token.
   */
  check(): Promise<string>;
  /**
   * Reads after the check, because the token of another project shows no resource. Returns `undefined` if the
   * token was exchanged meanwhile: the reads then do not count.
   */
  read<Result>(work: (port: ReadPort) => Promise<Result>): Promise<Result | undefined>;
}

/** The request of the caller. */
export interface RunMode {
  readonly repeating: Repeating | undefined;
  /** The part of the plan that this run applies. */
  readonly selection: Selection | undefined;
  /** Deletes all managed resources. */
  readonly destroy: boolean;
  /** An operator reads and approves the plans of this run. */
  readonly attended: boolean;
}

/** The state and the project, as a run knows them. */
export interface RunMemory {
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  /** By the name of the claimed object. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** The open intents. */
  readonly intents: ReadonlyMap<ResourceKey, Intent>;
  readonly state: RunState;
  readonly moves: RunMoves;
  /** The lines of the entries, with the present bindings, claims and intents. */
  lines(): RunLines;
  /** The last refresh. Each operation observes its own resources again. */
  readonly world: World;
  readonly view: RunView;
}

/** The changes of the state. A change shows in the run only after the store has made the change durable. */
export interface RunState {
  begin(intent: Intent): Promise<void>;
  update(intent: Intent, patch: IntentPatch): Promise<Intent>;
  close(intent: Intent, ended: Ended, changes: readonly StateChange[]): Promise<void>;
  /** In turn. A function sees the bindings after all changes before, also those of other keys in work. */
  change(changes: readonly StateChange[] | (() => readonly StateChange[])): Promise<void>;
}

/** Keys that the spec has renamed, until the state records the new names. */
export interface RunMoves {
  readonly all: readonly Move[];
  /** Moves that cannot happen yet. */
  readonly waiting: readonly WaitingMove[];
  /** Adds moves: by default, the renames that are possible after writes were settled. The next refresh shows them. */
  renew(next?: Moves): void;
  /** For a plan: the renames that are possible once these bindings have ended. */
  free(ended: readonly StateChange[]): void;
  /** Makes the moves durable. */
  keep(): Promise<void>;
}

interface RunLines {
  /** Every key under which the resource of an entry may have been bought, its own key first. */
  of(entry: Pick<DesiredResource, 'key' | 'moved'>): ReadonlySet<ResourceKey>;
  /** The objects that entries take back from the next plan on. */
  returning(): ReadonlyMap<ResourceKey, HeldClaim>;
}

/** The reads by which a run observes the project. */
export interface RunView {
  /**
   * Refreshes all resources. `since` (monotonic ms) is the earliest start of a read that is still usable, now by
   * default. A write makes older reads unusable.
   */
  refresh(since?: number): Promise<World>;
  /**
   * Observes one resource again. `since` (monotonic ms) is the earliest start of a usable read, a minute ago by
   * default.
   */
  observe(key: ResourceKey, since?: number): Promise<World>;
  /** Observes one resource again unless the resource was observed or bound within the last minute. */
  observeIfOld(key: ResourceKey): Promise<World>;
}

/**
 * One read that does not find a resource does not prove its absence: observes the resources a second time, a minute
 * later. Returns `undefined` if these reads do not count. @assumption A9
 */
export async function observeAgain(
  run: Run,
  keys: readonly ResourceKey[],
  signal = run.signals.stop,
): Promise<World | undefined> {
  const { clock } = run.deps;
  await clock.sleep(absenceGapMs, signal);
  return run.fence.read(async () => {
    const since = clock.monotonic();
    await Promise.all(keys.map((key) => run.view.observe(key, since)));
    return run.world;
  });
}

/** Bindings of the resources inside a server. */
export function boundIn({ bindings }: Pick<Run, 'bindings'>, server: ResourceKey): readonly Binding[] {
  return [...bindings.values()].filter(({ key }) => isInside(key, server));
}

/** Live ids of the kind that already belong to a key, so that no creation takes them as its own new resource. */
export function knownIds(
  { bindings, intents, claims }: Pick<Run, 'bindings' | 'intents' | 'claims'>,
  kind: KindName,
  but?: Intent,
): ReadonlySet<string> {
  const bound = [...bindings.values()].filter((each) => each.kind === kind).map(({ id }) => id);
  const underWay = [...intents.values()]
    .filter((each) => each.kind === kind && each.id !== but?.id)
    // If a resource is not there, the API may have given out its id again. @assumption A17
    .filter((each) => partsOf(each).blocked?.code !== 'not_there')
    .flatMap((each) => partsOf(each).answer?.id ?? []);
  const found = [...claims.values()]
    .filter((each) => each.kind === kind && each.holder.is === 'found' && each.holder.key !== but?.key)
    .map(({ id }) => id);
  return new Set([...bound, ...underWay, ...found]);
}

/** A binding that gets another key. */
export interface Move {
  readonly from: ResourceKey;
  readonly to: ResourceKey;
  /** Neither `moved` nor `id` states the move. */
  readonly inferred?: true;
  /** A resource that a deleted server left gives its key to that of the server that is renamed onto it. */
  readonly orphans?: true;
}

/** The renames that happen now, and the renames that wait until open writes are settled. */
export interface Moves {
  readonly moves: readonly Move[];
  readonly waiting: readonly WaitingMove[];
}

/** A rename that cannot be carried out yet. */
export interface WaitingMove extends WaitingRename {
  /** The unsettled writes that it waits for. */
  readonly waitsFor: readonly ResourceKey[];
}

/** The facts of this run that the state does not keep. */
export interface RunFacts {
  /** Sends no more writes of a class that the API refuses. */
  pause(scope: PauseScope, request: WriteRequest, pause: Pause): void;
  pausedBy(request: WriteRequest, spend: Spend): Pause | undefined;
  /** The refusal that pauses every write, if there is one. */
  allPaused(): Pause | undefined;
  pauseAll(pause: Pause): void;
  /** When the server was accepted by this run, to measure the time without a firewall. Monotonic ms. */
  exposedSince(server: ResourceKey): number | undefined;
  expose(server: ResourceKey, at: number, isNew: boolean): void;
  /** A fresh answer of this run gave the id of the server. */
  isNew(server: ResourceKey): boolean;
  /** The request id of the last answer to a key, also after its intent is closed. */
  requestIdOf(key: ResourceKey): string | undefined;
  answered(key: ResourceKey, requestId: string): void;
  /** GPU packages that no host had capacity for. */
  exhaustedOf(server: ResourceKey): readonly string[];
  exhaust(server: ResourceKey, packages: readonly string[]): void;
  /** The key whose replacement was blocked first in this run. No other replacement begins after that. */
  stoppedReplacement(): ResourceKey | undefined;
  stopReplacements(because: ResourceKey): void;
  /** The keys whose resource this run deletes first and creates again, until its creation has ended. */
  readonly recreated: Set<ResourceKey>;
  /** The questions to the earlier keys of lines, in turn: two entries may have a key in common. */
  readonly lineQuestions: SerialQueue;
  /** The highest amount that the plan has counted for the key, as decimal text. */
  plannedMost(key: ResourceKey): string | undefined;
  countPlanned(most: ReadonlyMap<ResourceKey, string>): void;
  /** The key that has the id of this key now. */
  supersededBy(key: ResourceKey): ResourceKey | undefined;
  supersede(key: ResourceKey, by: ResourceKey): void;
}

/** One object with the fields of both, which is never changed. `other` replaces the fields of `one`. */
export function joined<One extends object, Other extends object>(one: One, other: Other): One & Other {
  const fields = [one, other].map((each) => Object.getOwnPropertyDescriptors(each));
  return Object.freeze(Object.defineProperties({}, Object.assign({}, ...fields))) as One & Other;
}

/** The highest time for the firewalls of open servers after the run is asked to stop, in ms. Conflicts and back-off are included. */
const graceMs = 60_000;

/**
 * The end of a run that is asked to stop. Without the firewall of an open server, the run ends at once. With one, the
 * run ends when these firewalls are set, or after a minute. It also ends at once if the API allows no write for longer.
 */
export class Grace {
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #roomMs: () => number;
  readonly #over = new AbortController();
  readonly #keys = new Set<ResourceKey>();

  /** `roomMs` is the time until the write budget allows a write. */
  constructor(clock: Clock, stop: AbortSignal, roomMs: () => number) {
    this.#clock = clock;
    this.#stop = stop;
    this.#roomMs = roomMs;
    if (stop.aborted) this.#begin();
    else stop.addEventListener('abort', () => this.#begin(), { once: true });
  }

  /** Aborted: every wait of the run ends. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** The key is an open server, or the firewall of one. */
  add(key: ResourceKey): void {
    this.#keys.add(key);
  }

  delete(key: ResourceKey): void {
    this.#keys.delete(key);
    this.#endIfIdle();
  }

  #begin(): void {
    if (this.#roomMs() > graceMs) this.#over.abort(this.#stop.reason);
    this.#endIfIdle();
    if (this.#over.signal.aborted) return;
    this.#clock.sleep(graceMs, this.over).then(
      () => this.#over.abort(this.#stop.reason),
      () => undefined,
    );
  }

  #endIfIdle(): void {
    if (this.#stop.aborted && this.#keys.size === 0) this.#over.abort(this.#stop.reason);
  }
}
