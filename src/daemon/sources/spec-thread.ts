import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { SpecAnswer, SpecRequest } from './spec-worker.ts';

/** The memory for a spec of 1 MiB, with a reserve. A thread that needs more ends, and only that thread. */
const limits = { maxOldGenerationSizeMb: 136, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 } as const;
/** Until a thread has loaded its code. Real ms. */
const startMs = 60_000;
/**
 * An idle thread ends after this time: edits seldom come alone, and starting a thread takes longer than most readings.
 * Real ms.
 */
const idleMs = 20_000;

/** A spec of 1 MiB takes two to three seconds. Real ms. */
export const mostReadingMs = 10_000;

/** Reads one spec in a thread of its own. @param clock real time */
export async function readOnce(request: SpecRequest, clock: Clock): Promise<SpecAnswer> {
  const thread = new SpecThread(clock);
  try {
    return await thread.read(request, mostReadingMs);
  } finally {
    await thread.end();
  }
}

/**
 * Reads specs in a worker thread, one at a time, each with a deadline: no file can block the event loop of the daemon
 * or use up its memory. A thread that failed or was too slow is replaced.
 */
export class SpecThread {
  readonly #clock: Clock;
  #worker: Worker | undefined;
  #idle = new AbortController();

  /** @param clock real time */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async read(request: SpecRequest, deadlineMs: number): Promise<SpecAnswer> {
    this.#idle.abort();
    try {
      const worker = this.#worker ?? (await this.#start());
      const answered = this.#next(
        worker,
        deadlineMs,
        `reading the file takes longer than ${deadlineMs / 1000} s`,
      );
      worker.postMessage(request);
      return (await answered) as SpecAnswer;
    } catch (error) {
      await this.end();
      const code = error instanceof Error && 'code' in error ? error.code : '';
      if (code === 'ERR_WORKER_OUT_OF_MEMORY') return { failure: 'reading the file takes too much memory' };
      return { failure: messageOf(error) };
    }
  }

  /** Call this when no spec is left to read: an idle thread ends after a while. */
  rest(): void {
    if (this.#worker === undefined) return;
    this.#idle.abort();
    this.#idle = new AbortController();
    this.#clock.sleep(idleMs, this.#idle.signal).then(
      () => this.end(),
      () => undefined,
    );
  }

  /** Ends the thread and frees its memory; the next reading starts another one. */
  async end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  async #start(): Promise<Worker> {
    // In the build, the worker is also a file in the same folder, with the extension of the build.
    const place = new URL(`./spec-worker${extname(import.meta.filename)}`, import.meta.url);
    const worker = new Worker(place, {
      resourceLimits: limits,
      // The variables that a spec may use come with each request.
      env: {},
    });
    worker.unref();
    this.#worker = worker;
    await this.#next(worker, startMs, 'the thread that reads specs does not start');
    return worker;
  }

  async #next(worker: Worker, deadlineMs: number, late: string): Promise<unknown> {
    const over = new AbortController();
    try {
      const message = once(worker, 'message', { signal: over.signal }).then(([answer]: unknown[]) => answer);
      const exit = once(worker, 'exit', { signal: over.signal }).then(() => {
        throw new Error('the thread that reads specs has ended');
      });
      const deadline = this.#clock.sleep(deadlineMs, over.signal).then(() => {
        throw new Error(late);
      });
      const all = [message, exit, deadline];
      // Ignore rejections of the promises that lose the race.
      for (const each of all) each.catch(() => undefined);
      return await Promise.race(all);
    } finally {
      over.abort();
    }
  }
}
