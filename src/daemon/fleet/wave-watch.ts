import type { Clock } from '../../core/clock.ts';
import { type Ending, endingOf } from '../../view/condition.ts';
import type { Assignment, Board } from './board.ts';
import type { Rollout } from './rollout.ts';

/** Time between two requests to reconcile the projects of a wave again. Real ms. */
const askMs = 15_000;
/** Time between two checks of the projects that have stopped a change. Real ms. */
const stoppedMs = 10_000;

/**
 * - `passed`: every project of the wave has converged, and stayed so. `byChange`: by the specs of this change
 * - `failed`: the wave stops the change
 */
export type WaveVerdict =
  | { readonly is: 'passed'; readonly byChange: boolean }
  | { readonly is: 'failed'; readonly reason: string };

export interface WaveWatchOptions {
  readonly board: Pick<Board, 'markOf'>;
  /** Asks for a turn of these projects. */
  readonly ask: (projects: readonly number[]) => Promise<void>;
  /** How the last turns left these projects. */
  readonly left: (projects: readonly number[]) => Promise<readonly Assignment[]>;
  /** With the wall time of the database. */
  readonly clock: Clock;
}

/** A project of a wave, as its last turn left it. Times in wall ms of the database. */
interface Watched {
  readonly project: number;
  readonly condition: string;
  readonly ending: Ending;
  /** Since when its turns have left it in this condition, by this spec. */
  readonly since: number;
  /** When its last turn ended. */
  readonly turnedAt: number;
  /** Whether the spec is the one of the rollout, and no correction of it. */
  readonly isOwn: boolean;
}

/**
 * Judges the projects of the last wave of a rollout. How long a project has been converged is in its own state, so a new
 * leader continues the time of `stayMs`.
 */
export class WaveWatch {
  readonly #options: WaveWatchOptions;
  readonly #askedAt = new Map<string, number>();
  readonly #checkedAt = new Map<string, number>();

  constructor(options: WaveWatchOptions) {
    this.#options = options;
  }

  /** Drops the records about all other waves. */
  keep(names: ReadonlySet<string>): void {
    for (const each of [this.#askedAt, this.#checkedAt])
      for (const name of each.keys()) if (!names.has(name)) each.delete(name);
  }

  /** `undefined` while the wave is neither good nor bad. */
  async verdictOn(rollout: Rollout): Promise<WaveVerdict | undefined> {
    if (!this.#isDue(rollout)) return undefined;
    const projects = await this.#observed(rollout);
    if (projects.every(({ ending }) => ending === 'rest')) return this.#stayed(rollout, projects);
    return this.#failed(rollout, projects);
  }

  /** A stopped rollout is judged less often: its projects may stay unchanged for days. */
  #isDue(rollout: Rollout): boolean {
    const [name, now] = [waveOf(rollout), this.#options.clock.monotonic()];
    if (rollout.phase === 'stopped' && now - (this.#checkedAt.get(name) ?? -stoppedMs) < stoppedMs)
      return false;
    this.#checkedAt.set(name, now);
    return true;
  }

  async #observed({ phase, watched }: Rollout): Promise<readonly Watched[]> {
    const { board, left } = this.#options;
    const found = await left(watched.map(({ project }) => project));
    const memories = new Map(found.map(({ project, memory }) => [project, memory]));
    return watched.map(({ project, mark }) => {
      // A stopped change may have got a correction for these projects.
      const spec = phase === 'stopped' ? (board.markOf(project) ?? mark) : mark;
      const memory = memories.get(project);
      const isBySpec = memory?.spec === spec;
      const condition = isBySpec ? memory.history.condition : 'starting';
      const { since = 0, turnedAt = 0 } = memory ?? {};
      return { project, condition, ending: endingOf(condition), since, turnedAt, isOwn: spec === mark };
    });
  }

  #failed({ since, policy }: Rollout, projects: readonly Watched[]): WaveVerdict | undefined {
    const { clock } = this.#options;
    const stuck = projects.find(({ ending }) => ending === 'stuck');
    if (stuck !== undefined)
      return { is: 'failed', reason: `project ${stuck.project} is ${stuck.condition}` };
    const late = projects.find(({ ending }) => ending !== 'rest');
    if (late === undefined || clock.now() - since <= policy.deadlineMs) return undefined;
    return { is: 'failed', reason: `project ${late.project} has not converged in time` };
  }

  /** Only another turn of each project shows whether the projects have stayed converged. */
  async #stayed(rollout: Rollout, projects: readonly Watched[]): Promise<WaveVerdict | undefined> {
    const { clock } = this.#options;
    const since = Math.max(...projects.map((each) => each.since));
    if (clock.now() - since < rollout.policy.stayMs) return undefined;
    const unseen = projects.filter(({ turnedAt }) => turnedAt <= since).map(({ project }) => project);
    if (unseen.length === 0) return { is: 'passed', byChange: projects.every(({ isOwn }) => isOwn) };
    await this.#ask(waveOf(rollout), unseen);
    return undefined;
  }

  async #ask(name: string, projects: readonly number[]): Promise<void> {
    const { clock, ask } = this.#options;
    if (clock.monotonic() - (this.#askedAt.get(name) ?? -askMs) < askMs) return;
    this.#askedAt.set(name, clock.monotonic());
    await ask(projects);
  }
}

/** The name of the wave that a verdict belongs to. */
export function waveOf({ id, phase, wave }: Rollout): string {
  return `${id} ${phase} ${wave}`;
}
