import type { TokenPlace } from '../core/desired.ts';
import { ApiProblem, type Diagnostic, FenceError, StateError } from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import type { Plan } from '../core/plan.ts';
import type { ApplyReport, ProgressEvent } from '../core/progress.ts';
import type { Repeating } from '../engine/engine.ts';
import { createReadCache } from '../engine/read-cache.ts';
import { Activity } from './activity.ts';
import { KeyBackOff } from './back-off.ts';
import { type Condition, conditionOf } from './condition.ts';
import type { Offer, PassRecord, ProjectFacts } from './facts.ts';
import { Holds } from './holds.ts';
import { type Notice, told } from './notice.ts';
import type { DaemonDeps, Mode, ProjectSession, Trigger } from './ports.ts';
import { Refresh } from './refresh.ts';
import { UseMeter } from './use-meter.ts';
import { createWake } from './wake.ts';

/** After a pass that died: 5, 10, 20, … s, at most 15 min. */
const retry = { firstMs: 5_000, longestMs: 15 * 60_000 } as const;
/** A pass in which nothing but waiting has happened for so long may be cut short for another look. */
const quietMs = 30_000;
/** Tasks of earlier passes are waited for so long before the next plan; then they go on beside it. */
const settleMs = 90_000;
/** How often a token that was refused is compared with what its file holds now, in ms of real time. */
const tokenWatchMs = 2_000;

export interface ProjectOptions {
  readonly deps: DaemonDeps;
  readonly id: number;
  readonly mode: Mode;
  readonly intervalMs: number;
  readonly token: TokenPlace | undefined;
  readonly onNotice: (notice: Notice) => void;
  /** Anything that a page would show differently. */
  readonly onChange: () => void;
  readonly onEvent: (event: ProgressEvent) => void;
  readonly onPass: (pass: PassRecord) => void;
}

/**
 * Keeps one project as its newest good spec says, pass after pass.
 *
 * ```
 * no spec ──offer──▶ due ──▶ passing ──▶ resting ──timer, trigger, back-off──▶ due
 *                             │ ▲
 *                             └─┘ another spec: halted, and passed anew at once
 * ```
 * A halt never cuts a write: the exchange in flight ends and its answer is recorded; what
 * waits is taken up by the next pass where it stands.
 */
export class Project {
  readonly id: number;
  readonly mode: Mode;
  readonly intervalMs: number;
  readonly #options: ProjectOptions;
  readonly #wake = createWake();
  readonly #activity: Activity;
  readonly #backOff: KeyBackOff;
  #session: ProjectSession | undefined;
  #holds: Holds | undefined;
  #refresh: Refresh | undefined;
  #meter: UseMeter | undefined;
  #offer: Offer | undefined;
  #problem: readonly Diagnostic[] = [];
  #halt: AbortController | undefined;
  #plan: Plan | undefined;
  #world: World | undefined;
  #lookedAt: number | undefined;
  #error: unknown;
  #waitingFor: string | undefined;
  #passes = 0;
  #failures = 0;
  #lastPass: PassRecord | undefined;
  #nextPassAt: number | undefined;
  #differsSince: number | undefined;
  #convergedDigest: string | undefined;
  #condition: Condition = 'starting';
  #conditionSince: number | undefined;
  readonly #scarce = new Set<ResourceKey>();

  constructor(options: ProjectOptions) {
    this.#options = options;
    this.id = options.id;
    this.mode = options.mode;
    this.intervalMs = options.intervalMs;
    this.#activity = new Activity(options.deps.log);
    this.#backOff = new KeyBackOff(options.deps.random);
    this.#activity.onEvent((event) => this.#onEvent(event));
  }

  /** A good spec; one that says the same as the last changes nothing. */
  offer(offer: Offer, trigger: Trigger): void {
    const same = this.#offer?.desired.digest === offer.desired.digest;
    this.#offer = offer;
    this.#problem = [];
    this.#options.onChange();
    if (same) return;
    this.#backOff.follow(offer.desired);
    this.#wake.nudge(trigger);
    this.#halt?.abort(new Error('the spec has changed'));
  }

