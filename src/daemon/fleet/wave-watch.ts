import type { Clock } from '../../core/clock.ts';
import type { Condition } from '../project/condition.ts';
import type { Assignment } from './assignment.ts';
import type { Board } from './board.ts';
import type { Calls } from './calls.ts';
import type { Rollout, RolloutPolicy } from './rollout.ts';

/** Time between two requests to reconcile the projects of a wave again. Real ms. */
const askMs = 15_000;
/** Time between two checks of the projects that have stopped a change. Real ms. */
const stoppedMs = 10_000;
/** The largest number of projects that one call names: PostgreSQL carries no more than 8000 bytes. */
const mostCalled = 400;

const good: ReadonlySet<string> = new Set<Condition>(['converged', 'suspended']);
export const bad: ReadonlySet<string> = new Set<Condition>([
  'blocked',
  'drifting',
  'failing',
  'fenced',
  'unauthorized',
]);

/**
 * - `passed`: every project of the wave has converged, and stayed so. `byChange`: by the specs of this change
 * - `failed`: the wave stops the change
 */
export type Verdict =
  | { readonly is: 'passed'; readonly byChange: boolean }
  | { readonly is: 'failed'; readonly reason: string };

export interface WaveWatchOptions {
  readonly policy: Pick<RolloutPolicy, 'stayMs' | 'deadlineMs'>;
  readonly board: Pick<Board, 'markOf'>;
  readonly calls: Calls;
  /** How the last turns left these projects. */
  readonly left: (projects: readonly number[]) => Promise<readonly Assignment[]>;
  /** Real time. */
  readonly clock: Clock;
}

interface Converged {
  /** Monotonic real ms. */
  readonly at: number;
  /** The marks of the specs that the projects have converged by. */
  readonly marks: string;
  /** How many reconciles each project had had then. */
  readonly reconciliations: ReadonlyMap<number, number>;
}

/** Judges the projects of the last wave of a rollout. A new leader begins the time of `stayMs` again. */
export class WaveWatch {
  readonly #options: WaveWatchOptions;
  readonly #converged = new Map<string, Converged>();
  readonly #askedAt = new Map<string, number>();
  readonly #checkedAt = new Map<string, number>();

  constructor(options: WaveWatchOptions) {
    this.#options = options;
  }

  /** Drops the records about all other waves. */
  keep(names: ReadonlySet<string>): void {
    for (const each of [this.#converged, this.#askedAt, this.#checkedAt])
      for (const name of each.keys()) if (!names.has(name)) each.delete(name);
  }

  /** `undefined` while the wave is neither good nor bad. */
  async verdictOn(rollout: Rollout): Promise<Verdict | undefined> {
    const { board, left, clock, policy } = this.#options;
    const name = waveOf(rollout);
    const now = clock.monotonic();
    if (rollout.phase === 'stopped' && now - (this.#checkedAt.get(name) ?? -stoppedMs) < stoppedMs)
      return undefined;
    this.#checkedAt.set(name, now);
    const found = await left(rollout.watched.map(({ project }) => project));
    const memories = new Map(found.map(({ project, memory }) => [project, memory]));
    const judged = rollout.watched.map(({ project, mark }) => {
      const memory = memories.get(project);
      // A stopped change may have got a correction for these projects.
      const spec = rollout.phase === 'stopped' ? (board.markOf(project) ?? mark) : mark;
      const condition = memory?.spec === spec ? memory.history.condition : 'starting';
      return {
        project,
        condition,
        reconciliations: memory?.history.reconciliations ?? 0,
        spec,
        isOwn: spec === mark,
      };
    });
    const failed = judged.find(({ condition }) => bad.has(condition));
    const waits = judged.find(({ condition }) => !good.has(condition));
    if (failed !== undefined || waits !== undefined) this.#converged.delete(name);
    if (failed !== undefined)
      return { is: 'failed', reason: `project ${failed.project} is ${failed.condition}` };
    if (waits !== undefined) {
      if (clock.now() - rollout.since <= policy.deadlineMs) return undefined;
      return { is: 'failed', reason: `project ${waits.project} has not converged in time` };
    }
    const marks = judged.map(({ spec }) => spec).join(' ');
    const before = this.#converged.get(name);
    if (before?.marks !== marks) {
      const reconciliations = new Map(judged.map((each) => [each.project, each.reconciliations]));
      this.#converged.set(name, { at: now, marks, reconciliations });
      return undefined;
    }
    if (now - before.at < policy.stayMs) return undefined;
    // Whether they have stayed so, another reconcile says.
    const unseen = judged.filter(
      (each) => each.reconciliations <= (before.reconciliations.get(each.project) ?? 0),
    );
    if (unseen.length === 0) return { is: 'passed', byChange: judged.every(({ isOwn }) => isOwn) };
    this.#ask(
      name,
      unseen.map(({ project }) => project),
    );
    return undefined;
  }

  #ask(name: string, projects: readonly number[]): void {
    const { clock, calls } = this.#options;
    if (clock.monotonic() - (this.#askedAt.get(name) ?? -askMs) < askMs) return;
    this.#askedAt.set(name, clock.monotonic());
    for (let at = 0; at < projects.length; at += mostCalled)
      calls.send({ of: 'projects', trigger: 'fleet', projects: projects.slice(at, at + mostCalled) });
  }
}

/** The name of the wave that a verdict belongs to. */
export function waveOf({ id, phase, wave }: Rollout): string {
  return `${id} ${phase} ${wave}`;
}
