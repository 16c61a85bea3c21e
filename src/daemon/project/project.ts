import { endsIn, isOtherPlace, publicDigest, type TokenPlace } from '../../core/desired.ts';
import { type Diagnostic, StateInUseError } from '../../core/errors.ts';
import type { Trigger } from '../../core/fleet.ts';
import type { ProgressEvent, RequestCounts } from '../../core/progress.ts';
import { BilledHistory } from '../../engine/month-cost.ts';
import { createStopwatch, type Stopwatch } from '../../engine/timing.ts';
import { billOf, leaksIn } from '../../view/bill.ts';
import type { Condition } from '../../view/condition.ts';
import type { Offer, ProjectFacts } from '../../view/facts.ts';
import { CommandQueue } from '../operator-commands/command-queue.ts';
import type { CommandAnswer, OperatorCommand } from '../operator-commands/control.ts';
import { detailsWhile, type ProjectSession } from '../ports.ts';
import { KeyBackOff } from '../scheduling/back-off.ts';
import { abortedWith, rest, restMs, Wake } from '../scheduling/wake.ts';
import { SpecProblem } from '../sources/spec-problem.ts';
import { Activity } from './activity.ts';
import type { ProjectSummary } from './facts.ts';
import { dueFirewalls, ProjectHistory } from './history.ts';
import { PlanCheck } from './plan-check.ts';
import { logReconciliation, reconcile } from './reconciliation.ts';
import { LastReconciliation } from './turn-record.ts';
import { WayBack } from './way-back.ts';
import {
  isEmpty,
  openWorkspace,
  type ProjectOptions,
  type ProjectParts,
  readingsOf,
  runBeside,
  unlessAborted,
  type Workspace,
} from './workspace.ts';

/**
 * Keeps one project equal to its newest valid spec, reconciliation after reconciliation.
 *
 * ```
 * no spec ──offer──▶ due ──▶ reconciling ──▶ resting ──timer, trigger, back-off──▶ due
 *                             │ ▲
 *                             └─┘ another spec: halted, and reconciled again at once
 * ```
 * A halt never cuts a write: the request in flight ends and its answer is recorded. The next reconciliation continues
 * with the operations that wait.
 */
export class DaemonProject {
  readonly id: number;
  readonly #options: ProjectOptions;
  readonly #wake = new Wake();
  readonly #problem: SpecProblem;
  readonly #commands: CommandQueue;
  readonly #record: LastReconciliation;
  readonly #parts: ProjectParts;
  #workspace: Workspace | undefined;
  /** Shared by all sessions: its measurements take longer than a turn may last. */
  #stopwatch: Stopwatch | undefined;
  #offer: Offer | undefined;
  /** Where the session's token is. */
  #token: TokenPlace | undefined;
  /** The reasons why no spec describes the project any more. */
  #unwanted: readonly Diagnostic[] | undefined;
  /** Whether the state holds no resource of the project. `true` too if the state was never opened. */
  #empty = true;
  /** The digest of the spec of the current reconciliation. A newer spec may already be offered. */
  #reconciling: string | undefined;
  #halt: AbortController | undefined;
  #waitingFor: string | undefined;
  /** The project's clock. Wall ms. */
  readonly #now = () => (this.#workspace?.session ?? this.#options.deps).clock.now();
  /** With which a command means the project. */
  readonly #flags = () => this.#options.deps.commandFlags(this.id, this.#offer?.files ?? []);
  #nextReconciliationAt: number | undefined;
  /** The requests of all sessions that have ended. */
  #spent: RequestCounts = { reads: 0, writes: 0, polls: 0, probes: 0, throttled: 0 };
  /** Of the last turn. */
  #readings: Awaited<ReturnType<typeof readingsOf>>;

