import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Done, Family, Job, Named } from './worker.ts';

/** Stories that one message carries to a thread. */
const batchSize = 25;

/** A batch that is not over by then hangs. */
const longestBatchMs = 600_000;

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
        const done = await answerOf(worker, next.value);
        if (onDone(done) === 'stop') stopped = true;
      }
    } finally {
      await worker.terminate();
    }
  }
  await Promise.all(Array.from({ length: threads }, drive));
}

async function answerOf(worker: Worker, job: Job): Promise<Done> {
  const over = new AbortController();
  let watchdog: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      once(worker, 'message', { signal: over.signal }).then(([done]) => done as Done),
      once(worker, 'error', { signal: over.signal }).then(([error]) => Promise.reject(error as Error)),
      new Promise<never>((_resolve, reject) => {
        const what =
          'seeds' in job ? `seeds ${job.seeds.join(' ')}` : job.cases.map(({ name }) => name).join(', ');
        watchdog = setTimeout(
          () => reject(new Error(`no end after ${longestBatchMs} ms: ${what}`)),
          longestBatchMs,
        );
        worker.postMessage(job);
      }),
    ]);
  } finally {
    clearTimeout(watchdog);
    over.abort();
  }
}

/** Batches of seeds from `first` on; endless without `count`. */
export function* seedJobs(
  first: number,
  count = Number.POSITIVE_INFINITY,
  family: Family = 'faults',
): Generator<Job> {
  for (let from = first; from < first + count; from += batchSize) {
    const size = Math.min(batchSize, first + count - from);
    yield { family, seeds: Array.from({ length: size }, (_, at) => from + at) };
  }
}

/** Batches of cases behind the first `skipped`. */
export async function* caseJobs(cases: AsyncIterable<Named>, skipped = 0): AsyncGenerator<Job> {
  let batch: Named[] = [];
  let met = 0;
  for await (const each of cases) {
    if (met++ < skipped) continue;
    batch.push(each);
    if (batch.length < batchSize) continue;
    yield { cases: batch };
    batch = [];
  }
  if (batch.length > 0) yield { cases: batch };
}
