import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { playAll } from './pool.ts';
import { type Family, type Job, type Named, storyOf } from './worker.ts';

const path = join(import.meta.dirname, 'corpus.txt');
const batchSize = 20;

/**
 * The stories that coverage has chosen: each is the one, of all that were drawn, that adds the most pairs of consecutive
 * trace lines to those before it.
 */
export async function* corpus(): AsyncGenerator<Named> {
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  for (const [at, line] of lines.entries()) yield { ...named(line), name: `corpus ${at + 1} (${line})` };
}

/** @param line the family and the seed */
function named(line: string): Named {
  const [family, seed] = line.split(' ') as [Family, string];
  return { name: line, story: storyOf(family, Number(seed)) };
}

/** Draws `count` stories of each family, and writes the seeds of the `most` chosen ones. */
async function choose(counts: Readonly<Record<Family, number>>, most: number): Promise<void> {
  const lines = (Object.entries(counts) as [Family, number][]).flatMap(([family, count]) =>
    Array.from({ length: count }, (_, at) => `${family} ${at + 1}`),
  );
  const pairs = new Map<string, readonly number[]>();
  await playAll(batches(lines), (done) => {
    for (const [name, its] of Object.entries(done.pairs ?? {})) pairs.set(name, its);
    return 'go on';
  });
  const chosen = mostTelling(pairs, most);
  writeFileSync(path, `${chosen.join('\n')}\n`);
  console.log(`${chosen.length} of ${pairs.size} stories`);
}

function* batches(lines: readonly string[]): Generator<Job> {
  for (let at = 0; at < lines.length; at += batchSize)
    yield { cases: lines.slice(at, at + batchSize).map(named), paired: true };
}

/** The names of the stories: each adds the most pairs to those before it. */
function mostTelling(pairs: ReadonlyMap<string, readonly number[]>, most: number): readonly string[] {
  const seen = new Set<number>();
  const chosen: string[] = [];
  // What a story adds only falls, so that the first one of the sorted list that keeps its place is the best.
  const left = [...pairs].map(([name, its]) => ({ name, its, adds: its.length }));
  while (chosen.length < most && left.length > 0) {
    left.sort((one, other) => other.adds - one.adds);
    const [best, next] = left as [(typeof left)[0], (typeof left)[0] | undefined];
    best.adds = best.its.filter((each) => !seen.has(each)).length;
    if (best.adds < (next?.adds ?? 0)) continue;
    if (best.adds === 0) break;
    for (const each of best.its) seen.add(each);
    chosen.push(best.name);
    left.shift();
  }
  return chosen;
}

if (import.meta.main) {
  const [faults = 3_000, actions = 4_500, drills = 1_000, most = 600] = process.argv.slice(2).map(Number);
  await choose({ faults, actions, drills }, most);
}