  constructor(options: ProjectOptions) {
    const { deps, id, mode, intervalMs, keepMs, onNotification } = options;
    this.id = id;
    this.#options = options;
    this.#commands = new CommandQueue(deps.log);
    const shared = { project: id, log: deps.log, onNotification };
    this.#problem = new SpecProblem({ ...shared, now: this.#now });
    this.#parts = {
      ...{ mode, intervalMs, keepMs, log: deps.log, wake: this.#wake },
      activity: new Activity(deps.log),
      backOff: new KeyBackOff(deps.random),
      history: new ProjectHistory({ ...shared, observing: mode === 'observe', flags: this.#flags }),
      ...{ check: new PlanCheck(deps), billed: new BilledHistory(), wayBack: new WayBack(deps.log) },
    };
    this.#record = new LastReconciliation(id, options.worker, this.#parts);
  }

  get condition(): Condition {
    return this.#parts.history.standing.condition;
  }

  /** Whether the project was reconciled at least once, and its token belongs to this project. */
  isReady(): boolean {
    const { plan, condition } = this.#parts.history.found;
    return plan !== undefined && condition !== 'fenced';
  }

  get digest(): string | undefined {
    return this.#offer?.desired.digest;
  }

  get isIdle(): boolean {
    return this.#workspace === undefined;
  }

  /** Whether it only waits for tasks that the API has accepted. */
  isWaiting(): boolean {
    return this.#parts.activity.isWaiting();
  }

  /** Whether a server is public whose firewall the current reconciliation is about to set. */
  hasExposed(): boolean {
    return this.#halt !== undefined && dueFirewalls(this.#parts.history.found.plan).length > 0;
  }

  hasBrokenSpec(): boolean {
    return this.#problem.list().length > 0;
  }

  /** Takes in a valid spec. A spec equal to the last one changes nothing. Returns whether the spec differs. */
  offer(offer: Offer, trigger: Trigger): boolean {
    if (this.#parts.wayBack.keepsOut(offer) && this.#offer !== undefined) return false;
    const { desired: before } = this.#offer ?? {};
    const same = before?.digest === offer.desired.digest && !isOtherPlace(before?.token, offer.desired.token);
    this.#offer = offer;
    this.#unwanted = undefined;
    this.#problem.end(offer.commit?.id);
    this.#options.onChange();
    if (same) return false;
    this.#parts.backOff.follow(offer.desired);
    this.#wake.nudge(trigger);
    this.#halt?.abort(new Error('the spec has changed'));
    return true;
  }

  /** A spec that cannot be used: the last valid one stays in force. */
  reject(diagnostics: readonly Diagnostic[]): void {
    this.#problem.begin(diagnostics);
    this.#options.onChange();
  }

  /** No spec describes the project any more: drops the project, or reports the resources that its state still holds. */
  drop(diagnostics: readonly Diagnostic[]): void {
    if (this.#unwanted !== undefined) return;
    this.#unwanted = diagnostics;
    this.#wake.nudge('file');
    this.#halt?.abort(new Error('no spec describes the project any more'));
  }

  /** Whether the project was dropped and is gone: its state holds no resource, or could not be opened at all. */
  isGone(): boolean {
    return this.#unwanted !== undefined && this.#empty;
  }

  /** The files of the spec in force. */
  files(): readonly string[] {
    return this.#offer?.files ?? [];
  }

  nudge(trigger: Trigger): void {
    this.#wake.nudge(trigger);
  }

  /** Carries out an operator command between two reconciliations. The current reconciliation stops for the command. */
  take(command: OperatorCommand): Promise<CommandAnswer> {
    const answer = this.#commands.take(command, this.#waitingFor);
    this.#wake.nudge('command');
    this.#halt?.abort(new Error('an operator command has arrived'));
    return answer;
  }

  /** Records that the project cannot continue: its state or its settings cannot be used. */
  fail(error: unknown): void {
    this.#options.deps.log.error({ error }, 'project failed');
    this.#parts.history.fail(error);
    this.#parts.history.judge([], this.#options.deps.clock.now());
    this.#options.onChange();
  }

  /** After a failure, waits for a trigger, or for `ms`. */
  async pause(ms: number, stop: AbortSignal): Promise<void> {
    this.#wake.take();
    await this.#wake.sleep(this.#options.deps.clock, ms, stop).catch(() => undefined);
  }

  /**
   * Takes one turn after the other until `stop` aborts, the project is dropped, or its token moves. Rejects if the state
   * cannot be used.
   */
  run(stop: AbortSignal): Promise<void> {
    return this.#inSession(stop, async (workspace, over) => {
      this.#wake.nudge('start');
      while (!over.aborted) {
        const ms = await this.#turn(workspace, over, this.digest ?? '');
        if (ms === undefined) return;
        await rest(ms, workspace.session, this.#parts, over);
      }
    });
  }

  /**
   * One turn of a project that several replicas share. Returns the real ms until the next turn. Rejects if the state
   * cannot be used. `spec` marks the spec of the turn.
   */
  async runOnce(trigger: Trigger, spec: string, stop: AbortSignal): Promise<number> {
    let ms = 0;
    let opened = false;
    const working = this.#inSession(stop, async (workspace, over) => {
      opened = true;
      this.#wake.take();
      this.#wake.nudge(trigger);
      ms = ((await this.#turn(workspace, over, spec)) ?? 0) / workspace.session.profile.timeScale;
      this.#readings = await readingsOf(workspace, this.#parts);
    });
    await working.catch((error: unknown) => {
      // The queue does not report why it tries again. A state that another process owns is no failure.
      if (!opened && !stop.aborted && !(error instanceof StateInUseError)) this.fail(error);
      else if (opened && !stop.aborted)
        this.#options.deps.log.warn({ error }, 'reconciliation interrupted, retrying');
      throw error;
    });
    // Triggers that came after the last reconciliation began are not done.
    return this.#wake.pending() ? 0 : ms;
  }

  /** The session ends after its work. `over` asks the work to end, if `stop` aborts or a background task fails. */
  async #inSession(
    stop: AbortSignal,
    work: (workspace: Workspace, over: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const session = await this.#openSession(stop);
    if (session === undefined) return;
    this.#stopwatch ??= createStopwatch(session.clock, session.profile.timeScale);
    this.#empty = false;
    this.#waitingFor = undefined;
    const workspace = openWorkspace(session, this.#parts, this.#stopwatch, this.#spent);
    this.#workspace = workspace;
    await session.onCommand((command) => this.take(command));
    const background = new AbortController();
    const beside = runBeside(workspace, background.signal);
    const { own: over, release } = abortedWith(stop);
    const recalled = this.#record.recall(session.store, this.#offer?.desired);
    const working = recalled.then(() => work(workspace, over.signal));
    try {
      await Promise.race([working, beside]);
    } finally {
      background.abort();
      release();
      over.abort(new Error('the session ends'));
      await working.catch(() => undefined);
      this.#workspace = undefined;
      await session.close();
      this.#spent = workspace.session.counts();
    }
  }

  /** `undefined` if `stop` aborts before the state is free. */
  async #openSession(stop: AbortSignal): Promise<ProjectSession | undefined> {
    const { deps } = this.#options;
    const token = this.#offer?.desired.token;
    this.#token = token;
    const opening = deps.open({
      projectId: this.id,
      token,
      log: detailsWhile(() => this.#parts.history.found.error !== undefined, deps.log),
      onEvent: (event) => this.#follow(event),
      onWait: (holder) => {
        this.#waitingFor = holder;
        deps.log.warn({ reason: holder }, 'waiting for the state: another process owns the state');
      },
    });
    return unlessAborted(opening, stop);
  }

  /**
   * Carries out operator commands, and reconciles until no trigger is pending. Records the results for the next turn.
   * Returns the ms until it is due; `undefined` if the session has to end first.
   */
  async #turn(workspace: Workspace, stop: AbortSignal, spec: string): Promise<number | undefined> {
    const { engine, store, clock } = workspace.session;
    const { mode, intervalMs, deps, onChange } = this.#options;
    do {
      const triggers = this.#wake.take();
      await this.#commands.obey(engine, this.#offer?.desired);
      const isElsewhere = isOtherPlace(this.#token, this.#offer?.desired.token);
      if (this.#unwanted !== undefined || isElsewhere) {
        this.#empty = isEmpty((await readingsOf(workspace, this.#parts)) ?? { known: undefined });
        if (this.isGone() || isElsewhere) return undefined;
      }
      if (this.#unwanted !== undefined) this.reject(this.#unwanted);
      // After a crash in the middle of the way back, a restart must not begin the refused spec again.
      if ((await this.#return(store)) && mode === 'correct') await this.#record.write(store, spec);
      if (this.#offer !== undefined) await this.#reconcile(this.#offer, triggers, workspace, stop);
    } while (this.#wake.pending() && !stop.aborted);
    if (mode === 'correct') await this.#record.write(store, spec);
    const now = clock.now();
    const moments = [this.#parts.backOff.next(now) ?? Number.NaN, ...endsIn(this.#offer?.desired)];
    const due = restMs({ found: this.#parts.history.found, intervalMs, moments, now }, deps.random);
    const ms = this.#offer === undefined ? intervalMs : due;
    this.#nextReconciliationAt = now + ms;
    onChange();
    return ms;
  }

  async #reconcile(
    offer: Offer,
    triggers: readonly Trigger[],
    workspace: Workspace,
    stop: AbortSignal,
  ): Promise<void> {
    const { deps, onReconciliation, onChange } = this.#options;
    const halt = new AbortController();
    this.#halt = halt;
    this.#reconciling = offer.desired.digest;
    this.#nextReconciliationAt = undefined;
    onChange();
    const done = reconcile(offer, triggers, workspace, this.#parts, { halt, stop });
    const { record, results } = await done.finally(() => {
      this.#halt = undefined;
    });
    const facts = await this.facts();
    const { pauses = [] } = facts.daemon ?? {};
    const pauseCodes = new Set(['unauthorized', ...pauses.map(({ code }) => code)]);
    const { desired } = offer;
    this.#parts.backOff.learn(results, desired, (code) => pauseCodes.has(code), this.#now());
    this.#parts.history.close(record, desired.digest, {
      pauses,
      leaking: leaksIn(billOf(facts)) > 0,
    });
    const { found } = this.#parts.history;
    logReconciliation(deps.log, record, found.plan, publicDigest(desired));
    onReconciliation(record);
    onChange();
    const isOver = this.digest === desired.digest && record.outcome !== 'stopped';
    if (isOver && (await this.#parts.wayBack.refuses(offer, found, workspace.session)))
      this.#wake.nudge('file');
  }

  /** Puts the last spec that converged in force, in place of one that was refused. Returns whether it did. */
  async #return(store: ProjectSession['store']): Promise<boolean> {
    const instead = this.#offer && (await this.#parts.wayBack.inPlaceOf(this.#offer, store));
    if (instead === undefined) return false;
    this.#offer = instead.offer;
    this.#problem.begin(instead.problem, 'returned');
    return true;
  }

  #follow(event: ProgressEvent): void {
    const isNew = this.#parts.activity.take(event);
    if (event.type === 'ended' && event.result.outcome === 'done')
      this.#workspace?.approval.consume(event.result);
    this.#parts.history.follow(event, this.#reconciling);
    if (isNew) this.#options.onEvent(event);
    this.#options.onChange();
  }

  /** Everything that is known of the project now: the input of its view. */
  async facts(): Promise<ProjectFacts> {
    const { mode, intervalMs } = this.#options;
    // A state that is closed meanwhile says nothing more.
    const readings = await readingsOf(this.#workspace, this.#parts).catch(() => undefined);
    const { known, client, pauses = [] } = readings ?? this.#readings ?? {};
    const { error, reconciliations, lastReconciliations, ...found } = this.#parts.history.found;
    return {
      ...{ id: this.id, flags: this.#flags(), known, ...found, ...this.#parts.history.standing },
      inFlight: this.#parts.activity.list(),
      ...{ offer: this.#offer, problem: this.#problem.list(), problemSince: this.#problem.since },
      prices: found.world?.profile.prices,
      daemon: {
        ...{ mode, intervalMs, client, error, reconciliations, lastReconciliations },
        ...{ waitingFor: this.#waitingFor, reconciling: this.#halt !== undefined },
        ...{ nextReconciliationAt: this.#nextReconciliationAt, pauses },
      },
    };
  }

  /** A line of the overview. It asks no state, since there may be a thousand projects. */
  summary(): ProjectSummary {
    return { ...this.#parts.history.summary(), id: this.id, now: this.#now(), broken: this.hasBrokenSpec() };
  }

  /** The result of the spec in force, for the status of its commit. */
  result() {
    return { id: this.id, problem: this.#problem.list(), ...this.#parts.history.result(this.digest) };
  }
}
