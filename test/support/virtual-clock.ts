import type { Clock } from '../../src/core/clock.ts';

interface Sleeper {
  readonly at: number;
  readonly order: number;
  wake(): void;
}

/** A clock that stands still until it is told to move. */
export interface VirtualClock extends Clock {
  /** Moves on by `ms`, waking every sleeper on the way at its own moment, in order. */
  advance(ms: number): Promise<void>;
  /** Runs until `work` is settled: when everything is idle, time jumps to the next sleeper. */
  run<T>(work: Promise<T>): Promise<T>;
  /** Sets wall time only, as an operator or NTP may; sleepers do not notice. */
  jump(ms: number): void;
  /** How many sleep. */
  readonly sleeping: number;
}

/** Rounds of the event loop after which nothing that runs in process can still be under way. */
const idleRounds = 5;

/** Deterministic: the same calls give the same order of wakings. `start` is wall time in ms. */
export function virtualClock(start = Date.UTC(2026, 0, 1)): VirtualClock {
  let elapsed = 0;
  let offset = start;
  let order = 0;
  const sleepers = new Set<Sleeper>();

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const sleeper: Sleeper = {
        at: elapsed + Math.max(0, ms),
        order: order++,
        wake: () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      const abort = () => {
        sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      sleepers.add(sleeper);
    });
  }

  function next(): Sleeper | undefined {
    return [...sleepers].sort((a, b) => a.at - b.at || a.order - b.order)[0];
  }

  function wake(sleeper: Sleeper): void {
    elapsed = Math.max(elapsed, sleeper.at);
    sleeper.wake();
  }

  async function advance(ms: number): Promise<void> {
    const end = elapsed + ms;
    await idle();
    for (let sleeper = next(); sleeper !== undefined && sleeper.at <= end; sleeper = next()) {
      wake(sleeper);
      await idle();
    }
    elapsed = end;
    await idle();
  }

  async function run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    work.then(done, done);
    for (;;) {
      await idle();
      if (settled) return work;
      const sleeper = next();
      if (sleeper === undefined) throw new Error('nothing sleeps, and the work is not done: a deadlock');
      wake(sleeper);
    }
  }

  return {
    now: () => offset + elapsed,
    monotonic: () => elapsed,
    sleep,
    advance,
    run,
    jump: (ms) => {
      offset += ms;
    },
    get sleeping() {
      return sleepers.size;
    },
  };
}

async function idle(): Promise<void> {
  for (let round = 0; round < idleRounds; round++) await new Promise((resolve) => setImmediate(resolve));
}