  /** A spec that cannot be used: the last good one stays in force. Each is told once. */
  reject(diagnostics: readonly Diagnostic[]): void {
    if (JSON.stringify(diagnostics) === JSON.stringify(this.#problem)) return;
    this.#problem = diagnostics;
    for (const { position, message } of diagnostics) {
      this.#options.deps.log.error({ project: this.id, ...position, reason: message }, 'the spec is broken');
    }
    this.#options.onNotice({ project: this.id, event: 'spec_broken', detail: describeProblem(diagnostics) });
    this.#options.onChange();
  }

  nudge(trigger: Trigger): void {
    this.#wake.nudge(trigger);
  }

  /** Runs until `stop` aborts and the pass in hand has ended. Rejects where the state cannot be used. */
  async run(stop: AbortSignal): Promise<void> {
    const { deps, token } = this.#options;
    const session = await deps.open({
      projectId: this.id,
      token,
      onEvent: (event) => this.#activity.take(event),
      onWait: (holder) => {
        this.#waitingFor = holder;
        deps.log.warn({ project: this.id, reason: holder }, 'waiting for the state: another process owns it');
      },
    });
    this.#waitingFor = undefined;
    this.#session = session;
    const { clock, reads, counts, profile } = session;
    const background = new AbortController();
    const cache = createReadCache(reads('operation'), clock);
    this.#holds = new Holds(() => clock.now());
    this.#meter = new UseMeter(counts, clock, profile.limits.windowMs);
    this.#refresh = new Refresh({
      session,
      cache,
      intervalMs: this.intervalMs,
      isWanted: (server) => this.#world?.keyOf('server', server) !== undefined,
      onChange: (server) => {
        deps.log.info({ project: this.id, resourceId: server }, 'a server was changed elsewhere');
        this.#wake.nudge('refresh');
      },
      onFailure: (error) => deps.log.debug({ project: this.id, error }, 'a server could not be read again'),
    });
    const beside = Promise.all(
      [this.#meter.run(background.signal), this.#refresh.run(background.signal)].map((each) =>
        each.catch((error: unknown) => {
          if (!background.signal.aborted) throw error;
        }),
      ),
    );
    try {
      const repeating: Repeating = {
        cache,
        holds: this.#holds,
        settleMs,
        withholds: (operation) => this.#backOff.withholds(operation, clock.now()),
        onLook: (world) => this.#see(world),
      };
      await Promise.race([this.#loop(session, repeating, stop), beside.then(() => undefined)]);
    } finally {
      background.abort();
      this.#session = undefined;
      await session.close();
    }
  }

  async #loop(session: ProjectSession, repeating: Repeating, stop: AbortSignal): Promise<void> {
    const { clock } = session;
    this.#wake.nudge('start');
    while (!stop.aborted) {
      const triggers = this.#wake.take();
      if (this.#offer !== undefined) await this.#pass(this.#offer, triggers, session, repeating, stop);
      const restMs = this.#offer === undefined ? this.intervalMs : this.#restMs(session);
      this.#nextPassAt = clock.now() + restMs;
      this.#options.onChange();
      try {
        await this.#rest(session, restMs, stop);
      } catch (error) {
        if (!stop.aborted) throw error;
      }
    }
  }

  async #rest(session: ProjectSession, ms: number, stop: AbortSignal): Promise<void> {
    const mark = session.tokenMark();
    const endAt = session.clock.monotonic() + ms;
    const refused = this.#condition === 'unauthorized' || this.#condition === 'fenced';
    while (!this.#wake.pending()) {
      const left = endAt - session.clock.monotonic();
      if (left <= 0) return this.#wake.nudge(this.#failures > 0 ? 'back-off' : 'timer');
      const watchMs = tokenWatchMs * session.profile.timeScale;
      await this.#wake.sleep(session.clock, refused ? Math.min(left, watchMs) : left, stop);
      if (refused && session.tokenMark() !== mark) this.#wake.nudge('token');
    }
  }

  async #pass(
    offer: Offer,
    triggers: readonly Trigger[],
    session: ProjectSession,
    repeating: Repeating,
    stop: AbortSignal,
  ): Promise<void> {
    const { deps } = this.#options;
    const { clock } = session;
    const startedAt = clock.now();
    const halt = new AbortController();
    const onStop = () => halt.abort(new Error('the daemon stops'));
    stop.addEventListener('abort', onStop, { once: true });
    if (stop.aborted) onStop();
    this.#halt = halt;
    this.#nextPassAt = undefined;
    if (triggers.includes('token')) repeating.holds.clear();
    const done = new AbortController();
    const watching = this.#watch(startedAt, session, halt, done.signal);
    deps.log.debug({ project: this.id, event: triggers.join(' ') }, 'pass started');
    this.#options.onChange();
    let outcome: PassRecord['outcome'] = 'error';
    let operations = 0;
    try {
      const ended = await this.#carryOut(offer, session, repeating, halt.signal);
      outcome = ended.outcome;
      operations = ended.results.length;
      if (outcome !== 'stopped') this.#plan = ended.plan;
      this.#error = undefined;
      this.#failures = 0;
      const isHeld = (code: string) => this.#holds?.holds(code) ?? false;
      this.#backOff.learn(ended.results, offer.desired, isHeld, clock.now());
    } catch (error) {
      if (error instanceof StateError) throw error;
      if (halt.signal.aborted) outcome = 'stopped';
      else this.#fail(error);
    } finally {
      done.abort();
      await watching;
      stop.removeEventListener('abort', onStop);
      this.#halt = undefined;
      this.#activity.settle();
    }
    this.#passes += 1;
    const pass: PassRecord = {
      ...{ number: this.#passes, triggers, startedAt, endedAt: clock.now(), outcome, operations },
      commit: offer.commit?.id,
    };
    this.#lastPass = pass;
    this.#conclude(offer, pass);
  }

  async #carryOut(
    { desired }: Offer,
    { engine }: ProjectSession,
    repeating: Repeating,
    halt: AbortSignal,
  ): Promise<Pick<ApplyReport, 'results' | 'plan'> & { readonly outcome: PassRecord['outcome'] }> {
    if (this.mode === 'observe') {
      const plan = await engine.plan(desired, { repeating });
      if (plan.project.id !== desired.projectId) {
        throw new FenceError(
          `The file is for project ${desired.projectId}, but the token belongs to project ${plan.project.id}.`,
        );
      }
      return { outcome: 'observed', results: [], plan };
    }
    return engine.apply(desired, { approve: async () => true, halt, repeating });
  }

