import type { Clock } from '../../core/clock.ts';
import type { Desired } from '../../core/desired.ts';
import type { Notification } from '../notifications/notification.ts';
import type { DaemonLogger } from '../ports.ts';
import type { Condition } from '../project/condition.ts';
import type { Taken } from '../sources/intake.ts';
import type { Snapshot } from '../sources/source.ts';
import type { Assignment } from './assignment.ts';
import type { Board } from './board.ts';
import type { Calls } from './calls.ts';
import {
  candidateOf,
  heldBack,
  type Member,
  membersOf,
  projectsOf,
  type Rollout,
  type RolloutPolicy,
  type Shared,
} from './rollout.ts';

/** Time between two checks of the projects of a wave. Real ms. */
const refreshMs = 1_000;
/** Time between two requests to reconcile the projects of a wave again. Real ms. */
const askMs = 15_000;
/** The largest number of projects that one call names: PostgreSQL carries no more than 8000 bytes. */
const mostCalled = 400;
/** The plan of one project may take so long; then its own cap is counted. Real ms. */
const planMs = 60_000;

const good: ReadonlySet<string> = new Set<Condition>(['converged', 'suspended']);
const bad: ReadonlySet<string> = new Set<Condition>([
  'blocked',
  'drifting',
  'failing',
  'fenced',
  'unauthorized',
]);

export interface ReleasesOptions {
  readonly policy: RolloutPolicy;
  readonly board: Pick<Board, 'rollout' | 'markOf'>;
  readonly calls: Calls;
  /** How the last turns left these projects. */
  readonly left: (projects: readonly number[]) => Promise<readonly Assignment[]>;
  /** How many resources a reconcile by this spec would delete or replace now. Changes nothing. */
  readonly deletions: (desired: Desired) => Promise<number>;
  /** The largest number of projects that are planned at the same time. */
  readonly atOnce: number;
  /** The command that lets a change go on. */
  readonly approval: (change: string) => string;
  readonly onNotification: (notice: Notification) => void;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

interface Count {
  readonly candidate: string;
  /** Once they are counted. */
  deletions: number | undefined;
}

type Verdict =
  | { readonly of: string; readonly next: 'release' }
  | { readonly of: string; readonly next: 'stop'; readonly reason: string };

/**
 * Limits the damage that one change of the specs can do to a fleet. Only the replica that leads uses it.
 *
 * ```
 *            few deletions                    wave converged, and stayed so
 * counting ───────────────▶ running ◀──────────────────────┐
 *     └─ too many ─▶ waiting ──▶ │ └── release a wave ─────┘──▶ in force everywhere
 *                       approve  └─ wave failed ─▶ stopped ─ approve ─▶ running
 * ```
 * Projects that do not have the change yet keep the spec that is in force for them. The published {@link Rollout} holds
 * the whole progress, so the next leader continues the rollout, also after a restart. A newer change replaces an
 * unfinished change.
 */
export class Releases {
  readonly #options: ReleasesOptions;
  /** Of the candidate that is being counted. */
  #count: Count | undefined;
  #verdict: Verdict | undefined;
  /** Since when the wave has been converged (monotonic real ms), and after how many reconciles of each project. */
  #converged:
    | { readonly of: string; readonly at: number; readonly reconciliations: ReadonlyMap<number, number> }
    | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #approved: string | undefined;
  #isDue = false;

  constructor(options: ReleasesOptions) {
    this.#options = options;
  }

  /** The snapshot to put in force now. The first specs of a fleet are in force at once. */
  async next(wanted: Snapshot, taken: readonly Taken[], before: Shared | undefined): Promise<Shared> {
    if (before === undefined) return wanted;
    const members = membersOf(before, wanted, taken);
    if (members.length === 0) return wanted;
    const begun = await this.#judged(this.#rolloutOf(wanted, members, before), members);
    const { rollout, released } = await this.#released(begun, members);
    const ids = new Set(released.map(({ project }) => project));
    const back = members.flatMap(({ project }) => (ids.has(project) ? [] : [project]));
    const shared = heldBack(before, wanted, new Set(back));
    return back.length === 0 ? shared : { ...shared, rollout };
  }

  /** Reports once that a change waits or has stopped. Call this after the change was published. */
  tell(before: Rollout | undefined, now: Rollout | undefined): void {
    const { log, onNotification, approval } = this.#options;
    if (now === undefined) {
      if (before !== undefined) log.info({ change: before.change }, 'rollout complete');
      return;
    }
    const { candidate, change, phase, wave, left, total, reason } = now;
    if (before?.candidate === candidate && before.phase === phase && before.wave === wave) return;
    const fields = { change, phase, wave, left, total };
    if (phase === 'waiting' || phase === 'stopped') {
      const resolve = approval(change);
      log.warn({ ...fields, reason, resolve }, 'rollout paused');
      onNotification({ project: 0, event: 'rollout', detail: `${reason}\n${resolve}` });
    } else if (phase === 'running') log.info(fields, 'rollout running');
  }

