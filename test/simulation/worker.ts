import { parentPort } from 'node:worker_threads';
import type { Story } from '../../src/simulation/story.ts';
import { generateActionStory } from './action-stories.ts';
import { createCoverage } from './coverage.ts';
import { editDrillOf } from './edit-drills.ts';
import { generateStory } from './generator.ts';
import { play } from './play.ts';
import { pairsOf } from './trace-pairs.ts';

/**
 * `actions`: the stories in which operators edit the spec and give commands. `drills`: the short ones of these, of a few
 * edits whose order matters.
 */
export type Family = 'faults' | 'actions' | 'drills';

const generators: Readonly<Record<Family, (seed: number) => Story>> = {
  faults: generateStory,
  actions: generateActionStory,
  drills: (seed) => ({ seed, ...editDrillOf(seed) }),
};

export const storyOf = (family: Family, seed: number): Story => generators[family](seed);

/** One thread's work: seeds to draw and play, or stories as they are. */
export type Job =
  | { readonly seeds: readonly number[]; readonly family: Family }
  /** `paired`: with the pairs of lines that coverage chooses by. */
  | { readonly cases: readonly Named[]; readonly paired?: true };
export interface Named {
  readonly name: string;
  readonly story: Story;
}
export interface Failure {
  readonly name: string;
  readonly story: Story;
  readonly rule: string;
  readonly message: string;
}
export interface Done {
  readonly played: number;
  readonly failures: readonly Failure[];
  readonly hits: Readonly<Record<string, number>>;
  /** By the name of the story. */
  readonly pairs?: Readonly<Record<string, readonly number[]>>;
}

export async function work(job: Job): Promise<Done> {
  const coverage = createCoverage();
  const failures: Failure[] = [];
  const pairs: Record<string, readonly number[]> = {};
  const cases =
    'cases' in job
      ? job.cases
      : job.seeds.map((seed) => ({ name: `seed ${seed}`, story: storyOf(job.family, seed) }));
  for (const { name, story } of cases) {
    const { violation, blockedRuns, trace } = await play(story, coverage);
    if ('paired' in job) pairs[name] = pairsOf(trace);
    coverage.count('stories');
    if (blockedRuns > 0) coverage.count('stories with something blocked');
    if (violation !== undefined) failures.push({ name, story, ...violation });
  }
  return { played: cases.length, failures, hits: Object.fromEntries(coverage.hits), pairs };
}

parentPort?.on('message', (job: Job) => {
  void work(job).then((done) => parentPort?.postMessage(done));
});
