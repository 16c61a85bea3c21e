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
  readonly onVerdict: () => void;
  /** With the wall time of the database. */
  readonly clock: Clock;
}

/** A wave that is watched. Monotonic ms. */
interface Wave {
  askedAt: number;
  checkedAt: number;
  verdict?: WaveVerdict | undefined;
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
  /** By {@link waveOf}. */
  readonly #waves = new Map<string, Wave>();

  constructor(options: WaveWatchOptions) {
    this.#options = options;
  }

  /** The verdict on the last wave of the rollout. `undefined` while the wave is neither good nor bad. */
  verdictOn(rollout: Rollout): WaveVerdict | undefined {
    return this.#waves.get(waveOf(rollout))?.verdict;
  }

  /** Judges the last waves of these rollouts. */
  async check(rollouts: readonly Rollout[]): Promise<void> {
    const watched = rollouts.filter(
      ({ watched, phase }) => watched.length > 0 && (phase === 'running' || phase === 'stopped'),
    );
    const names = new Set(watched.map(waveOf));
    for (const name of this.#waves.keys()) if (!names.has(name)) this.#waves.delete(name);
    for (const rollout of watched) {
      const wave = this.#waves.get(waveOf(rollout)) ?? { askedAt: -askMs, checkedAt: -stoppedMs };
      this.#waves.set(waveOf(rollout), wave);
      if (wave.verdict !== undefined) continue;
      wave.verdict = await this.#judge(rollout, wave);
      if (wave.verdict !== undefined) this.#options.onVerdict();
    }
  }

  async #judge(rollout: Rollout, wave: Wave): Promise<WaveVerdict | undefined> {
    const now = this.#options.clock.monotonic();
    const isStopped = rollout.phase === 'stopped';
    // The projects of a stopped rollout may stay unchanged for days.
    if (isStopped && now - wave.checkedAt < stoppedMs) return undefined;
    wave.checkedAt = now;
    const projects = await this.#observed(rollout);
    if (projects.every(({ ending }) => ending === 'rest')) return this.#stayed(rollout, projects, wave);
    return isStopped ? undefined : this.#failed(rollout, projects);
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
  async #stayed(
    rollout: Rollout,
    projects: readonly Watched[],
    wave: Wave,
  ): Promise<WaveVerdict | undefined> {
    const { clock, ask } = this.#options;
    const since = Math.max(...projects.map((each) => each.since));
    if (clock.now() - since < rollout.policy.stayMs) return undefined;
    const unseen = projects.filter(({ turnedAt }) => turnedAt <= since).map(({ project }) => project);
    if (unseen.length === 0) return { is: 'passed', byChange: projects.every(({ isOwn }) => isOwn) };
    if (clock.monotonic() - wave.askedAt < askMs) return undefined;
    wave.askedAt = clock.monotonic();
    await ask(unseen);
    return undefined;
  }
}

function waveOf({ id, phase, wave }: Rollout): string {
  return `${id} ${phase} ${wave}`;
}
