import type { Clock } from '../../core/clock.ts';
import { counted, linesText } from '../../core/text.ts';
import { endingOf } from '../../view/condition.ts';
import type { Notification } from '../notifications/notification.ts';
import type { DaemonLogger } from '../ports.ts';
import type { Taken } from '../sources/intake.ts';
import { markOf, type Snapshot } from '../sources/source.ts';
import type { Board } from './board.ts';
import { DeletionCount, type DeletionCountOptions } from './deletion-count.ts';
import {
  brokenIn,
  candidateOf,
  keepSpecsOf,
  type Member,
  membersOf,
  projectsOf,
  type Rollout,
  type RolloutPolicy,
  type Shared,
  type Waiting,
  wavesOf,
  withSpecs,
} from './rollout.ts';
import {
  type Advance,
  type Begun,
  corrected,
  type Followed,
  isOver,
  isTakenOver,
  keptBy,
  placedBy,
  precedes,
} from './succession.ts';
import { WaveWatch } from './wave-watch.ts';

/** Time between two checks of the projects of a wave. Real ms. */
const refreshMs = 1_000;

export interface ReleasesOptions extends Pick<DeletionCountOptions, 'left' | 'deletions' | 'atOnce'> {
  readonly policy: RolloutPolicy;
  readonly board: Pick<Board, 'rollouts' | 'markOf'>;
  /** Asks for a turn of these projects. */
  readonly ask: (projects: readonly number[]) => Promise<void>;
  /** The command that lets a change go on. */
  readonly approval: (change: string) => string;
  readonly onNotification: (notification: Notification) => void;
  /** With the wall time of the database. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

/** The newest change that the source wants. */
interface Newest {
  readonly wanted: Snapshot;
  /** Marks the specs that this replica can use: the deletions of others were never counted. */
  readonly candidate: string;
  readonly members: ReadonlyMap<number, Member>;
  /** The last rollout that has not begun, and holds no projects. */
  readonly last: Rollout | undefined;
  /** The rollouts that have not begun, and hold projects whose deletions need an approval. */
  readonly holding: readonly Rollout[];
  /** The newest candidate whose deletions were allowed. */
  readonly counted: string | undefined;
}

/**
 * Limits the damage that one change of the specs can do to a fleet. Only the replica that leads uses it.
 *
 * ```
 *            few deletions          no earlier rollout of its projects   wave converged, and stayed so
 * counting ───────────────▶ queued ──────────────────────────▶ running ◀──────────────────────┐
 *     └─ too many ─▶ waiting ─▲                                   │ └── release a wave ────────┘──▶ in force everywhere
 *                      approve                                    └─ wave failed ─▶ stopped ─ approve, converged ─▶ running
 * ```
 * If there are too many deletions, only the projects that would delete wait, in a rollout of their own: the others get
 * the change. An approval is for these specs of these projects, and newer changes of other projects do not end it.
 *
 * Projects that do not have the change yet keep the spec that is in force for them. The published {@link Rollout}s hold
 * the whole progress, so the next leader continues them, also after a restart.
 *
 * How a newer change follows the older ones:
 * - A project that both want the same spec for keeps its place in the older rollout.
 * - A newer change takes the other projects out of the older rollout. They get it after the older rollout has ended, in
 *   waves of its own. If it takes all of them, the older rollout ends at once.
 * - After `supersedeMs`, a rollout runs to its end before a newer change gets its projects.
 * - The projects of a wave that failed stop that rollout, and every later one of its projects, until they have converged, or until an
 *   operator approves. A correction of these very projects is put in force at once.
 */
export class Releases {
  readonly #options: ReleasesOptions;
  readonly #count: DeletionCount;
  readonly #watch: WaveWatch;
  #approved: string | undefined;
  #isDue = false;

  constructor(options: ReleasesOptions) {
    this.#options = options;
    const { maxDeletions } = options.policy;
    const onChange = () => this.#readSoon();
    this.#count = new DeletionCount({ ...options, maxDeletions, onCounted: onChange });
    this.#watch = new WaveWatch({ ...options, onVerdict: onChange });
  }

