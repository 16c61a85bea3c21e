import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Done, Job } from './worker.ts';

/** Stories that one message carries to a thread. */
const batchSize = 25;

/** Plays everything that `jobs` gives, on all cores; stops early when `onDone` says so. */
export async function playAll(
  jobs: Iterator<Job> | AsyncIterator<Job>,
  onDone: (done: Done) => 'go on' | 'stop',
  threads = availableParallelism(),
): Promise<void> {
  let stopped = false;
  async function drive(): Promise<void> {
    const worker = new Worker(new URL('./worker.ts', import.meta.url));
    try {
      while (!stopped) {
        const next = await jobs.next();
        if (next.done) return;
        const done = await new Promise<Done>((resolve, reject) => {
          worker.once('message', resolve);
          worker.once('error', reject);
          worker.postMessage(next.value);
        });
        worker.removeAllListeners();
        if (onDone(done) === 'stop') stopped = true;
      }
    } finally {
      await worker.terminate();
    }
  }
  await Promise.all(Array.from({ length: threads }, drive));
}

/** Batches of seeds from `first` on; endless without `count`. */
export function* seedJobs(first: number, count = Number.POSITIVE_INFINITY): Generator<Job> {
  for (let from = first; from < first + count; from += batchSize) {
    const size = Math.min(batchSize, first + count - from);
    yield { seeds: Array.from({ length: size }, (_, at) => from + at) };
  }
}

export async function* caseJobs(
  cases: AsyncIterable<Job extends infer J ? (J extends { cases: readonly (infer C)[] } ? C : never) : never>,
): AsyncGenerator<Job> {
  let batch = [];
  for await (const each of cases) {
    batch.push(each);
    if (batch.length < batchSize) continue;
    yield { cases: batch };
    batch = [];
  }
  if (batch.length > 0) yield { cases: batch };
}