  /** A pass that only waits, for cards or an ISO, must not keep the rest of the project from being looked at. */
  async #watch(
    startedAt: number,
    { clock }: ProjectSession,
    halt: AbortController,
    done: AbortSignal,
  ): Promise<void> {
    while (!done.aborted) {
      await clock.sleep(Math.min(quietMs, this.intervalMs) / 3, done).catch(() => undefined);
      const now = clock.now();
      const due = this.#wake.pending() || now - startedAt > this.intervalMs;
      if (done.aborted || !due || !this.#activity.isQuietSince(now - quietMs)) continue;
      this.#wake.nudge('timer');
      halt.abort(new Error('another look is due'));
      return;
    }
  }

  /** Takes in that it could not go on at all: its state or its settings cannot be used. */
  fail(error: unknown): void {
    this.#fail(error);
    this.#condition = 'failing';
    this.#options.onChange();
  }

  #fail(error: unknown): void {
    this.#error = error;
    this.#failures += 1;
    const { deps } = this.#options;
    const problem = error instanceof ApiProblem ? { status: error.status, requestId: error.requestId } : {};
    deps.log.error({ project: this.id, error, attempt: this.#failures, ...problem }, 'the pass failed');
  }

  #conclude(offer: Offer, pass: PassRecord): void {
    const { deps, onPass, onNotice, onChange } = this.#options;
    const plan = this.#plan;
    const fields = {
      ...{ project: this.id, event: pass.triggers.join(' '), outcome: pass.outcome, commit: pass.commit },
      ...{ durationMs: Math.round(pass.endedAt - pass.startedAt), count: pass.operations },
      ...{ blocked: plan?.summary.blocked, unchanged: plan?.summary.unchanged, digest: offer.desired.digest },
    };
    // A quiet life writes no line every five minutes.
    const quiet =
      pass.operations === 0 && pass.triggers.every((each) => each === 'timer' || each === 'refresh');
    deps.log[quiet ? 'debug' : 'info'](fields, 'pass ended');
    if (pass.outcome !== 'stopped' && pass.outcome !== 'error' && plan !== undefined) {
      const drifts = plan.warnings.some(({ code }) => code === 'drift');
      const differs = plan.operations.length + plan.blocked.length > 0 || drifts;
      this.#differsSince = differs ? (this.#differsSince ?? pass.endedAt) : undefined;
      if (!differs) this.#convergedDigest = offer.desired.digest;
    }
    const condition = conditionOf({
      plan,
      error: this.#error,
      observing: this.mode === 'observe',
      holds: this.#holds?.list() ?? [],
    });
    if (condition !== this.#condition) {
      this.#conditionSince = pass.endedAt;
      deps.log.info({ project: this.id, phase: condition, reason: this.#condition }, 'the condition changed');
    }
    this.#condition = condition;
    if (pass.outcome !== 'stopped') {
      onNotice({ project: this.id, event: 'condition', condition, ...told(condition, plan, this.#error) });
    }
    onPass(pass);
    onChange();
  }

  #restMs({ clock }: ProjectSession): number {
    const { random } = this.#options.deps;
    const now = clock.now();
    if (this.#failures > 0) {
      const span = Math.min(retry.firstMs * 2 ** Math.min(this.#failures - 1, 20), retry.longestMs);
      const hopeless = this.#condition === 'unauthorized' || this.#condition === 'fenced';
      return Math.max(span, hopeless ? this.intervalMs : 0) * (1 + random.next() / 10);
    }
    const interval = this.intervalMs * (0.9 + random.next() / 5);
    const suspendedUntil = Date.parse(this.#offer?.desired.settings.suspend?.until ?? '');
    const moments = [this.#backOff.next(now), suspendedUntil].filter(
      (at) => at !== undefined && at > now,
    ) as number[];
    return Math.min(interval, ...moments.map((at) => at - now));
  }

  #see(world: World): void {
    this.#world = world;
    this.#lookedAt = this.#session?.clock.now();
    this.#holds?.review(world.project.status);
    this.#refresh?.compare(world.ips);
  }

  #onEvent(event: ProgressEvent): void {
    const { onNotice, onEvent, onChange } = this.#options;
    if (event.type === 'planned') this.#onPlan(event.plan);
    if (event.type === 'progress' && event.step === 'waiting' && event.detail.includes('no_gpu_capacity')) {
      this.#scarce.add(event.key);
    }
    if (event.type === 'ended' && event.result.outcome === 'done' && this.#scarce.delete(event.result.key)) {
      onNotice({ project: this.id, event: 'capacity_found', detail: event.result.key });
    }
    onEvent(event);
    onChange();
  }

  /** Differences although the file is the one that was converged on: the world has moved. */
  #onPlan(plan: Plan): void {
    this.#plan = plan;
    const digest = this.#offer?.desired.digest;
    if (plan.operations.length === 0 || digest === undefined || digest !== this.#convergedDigest) return;
    this.#convergedDigest = undefined;
    const detail = plan.operations.map(({ verb, key }) => `${verb} ${key}`).join('\n');
    this.#options.deps.log.warn(
      { project: this.id, drift: plan.operations.map(({ key }) => key) },
      'drift found',
    );
    this.#options.onNotice({ project: this.id, event: 'drift', detail });
  }

  /** Everything that is known of the project now; for the pages, in no public form. */
  async facts(): Promise<ProjectFacts> {
    const session = this.#session;
    const known =
      session === undefined
        ? undefined
        : {
            now: session.clock.now(),
            info: await session.store.info(),
            bindings: await session.store.bindings(),
            intents: await session.store.openIntents(),
            history: await session.store.intents({ limit: 30 }),
            limits: session.profile.limits,
            used: this.#meter?.used() ?? { reads: 0, writes: 0 },
            counts: session.counts(),
            oldestReadMs: this.#refresh?.oldestMs() ?? 0,
            backOff: this.#backOff.list(session.clock.now()),
          };
    return {
      ...{ id: this.id, mode: this.mode, intervalMs: this.intervalMs, known },
      ...{ offer: this.#offer, problem: this.#problem, plan: this.#plan, world: this.#world },
      ...{ lookedAt: this.#lookedAt, error: this.#error, waitingFor: this.#waitingFor },
      ...{
        condition: this.#condition,
        conditionSince: this.#conditionSince,
        passing: this.#halt !== undefined,
      },
      ...{ passes: this.#passes, lastPass: this.#lastPass, nextPassAt: this.#nextPassAt },
      ...{
        differsSince: this.#differsSince,
        inFlight: this.#activity.list(),
        holds: this.#holds?.list() ?? [],
      },
    };
  }

  /** Whether it may be counted on: looked at at least once, and allowed to work. */
  isReady(): boolean {
    return this.#plan !== undefined && this.#passes > 0 && this.#condition !== 'fenced';
  }

  get condition(): Condition {
    return this.#condition;
  }
}

function describeProblem(diagnostics: readonly Diagnostic[]): string {
  return diagnostics
    .map(({ position, message }) => `${position.file}:${position.line}:${position.column}: ${message}`)
    .join('\n');
}