  /** The snapshot to put in force now. The first specs of a fleet are in force at once. */
  async next(wanted: Snapshot, taken: readonly Taken[], before: Shared | undefined): Promise<Shared> {
    if (before === undefined) return wanted;
    const { rollouts = [], waiting = [] } = before;
    const members = new Map(membersOf(before, wanted, taken).map((each) => [each.project, each]));
    const broken = brokenIn(taken);
    const approved = this.#approved;
    this.#approved = undefined;
    const last = rollouts.find(({ wave, held }) => wave === 0 && held.length === 0);
    const holding = rollouts.filter(({ wave, held }) => wave === 0 && held.length > 0);
    // An operator who approves a change that is queued ends all rollouts before it.
    const isFirst = last?.phase === 'queued' && last.change === approved;
    const byRollout = Map.groupBy(waiting, (each) => each.rollout);
    const begun = rollouts
      .filter(({ wave }) => wave > 0 && !isFirst)
      .map((rollout) => ({ rollout, waiting: byRollout.get(rollout.id) ?? [] }))
      .map((each) => keptBy(each, { members, broken }, this.#isDueToEnd(each)))
      .map((each) => this.#judged(each, approved));
    const going = await this.#advanced(begun, broken);
    const usable = wanted.specs.filter(({ name }) => !broken.has(name));
    const candidate = candidateOf(usable);
    const newest = { wanted, candidate, members, last, holding, counted: before.counted };
    // Of one change a wave may have stopped and deletions may wait: the deletions then need another approval.
    const isForWave = rollouts.some(({ phase, change }) => phase === 'stopped' && change === approved);
    const followed = await this.#followed(going, newest, isForWave ? undefined : approved);
    const { begun: now, released, queued, counted } = followed;
    const ids = new Set(now.map(({ rollout }) => rollout.id));
    // A change that has waited for the end of a rollout can begin now.
    if (rollouts.some(({ id, wave }) => wave > 0 && !ids.has(id))) this.#readSoon();
    const got = new Map(released.map(({ project, spec }) => [project, spec]));
    const back = new Set([...members.keys()].filter((project) => !got.has(project)));
    return {
      ...keepSpecsOf(before, withSpecs(wanted, [...got.values()]), back),
      rollouts: [...now.map(({ rollout }) => rollout), ...queued],
      waiting: now.flatMap((each) => each.waiting),
      ...(counted === undefined ? {} : { counted }),
    };
  }

  /** Reports once that a change waits or has stopped. Call this after the change was published. */
  report(before: readonly Rollout[] = [], now: readonly Rollout[] = []): void {
    const { log, onNotification, approval } = this.#options;
    for (const { id, change } of before)
      if (!now.some((each) => each.id === id)) log.info({ change }, 'rollout ended');
    for (const { id, change, phase, wave, left, total, reason } of now) {
      const known = before.find((each) => each.id === id);
      if (known?.phase === phase && known.wave === wave) continue;
      const fields = { change, phase, wave, left, total };
      if (phase === 'waiting' || phase === 'stopped') {
        const resolve = approval(change);
        log.warn({ ...fields, reason, resolve }, 'rollout paused');
        onNotification({ project: 0, event: 'rollout', detail: linesText([reason ?? '', resolve]) });
      } else if (phase === 'running') log.info(fields, 'rollout running');
      else if (phase === 'queued') log.info(fields, 'rollout queued');
    }
  }

  /**
   * Watches the projects of a wave until the signal aborts. Calls `hint` when another snapshot must be put in force.
   */
  async watch(hint: () => void, signal: AbortSignal): Promise<void> {
    const { board, clock, log } = this.#options;
    for (;;) {
      await clock.sleep(refreshMs, signal);
      await this.#watch
        .check(board.rollouts)
        .catch((error: unknown) => log.debug({ error }, 'wave check failed'));
      if (this.#isDue) hint();
      this.#isDue = false;
    }
  }

  /** The operator approves a change that waits or has stopped. */
  approve(change: string): void {
    this.#options.log.info({ change, command: 'approve-commit' }, 'operator command received');
    this.#approved = change;
    this.#readSoon();
  }

  #readSoon(): void {
    this.#isDue = true;
  }

  /** Newer changes may take projects out of a rollout for a limited time only: else a busy branch would never end one. */
  #isDueToEnd({ rollout: { phase, begunAt, policy } }: Begun): boolean {
    return phase === 'running' && this.#options.clock.now() - begunAt > policy.supersedeMs;
  }

  /** Updates a rollout by the verdict on its last wave, or by an approval. */
  #judged(begun: Begun, approved: string | undefined): Begun {
    const { rollout } = begun;
    const { change, phase, left, wave } = rollout;
    const goOn = (more: Partial<Rollout> = {}): Begun => {
      return { ...begun, rollout: { ...rollout, ...more, phase: 'running', reason: null, watched: [] } };
    };
    if (phase === 'stopped' && approved === change) return goOn({ approved: true });
    const verdict = this.#watch.verdictOn(rollout);
    if (verdict === undefined) return begun;
    // A project that has converged by a correction shows nothing about the specs that are left.
    if (verdict.is === 'passed')
      return phase === 'running' || verdict.byChange || left === 0 ? goOn() : begun;
    if (phase === 'stopped') return begun;
    const others =
      left === 0
        ? 'No other project gets the change'
        : `${counted(left, 'project')} ${left === 1 ? 'keeps its spec' : 'keep their specs'}`;
    const reason =
      `The change ${change} has stopped after wave ${wave}: ${verdict.reason}. ` +
      `${others}. Correct the specs, or continue with the next wave:`;
    return { ...begun, rollout: { ...rollout, phase: 'stopped', reason } };
  }

  /** Releases the next wave of each rollout that watches nothing. Rollouts that are over are left out. */
  async #advanced(begun: readonly Begun[], broken: ReadonlySet<string>): Promise<Advance> {
    const steps = await Promise.all(
      begun.map(async (each) => {
        if (isOver(each)) return { begun: [], released: [] };
        if (each.rollout.phase !== 'running' || each.rollout.watched.length > 0)
          return { begun: [each], released: [] };
        return this.#released(each, broken);
      }),
    );
    return {
      begun: steps.flatMap((each) => each.begun),
      released: steps.flatMap(({ released }) => released),
    };
  }

