import type { Diagnostic } from '../core/errors.ts';
import type { Trigger } from '../core/fleet.ts';
import type { ProgressEvent } from '../core/progress.ts';
import type { Offer } from '../view/facts.ts';
import type { SpecInForce } from './fleet/board.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { Notification } from './notifications/notification.ts';
import { logOf } from './ports.ts';
import type { ReconciliationRecord } from './project/facts.ts';
import { DaemonProject } from './project/project.ts';
import type { ProjectOptions } from './project/workspace.ts';
import type { Intake, Taken } from './sources/intake.ts';
import { type Holders, projectsByFile, type SpecSource, vanished } from './sources/source.ts';
import { SpecProblem } from './sources/spec-problem.ts';
import { type Orphan, SpecReader } from './sources/spec-reader.ts';

/** How long the request in flight may take to end after the daemon was asked to stop, in real ms. */
const graceMs = 8_000;
/** The same while a project sets the firewall of an open server. */
const exposedGraceMs = 65_000;
/**
 * Waiting time before a project whose state could not be used is opened again, if the daemon has other projects. Real
 * ms.
 */
const reopenMs = 60_000;
/** A replica keeps the last results of so many projects of its fleet in memory, for its pages. */
const mostKept = 1_000;

export interface DaemonOptions extends Omit<ProjectOptions, 'id' | 'onEvent' | 'onReconciliation'> {
  readonly source: SpecSource;
  readonly intake: Intake;
  /** `one`: all files are one project's. `many`: each file is a project of its own. */
  readonly projects: 'one' | 'many';
  /** Whether the operator names the spec itself: a project that cannot go on then ends the daemon. */
  readonly trusted: boolean;
  /** If given, the replicas of a fleet share the projects. If absent, this process works on all of them. */
  readonly fleet?: {
    readonly fleet: Fleet;
    /** Reads the spec of the project whose turn this replica has. */
    readonly intake: Intake;
    readonly lead: (over: AbortSignal) => Promise<void>;
  };
  readonly onEvent: (project: number, event: ProgressEvent) => void;
  readonly onReconciliation: (project: number, reconciliation: ReconciliationRecord) => void;
}

/** Why a daemon is not ready. */
export interface NotReady {
  readonly reason: string;
  /** May name paths and quote other programs: only for readers who may see the whole status. */
  readonly detail?: string;
}

