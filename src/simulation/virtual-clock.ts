import type { Clock } from '../core/clock.ts';

interface Sleeper {
  readonly at: number;
  readonly order: number;
  readonly owner: object;
  wake(): void;
  /** It never wakes. */
  drop(): void;
}

/** A clock that moves only when the simulation advances it. */
export type VirtualClock = ReturnType<typeof virtualClock>;

/** One machine's clock. It can be set wrong, and the machine can die. */
export interface MachineClock extends Clock {
  jump(ms: number): void;
  /** A sleeper on this clock never wakes. */
  stop(): void;
}

/**
 * Deterministic: the same calls give the same order of wakings. `start` is wall time in ms.
 *
 * @param idleRounds rounds of the event loop after which nothing can still be under way:
 * one, where no sleeper waits for a file or a socket
 * @param isBusy whether work outside the clock is under way, such as a request to a database: no simulated time passes meanwhile
 */
export function virtualClock(
  start = Date.UTC(2026, 0, 1),
  idleRounds = 5,
  isBusy: () => boolean = () => false,
) {
  let elapsed = 0;
  let offset = start;
  let order = 0;
  const sleepers = new Set<Sleeper>();
  const shared = {};

  function sleepFor(owner: object, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const sleeper: Sleeper = {
        at: laterBy(ms),
        order: order++,
        owner,
        wake: () => {
          sleeper.drop();
          resolve();
        },
        drop: () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', abort);
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

  /** A wait that is too short for the clock to show lasts a millisecond: it would be asked for without end. */
  function laterBy(ms: number): number {
    return ms > 0 && elapsed + ms === elapsed ? elapsed + 1 : elapsed + Math.max(0, ms);
  }

  function next(): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const each of sleepers) {
      if (first === undefined || each.at < first.at || (each.at === first.at && each.order < first.order))
        first = each;
    }
    return first;
  }

  function wake(sleeper: Sleeper): void {
    elapsed = Math.max(elapsed, sleeper.at);
    sleeper.wake();
  }

  async function idle(): Promise<void> {
    for (let round = 0; round < idleRounds || isBusy(); round++)
      await new Promise((resolve) => setImmediate(resolve));
  }

  /** Moves on by `ms`, waking every sleeper on the way at its own moment, in order. */
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

  /** Runs until `work` is settled: when everything is idle, time jumps to the next sleeper. */
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

  /** The clock of one machine: the same time, with a wall of its own. */
  function machine(): MachineClock {
    const owner = {};
    let skew = 0;
    let stopped = false;
    return {
      now: () => offset + elapsed + skew,
      monotonic: () => elapsed,
      sleep: (ms, signal) => (stopped ? new Promise(() => {}) : sleepFor(owner, ms, signal)),
      jump: (ms) => {
        skew += ms;
      },
      stop: () => {
        stopped = true;
        for (const each of sleepers) if (each.owner === owner) each.drop();
      },
    };
  }

  return {
    now: () => offset + elapsed,
    monotonic: () => elapsed,
    sleep: (ms: number, signal?: AbortSignal) => sleepFor(shared, ms, signal),
    advance,
    run,
    /** Sets wall time only, as an operator or NTP may. Sleepers are not affected. */
    jump: (ms: number) => {
      offset += ms;
    },
    machine,
    /** How many sleep. */
    get sleeping() {
      return sleepers.size;
    },
  };
}