  /**
   * Watches the projects of a wave until the signal aborts. Calls `hint` when another snapshot must be put in force.
   */
  async watch(hint: () => void, signal: AbortSignal): Promise<void> {
    const { clock, calls, log } = this.#options;
    const end = calls.listen((call) => {
      if (call.of !== 'approve') return;
      this.#approved = call.change;
      this.#isDue = true;
    });
    try {
      for (;;) {
        await clock.sleep(refreshMs, signal);
        await this.#look().catch((error: unknown) => log.debug({ error }, 'wave check failed'));
        if (this.#isDue) hint();
        this.#isDue = false;
      }
    } finally {
      end();
    }
  }

  /**
   * Continues the rollout of the same change. A different change starts a new rollout, which still watches the
   * projects of the earlier one.
   */
  #rolloutOf(wanted: Snapshot, members: readonly Member[], { rollout: last }: Shared): Rollout {
    const candidate = candidateOf(wanted);
    if (last?.candidate === candidate) return { ...last, left: members.length };
    const changed = new Set(members.map(({ project }) => project));
    const { board, clock } = this.#options;
    return {
      change: wanted.commit?.id ?? candidate,
      ...{ candidate, phase: 'counting', approved: false, total: members.length, left: members.length },
      ...{ deletions: null, wave: 0, since: clock.now(), reason: null },
      watched: (last?.watched ?? []).filter(
        ({ project, mark }) => !changed.has(project) && board.markOf(project) === mark,
      ),
    };
  }

  /** Updates the rollout with the new results: the count of deletions, the verdict on the last wave, an approval. */
  async #judged(rollout: Rollout, members: readonly Member[]): Promise<Rollout> {
    const { policy } = this.#options;
    const isApproved = this.#approved === rollout.change;
    if (rollout.phase === 'counting') {
      const deletions = await this.#deletionsOf(rollout.candidate, members);
      if (deletions === undefined) return rollout;
      if (deletions === 'few') return { ...rollout, phase: 'running' };
      if (deletions <= policy.maxDeletions) return { ...rollout, phase: 'running', deletions };
      const reason =
        `The change ${rollout.change} would delete or replace ${deletions} resources in ${members.length} projects. ` +
        `That is more than fleet.max_deletions (${policy.maxDeletions}), so no project gets the change. ` +
        'If this is meant, approve it:';
      return { ...rollout, phase: 'waiting', deletions, reason };
    }
    if (isApproved && (rollout.phase === 'waiting' || rollout.phase === 'stopped')) {
      this.#approved = undefined;
      const watched = rollout.phase === 'waiting' ? rollout.watched : [];
      return { ...rollout, phase: 'running', approved: true, reason: null, watched };
    }
    const verdict = this.#verdict?.of === nameOf(rollout) ? this.#verdict : undefined;
    if (rollout.phase !== 'running' || verdict === undefined) return rollout;
    if (verdict.next === 'release') return { ...rollout, watched: [] };
    const reason =
      `The change ${rollout.change} has stopped after wave ${rollout.wave}: ${verdict.reason}. ` +
      `${members.length} projects keep their specs. Correct the specs, or put the change in force in the next wave:`;
    return { ...rollout, phase: 'stopped', reason };
  }