  /** After the last wave nothing is watched: the rollout is over. */
  async #released({ rollout, waiting }: Begun, broken: ReadonlySet<string>): Promise<Advance> {
    const ready = waiting.filter(({ spec }) => spec !== null && !broken.has(spec.name));
    let { wave } = rollout;
    let released: readonly Waiting[] = [];
    while (released.length === 0 && wave <= rollout.policy.waves.length) {
      released = projectsOf(ready, { ...rollout, wave });
      wave += 1;
    }
    const left = ready.length - released.length;
    if (left === 0) return { begun: [], released };
    const got = new Set(released);
    const watched = await this.#watchedOf(released);
    const now = { ...rollout, wave, left, released: rollout.released + released.length, watched };
    const next = {
      rollout: { ...now, since: this.#options.clock.now() },
      waiting: waiting.filter((each) => !got.has(each)),
    };
    return { begun: [next], released };
  }

  /** A project that was not converged before says nothing about the change, unless there is no other one. */
  async #watchedOf(released: readonly Waiting[]): Promise<Rollout['watched']> {
    const assignments = await this.#options.left(released.map(({ project }) => project));
    const wasBad = new Set(
      assignments.flatMap(({ project, memory }) =>
        endingOf(memory?.history.condition) === 'stuck' ? [project] : [],
      ),
    );
    const conclusive = released.filter(({ project }) => !wasBad.has(project));
    return (conclusive.length === 0 ? released : conclusive).flatMap(({ project, spec }) =>
      spec === null ? [] : [{ project, mark: markOf(spec) }],
    );
  }