/** The operations that HTTP, signals and commands may request from a running daemon. */
export class Daemon {
  readonly specs: SpecReader;
  readonly fleet: Fleet | undefined;
  readonly #options: DaemonOptions;
  readonly #projects = new Map<number, DaemonProject>();
  readonly #running = new Set<Promise<void>>();
  /** Of specs that are in force nowhere, by project and name. */
  readonly #broken = new Map<string, SpecProblem>();
  /** The commit in force, and the projects whose specs it has changed. */
  #change: { readonly commit: string; readonly projects: ReadonlySet<number> } | undefined;
  #fail: (error: unknown) => void = () => {};
  #stop: AbortSignal = new AbortController().signal;

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.fleet = options.fleet?.fleet;
    this.specs = new SpecReader({
      deps: options.deps,
      source: options.source,
      intake: options.intake,
      deliver: (taken, holders, trigger) =>
        options.fleet === undefined
          ? this.#deliver(taken, holders, trigger)
          : this.#reportBroken(taken, holders),
      onNotification: (notification) => {
        // A folder with many projects belongs to no single project.
        const [only] = options.projects === 'one' ? this.projects() : [];
        this.#notify({ ...notification, project: only?.id ?? 0 });
      },
      onChange: options.onChange,
    });
  }

  projects(): readonly DaemonProject[] {
    return [...this.#projects.values()].sort((a, b) => a.id - b.id);
  }

  /** The commit in force, with the projects whose specs it has changed. After the start, these are all projects. */
  change() {
    const change = this.#change;
    if (change === undefined) return undefined;
    const changed = this.projects().filter(({ id }) => change.projects.has(id));
    return { commit: change.commit, projects: changed.map((each) => each.result()) };
  }

  /** Refreshes the source and every project. */
  nudge(trigger: Trigger): void {
    this.hint(trigger);
    if (this.fleet === undefined) for (const project of this.#projects.values()) project.nudge(trigger);
    else this.fleet.askForAll(trigger);
  }

  /** Reports that the source may have changed. */
  hint(trigger: Trigger): void {
    if (this.fleet === undefined) this.specs.hint(trigger);
    else this.fleet.hint(trigger);
  }

  /** The number of specs that cannot be used, in all projects. */
  brokenSpecs(): number {
    return this.specs.state().orphans.length + this.projects().filter((each) => each.hasBrokenSpec()).length;
  }

  /**
   * The reasons why the daemon is not ready. Empty once the source has been read and every project has been
   * reconciled.
   */
  notReady(): readonly NotReady[] {
    const { readAt, error } = this.specs.state();
    const projects = this.projects();
    return [
      ...(readAt === undefined && error === undefined
        ? [{ reason: 'the source has not been read yet' }]
        : []),
      ...(error === undefined ? [] : [{ reason: 'the source cannot be read', detail: error }]),
      ...(this.fleet === undefined && readAt !== undefined && projects.length === 0
        ? [{ reason: 'no spec can be used' }]
        : []),
      ...projects.flatMap((project) =>
        this.fleet !== undefined || project.isReady()
          ? []
          : [{ reason: `project ${project.id} is ${project.condition}` }],
      ),
      ...(this.fleet?.notReady() ?? []).map((reason) => ({ reason })),
    ];
  }

  /** Runs until `stop` aborts. Rejects with an error after which the whole daemon cannot continue. */
  async run(stop: AbortSignal): Promise<void> {
    const { deps, fleet } = this.#options;
    this.#stop = stop;
    const failed = new Promise<never>((_resolve, reject) => {
      this.#fail = reject;
    });
    if (fleet !== undefined) {
      const open = (spec: SpecInForce, trigger: Trigger) => this.#openFor(spec, trigger, fleet.intake);
      this.#begin(fleet.fleet.run({ open, lead: fleet.lead }, stop));
    }
    await Promise.race([this.specs.run(stop), failed]);
    const late = new AbortController();
    const all = Promise.all(this.#running).then(() => true);
    const grace = this.#grace(late.signal).then(
      () => false,
      () => true,
    );
    if (!(await Promise.race([all, grace, failed]))) {
      deps.log.warn({ waitMs: graceMs }, 'stopped during a request: the next start finds out its outcome');
    }
    late.abort();
  }

  async #grace(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.deps;
    const until = clock.monotonic() + exposedGraceMs;
    do await clock.sleep(graceMs, signal);
    while (this.projects().some((each) => each.hasExposed()) && clock.monotonic() < until);
  }

  #deliver(taken: readonly Taken[], holders: Holders, trigger: Trigger): void {
    const projectIds = projectsByFile(holders);
    const orphans: Orphan[] = [];
    const changedIds: number[] = [];
    for (const spec of taken) {
      const holder = this.#projects.get(projectIds.get(spec.name) ?? Number.NaN);
      if ('offer' in spec) {
        if (this.#offer(spec.offer, trigger)) changedIds.push(spec.offer.desired.projectId);
      } else if (holder === undefined) orphans.push(spec);
      else if (spec.projectId === undefined || spec.projectId === holder.id) holder.reject(spec.problem);
      else this.#drop(holder, spec.problem);
    }
    this.#dropVanished(new Set(projectIds.values()));
    this.#reportOrphans(orphans);
    this.#follow(this.specs.state().commit?.id, changedIds);
  }

  /** Of a fleet: only the leader reads specs, and each project gets its spec with its turn. */
  #reportBroken(taken: readonly Taken[], holders: Holders): void {
    const projectIds = projectsByFile(holders);
    const broken = taken.flatMap((each) =>
      'offer' in each ? [] : [{ ...each, projectId: projectIds.get(each.name) ?? each.projectId }],
    );
    this.#reportOrphans(broken);
    this.#follow(this.specs.state().commit?.id, []);
  }

  #follow(commit: string | undefined, changedIds: readonly number[]): void {
    const before = this.#change?.commit === commit ? [...(this.#change?.projects ?? [])] : [];
    this.#change =
      commit === undefined ? undefined : { commit, projects: new Set([...before, ...changedIds]) };
  }

  /** Returns whether the spec differs from the last one. */
  #offer(offer: Offer, trigger: Trigger): boolean {
    const { projectId } = offer.desired;
    const known = this.#projects.get(projectId);
    const project = known ?? this.#open(projectId);
    const isNew = project.offer(offer, trigger);
    if (known === undefined) this.#begin(this.#keepRunning(project));
    return isNew;
  }

  /** The project of a deleted file keeps the last content that the file had. */
  #dropVanished(projectIds: ReadonlySet<number>): void {
    for (const project of this.#projects.values()) {
      const [file = ''] = project.files();
      if (!projectIds.has(project.id)) this.#drop(project, vanished(file));
    }
  }

  /** The only project of a state keeps that state. */
  #drop(project: DaemonProject, why: readonly Diagnostic[]): void {
    if (this.#options.projects === 'many') project.drop(why);
    else project.reject(why);
  }

  #reportOrphans(orphans: readonly Orphan[]): void {
    this.specs.setOrphans(orphans);
    const before = new Map(this.#broken);
    this.#broken.clear();
    for (const { name, problem, projectId = 0 } of orphans) {
      const subject = `${projectId} ${name}`;
      const known = before.get(subject) ?? this.#problemOf(projectId);
      known.begin(problem);
      before.delete(subject);
      this.#broken.set(subject, known);
    }
    for (const over of before.values()) over.end(this.specs.state().commit?.id);
  }

  #problemOf(project: number): SpecProblem {
    const { log, clock } = this.#options.deps;
    const onNotification = (notification: Notification) => this.#notify(notification);
    const own = { log: project === 0 ? log : logOf(project, log), now: () => clock.now() };
    return new SpecProblem({ project, onNotification, ...own });
  }

  #open(id: number): DaemonProject {
    const { deps, onEvent, onReconciliation } = this.#options;
    const project = new DaemonProject({
      ...{ ...this.#options, id, deps: { ...deps, log: logOf(id, deps.log) } },
      onNotification: (notification) => this.#notify(notification),
      onEvent: (event) => {
        this.fleet?.progress();
        onEvent(id, event);
      },
      onReconciliation: (reconciliation) => onReconciliation(id, reconciliation),
    });
    this.#projects.set(id, project);
    return project;
  }

  /** An error in the work ends the daemon. */
  #begin(work: Promise<void>): void {
    this.#running.add(work.catch((error: unknown) => this.#fail(error)));
  }

  /** The replicas that follow read no specs. */
  #notify(notification: Notification): void {
    const isOfLeader = ['spec_broken', 'spec_valid', 'source'].includes(notification.event);
    if (isOfLeader && this.fleet?.leads() === false) return;
    this.#options.onNotification(notification);
  }

  /** The project of a fleet whose turn this replica has, by its spec in force. */
  async #openFor(
    { spec, commit, project: id }: SpecInForce,
    trigger: Trigger,
    intake: Intake,
  ): Promise<DaemonProject | string> {
    const [taken] = await intake.take({ specs: [spec], ...(commit === undefined ? {} : { commit }) });
    if (taken === undefined || !('offer' in taken))
      return taken?.problem.map(({ message }) => message).join('; ') ?? 'it has no spec';
    if (taken.offer.desired.projectId !== id)
      return `its spec is for project ${taken.offer.desired.projectId}`;
    const known = this.#projects.get(id);
    const project = known ?? this.#open(id);
    // The order of the map is the order of use.
    this.#projects.delete(id);
    this.#projects.set(id, project);
    for (const [other, { isIdle }] of this.#projects) {
      if (this.#projects.size <= mostKept) break;
      if (isIdle) this.#projects.delete(other);
    }
    project.offer(taken.offer, trigger);
    return project;
  }

  /**
   * The only project that the operator names ends the daemon if its state cannot be used. With many projects the other
   * projects continue, and the daemon tries the failed project again later, because any user who can push may have
   * written its spec.
   */
  async #keepRunning(project: DaemonProject): Promise<void> {
    const { trusted } = this.#options;
    while (!this.#stop.aborted) {
      try {
        await project.run(this.#stop);
      } catch (error) {
        if (trusted) throw error;
        project.fail(error);
        if (!project.isGone()) await project.pause(reopenMs, this.#stop);
      }
      if (project.isGone()) return this.#part(project);
    }
  }

  #part({ id }: DaemonProject): void {
    const { deps, onChange } = this.#options;
    this.#projects.delete(id);
    logOf(id, deps.log).info({}, 'project removed with its file');
    this.specs.free(id);
    onChange();
  }
}
