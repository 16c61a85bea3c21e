import { within } from '../../core/clock.ts';
import type { Desired } from '../../core/desired.ts';
import type { DaemonDeps } from '../ports.ts';
import type { Assignment } from './board.ts';
import type { Member } from './rollout.ts';

/** The plan of one project may take so long; then its own cap is counted. Real ms. */
const planMs = 60_000;
/** The count of a project holds for its spec for so long. Real ms. */
const knownMs = 10 * 60_000;

export interface DeletionCountOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  /** How the last turns left these projects. */
  readonly left: (projects: readonly number[]) => Promise<readonly Assignment[]>;
  /** How many resources a reconcile by this spec would delete or replace now. Changes nothing. */
  readonly deletions: (desired: Desired) => Promise<number>;
  /** The largest number of projects that are planned at the same time. */
  readonly atOnce: number;
  readonly maxDeletions: number;
  /** Called when a count has ended. */
  readonly onCounted: () => void;
}

/** The deletions of a change. */
export interface Deletions {
  readonly total: number;
  /** The projects that would delete something. */
  readonly projects: ReadonlySet<number>;
}

interface Count {
  readonly candidate: string;
  /** Once they are counted. */
  deletions: Deletions | undefined;
}

/** Counts how much a change would delete, in all its projects together. Only the newest change is counted. */
export class DeletionCount {
  readonly #options: DeletionCountOptions;
  #count: Count | undefined;
  /** So that a small commit does not repeat the count of a large one. */
  readonly #known = new Map<
    number,
    { readonly mark: string; readonly at: number; readonly deletions: number }
  >();

  constructor(options: DeletionCountOptions) {
    this.#options = options;
  }

  /** `undefined` while they are being counted. `few`: the projects' own caps add up to no more than is allowed. */
  async of(candidate: string, members: readonly Member[]): Promise<Deletions | 'few' | undefined> {
    if (this.#count?.candidate === candidate) return this.#count.deletions;
    const { maxDeletions, left, log, onCounted } = this.#options;
    if (capsOf(members) <= maxDeletions) return 'few';
    const known = new Set((await left(members.map(({ project }) => project))).map(({ project }) => project));
    // A project without a state has nothing that could be deleted.
    const old = members.filter(({ project }) => known.has(project));
    if (capsOf(old) <= maxDeletions) return 'few';
    const count: Count = { candidate, deletions: undefined };
    this.#count = count;
    log.info({ projects: old.length }, 'counting the deletions of a change');
    void this.#counted(old, () => this.#count === count).then((deletions) => {
      count.deletions = deletions;
      onCounted();
    });
    return undefined;
  }

  /** Never rejects: where a project cannot be planned, its own cap counts. */
  async #counted(members: readonly Member[], isWanted: () => boolean): Promise<Deletions> {
    const { atOnce } = this.#options;
    const queue = [...members];
    let total = 0;
    const projects = new Set<number>();
    const worker = async () => {
      for (let next = queue.pop(); next !== undefined && isWanted(); next = queue.pop()) {
        const deletions = (await this.#countOf(next)) ?? next.desired.settings.max_deletions;
        total += deletions;
        if (deletions > 0) projects.add(next.project);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    return { total, projects };
  }

  async #countOf({ project, mark, desired }: Member): Promise<number | undefined> {
    const { deletions, clock, log } = this.#options;
    const known = this.#known.get(project);
    if (known?.mark === mark && clock.monotonic() - known.at < knownMs) return known.deletions;
    const counting = deletions(desired).catch((error: unknown) => {
      log.debug({ project, error }, 'counting the deletions of a project failed');
      return undefined;
    });
    const counted = await within(clock, planMs, counting);
    if (counted === undefined) this.#known.delete(project);
    else this.#known.set(project, { mark, at: clock.monotonic(), deletions: counted });
    return counted;
  }
}

function capsOf(members: readonly Member[]): number {
  return members.reduce((sum, { desired }) => sum + desired.settings.max_deletions, 0);
}