  /** Begins the approved deletions, then counts and begins the newest change of the other projects. */
  async #followed(
    going: Advance,
    newest: Newest,
    approved: string | undefined,
  ): Promise<Followed & { readonly counted: string | undefined }> {
    const { members, holding } = newest;
    let step: Followed = { ...going, queued: [] };
    const apart = new Set<number>();
    for (const rollout of holding) {
      const held = rollout.held.filter(({ project, mark }) => members.get(project)?.mark === mark);
      if (held.length === 0) continue;
      for (const { project } of held) apart.add(project);
      const isApproved = rollout.phase === 'waiting' && rollout.change === approved;
      const now = { ...rollout, held, left: held.length, total: held.length };
      step = await this.#begun(
        step,
        isApproved ? { ...now, phase: 'queued', approved: true, reason: null } : now,
        members,
      );
    }
    const wanted = new Map([...members].filter(([project]) => !apart.has(project)));
    const placed = placedBy(step);
    const size = [...wanted.keys()].filter((project) => !placed.has(project)).length;
    if (size === 0) return { ...step, counted: newest.counted };
    const others = [...wanted.values()].filter(({ project, mark }) => placed.get(project) !== mark);
    const counted = await this.#counted(this.#rolloutOf(size, newest), others);
    for (const rollout of counted) step = await this.#begun(step, rollout, wanted);
    return { ...step, counted: counted.at(-1)?.phase === 'counting' ? newest.counted : newest.candidate };
  }

  /** Begins a rollout that is queued, as soon as no earlier rollout has a project of it. */
  async #begun(step: Followed, queued: Rollout, members: ReadonlyMap<number, Member>): Promise<Followed> {
    const { begun, released } = step;
    if (queued.phase !== 'queued') return { ...step, queued: [...step.queued, queued] };
    const own = new Set(queued.held.map(({ project }) => project));
    const others = new Set(step.queued.flatMap(({ held }) => held.map(({ project }) => project)));
    const placed = placedBy(step);
    const isIts = (project: number) => (own.size > 0 ? own.has(project) : !others.has(project));
    const change = new Map([...members].filter(([project]) => !placed.has(project) && isIts(project)));
    if (change.size === 0) return step;
    const waiting = [...change.values()].map(({ project, spec }) => ({ project, rollout: queued.id, spec }));
    const before = begun.filter((each) => precedes(each, change));
    if (before.every((each) => isTakenOver(each, change))) {
      // The time of a failed rollout says nothing about how busy the branch is.
      const superseded = before.filter(({ rollout: { phase } }) => phase === 'running');
      const begunAt = Math.min(
        this.#options.clock.now(),
        ...superseded.map(({ rollout }) => rollout.begunAt),
      );
      const rollout: Rollout = { ...queued, phase: 'running', begunAt, held: [], total: change.size };
      const first = await this.#released({ rollout, waiting }, new Set());
      return {
        ...step,
        begun: [...begun.filter((each) => !before.includes(each)), ...first.begun],
        released: [...released, ...first.released],
      };
    }
    const fixed = new Set(corrected(before, change).map(({ project }) => project));
    const fixes = waiting.filter(({ project }) => fixed.has(project));
    const left = waiting.length - fixes.length;
    const rest = left === 0 ? [] : [{ ...queued, left }];
    return { ...step, released: [...released, ...fixes], queued: [...step.queued, ...rest] };
  }

  /** The newest change, as far as it has not begun. It takes the place of the one that was not begun before. */
  #rolloutOf(size: number, { wanted, candidate, last, counted }: Newest): Rollout {
    if (last?.candidate === candidate) return { ...last, total: size, left: size };
    const { policy, clock } = this.#options;
    const now = clock.now();
    return {
      id: `${candidate} ${now}`,
      change: wanted.commit?.id ?? candidate,
      ...{ candidate, phase: candidate === counted ? 'queued' : 'counting', approved: false },
      ...{ policy: wavesOf(policy), wave: 0, total: size, released: 0, left: size },
      ...{ deletions: null, watched: [], held: [], since: now, begunAt: now, reason: null },
    };
  }

  /** The rollouts of the newest change: of the projects whose deletions wait, and of the others. */
  async #counted(rollout: Rollout, members: readonly Member[]): Promise<readonly Rollout[]> {
    const { maxDeletions } = this.#options.policy;
    const { phase, change, candidate } = rollout;
    if (phase !== 'counting') return [rollout];
    const deletions = await this.#count.of(candidate, members);
    if (deletions === undefined) return [rollout];
    if (deletions === 'few') return [{ ...rollout, phase: 'queued' }];
    const { total, projects } = deletions;
    if (total <= maxDeletions) return [{ ...rollout, phase: 'queued', deletions: total }];
    const held = members.flatMap(({ project, mark }) => (projects.has(project) ? [{ project, mark }] : []));
    const reason =
      `The change ${change} would delete or replace ${counted(total, 'resource')} in ${counted(held.length, 'project')}. ` +
      `That is more than fleet.max_deletions (${maxDeletions}), so ${held.length === 1 ? 'this project does' : 'these projects do'} not get the change before your approval. ` +
      'If these deletions are intended, approve the change:';
    const size = { total: held.length, left: held.length };
    return [
      { ...rollout, id: `${rollout.id} held`, phase: 'waiting', deletions: total, reason, held, ...size },
      { ...rollout, phase: 'queued' },
    ];
  }
}