  /** The next wave gets the change where nothing has to be watched before. */
  async #released(
    rollout: Rollout,
    members: readonly Member[],
  ): Promise<{ readonly rollout: Rollout; readonly released: readonly Member[] }> {
    if (rollout.phase !== 'running' || rollout.watched.length > 0) return { rollout, released: [] };
    const { policy, clock } = this.#options;
    let { wave } = rollout;
    let released: readonly Member[] = [];
    while (released.length === 0) {
      released = projectsOf(policy.waves[wave], members, rollout.total, policy);
      wave += 1;
    }
    const left = members.length - released.length;
    const watched = left === 0 ? [] : await this.#watchedOf(released);
    return { rollout: { ...rollout, wave, left, since: clock.now(), watched }, released };
  }

  /** A project that was not converged before says nothing about the change, unless there is no other one. */
  async #watchedOf(released: readonly Member[]): Promise<Rollout['watched']> {
    const assignments = await this.#options.left(released.map(({ project }) => project));
    const wasBad = new Set(
      assignments.flatMap(({ project, memory }) =>
        memory !== undefined && bad.has(memory.history.condition) ? [project] : [],
      ),
    );
    const telling = released.filter(({ project }) => !wasBad.has(project));
    return (telling.length === 0 ? released : telling).map(({ project, mark }) => ({ project, mark }));
  }

  /** `undefined` while they are being counted. `few`: the projects' own caps add up to no more than is allowed. */
  async #deletionsOf(candidate: string, members: readonly Member[]): Promise<number | 'few' | undefined> {
    if (this.#count?.candidate === candidate) return this.#count.deletions;
    const { policy, left, log } = this.#options;
    const most = members.reduce((sum, { desired }) => sum + desired.settings.max_deletions, 0);
    if (most <= policy.maxDeletions) return 'few';
    const known = new Set((await left(members.map(({ project }) => project))).map(({ project }) => project));
    // A project without a state has nothing that could be deleted.
    const old = members.filter(({ project }) => known.has(project));
    if (old.reduce((sum, { desired }) => sum + desired.settings.max_deletions, 0) <= policy.maxDeletions)
      return 'few';
    const count: Count = { candidate, deletions: undefined };
    this.#count = count;
    log.info({ projects: old.length }, 'counting the deletions of a change');
    void this.#counted(old, () => this.#count === count).then((deletions) => {
      count.deletions = deletions;
      this.#isDue = true;
    });
    return undefined;
  }

  /** Never rejects: where a project cannot be planned, its own cap counts. */
  async #counted(members: readonly Member[], isWanted: () => boolean): Promise<number> {
    const { deletions, atOnce, clock, log } = this.#options;
    const queue = [...members];
    let sum = 0;
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined && isWanted(); next = queue.shift()) {
        const { project, desired } = next;
        const most = desired.settings.max_deletions;
        const late = new AbortController();
        const counted = await Promise.race([
          deletions(desired).catch((error: unknown) => {
            log.debug({ project, error }, 'counting the deletions of a project failed');
            return most;
          }),
          clock.sleep(planMs, late.signal).then(
            () => most,
            () => 0,
          ),
        ]);
        sum += counted;
        late.abort();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    return sum;
  }

  /** Judges the projects of the last wave. */
  async #look(): Promise<void> {
    const { board, left, clock, policy } = this.#options;
    const { rollout } = board;
    if (rollout?.phase !== 'running' || rollout.watched.length === 0) return;
    const of = nameOf(rollout);
    if (this.#verdict?.of === of) return;
    const found = await left(rollout.watched.map(({ project }) => project));
    const memories = new Map(found.map(({ project, memory }) => [project, memory]));
    const judged = rollout.watched.map(({ project, mark }) => {
      const memory = memories.get(project);
      const condition = memory?.spec === mark ? memory.history.condition : 'starting';
      return { project, condition, reconciliations: memory?.history.reconciliations ?? 0 };
    });
    const failed = judged.find(({ condition }) => bad.has(condition));
    const waits = judged.find(({ condition }) => !good.has(condition));
    if (failed !== undefined) return this.#conclude(of, `project ${failed.project} is ${failed.condition}`);
    if (waits !== undefined) {
      this.#converged = undefined;
      if (clock.now() - rollout.since <= policy.deadlineMs) return;
      return this.#conclude(of, `project ${waits.project} has not converged in time`);
    }
    if (this.#converged?.of !== of) {
      const reconciliations = new Map(judged.map((each) => [each.project, each.reconciliations]));
      this.#converged = { of, at: clock.monotonic(), reconciliations };
    }
    const { at, reconciliations } = this.#converged;
    if (clock.monotonic() - at < policy.stayMs) return;
    // Whether they have stayed so, another reconcile says.
    const unseen = judged.filter((each) => each.reconciliations <= (reconciliations.get(each.project) ?? 0));
    if (unseen.length === 0) this.#conclude(of);
    else this.#ask(unseen.map(({ project }) => project));
  }

  #conclude(of: string, reason?: string): void {
    this.#verdict = reason === undefined ? { of, next: 'release' } : { of, next: 'stop', reason };
    this.#isDue = true;
  }

  #ask(projects: readonly number[]): void {
    const { clock, calls } = this.#options;
    if (clock.monotonic() - this.#askedAt < askMs) return;
    this.#askedAt = clock.monotonic();
    for (let at = 0; at < projects.length; at += mostCalled)
      calls.send({ of: 'projects', trigger: 'fleet', projects: projects.slice(at, at + mostCalled) });
  }
}

/** The name of the wave that a verdict belongs to. */
function nameOf({ candidate, wave }: Rollout): string {
  return `${candidate} ${wave}`;
}
