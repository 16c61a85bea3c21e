import type { Clock } from '../core/clock.ts';
import type { MachineClock } from './virtual-clock.ts';

/**
 * One run of the program, which can be killed at every `await`. Each call to the outside goes through `cross`:
 * once the run is dead, no call of the run reaches its target and no answer reaches the run. So its pending work
 * can never act again.
 */
export interface Crashable {
  readonly name: string;
  readonly alive: boolean;
  /** Resolves when it is killed. */
  readonly died: Promise<void>;
  readonly clock: Clock;
  kill(): void;
  /**
   * Suspends it at the boundary that it crosses, as SIGSTOP does, so that another process takes its state. `knows`: when
   * it continues, its own clocks show that its lease has ended.
   */
  suspend(knows: boolean): void;
  /** Continues after `suspend`: the calls under way go on, and answers that have arrived meanwhile are read. */
  resume(): void;
  /** Another process has the state, from the suspension on. */
  readonly isReplaced: boolean;
  /** It continues after a suspension, and can know that it has lost the state. */
  readonly isFenced: boolean;
  /** Carries out `effect`, with a boundary before and one behind it, so named. */
  cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value>;
}

/** Called at each boundary; may kill the process that crosses it. */
export type OnBoundary = (crashable: Crashable, names: readonly string[]) => void;

// One promise for each call: a shared promise would keep all that wait for it in memory permanently.
const never = () => new Promise<never>(() => {});

export function createCrashable(name: string, machine: MachineClock, onBoundary: OnBoundary): Crashable {
  let alive = true;
  let replaced: { readonly knows: boolean } | undefined;
  let suspended: { readonly over: Promise<void>; readonly end: () => void } | undefined;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });

  async function cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value> {
    if (!alive) return never();
    meet(names.map(before));
    if (suspended !== undefined) await suspended.over;
    if (!alive) return never();
    try {
      const value = await effect();
      if (suspended !== undefined) await suspended.over;
      if (!alive) return never();
      meet(names.map(after));
      if (suspended !== undefined) await suspended.over;
      return alive ? value : never();
    } catch (error) {
      if (suspended !== undefined) await suspended.over;
      if (!alive) return never();
      meet(names.map(after));
      if (suspended !== undefined) await suspended.over;
      if (!alive) return never();
      throw error;
    }
  }

  /** A replaced process meets no further disturbance. */
  function meet(names: readonly string[]): void {
    if (replaced === undefined) onBoundary(crashable, names);
  }

  async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await machine.sleep(ms, signal);
    if (suspended !== undefined) await suspended.over;
  }

  const crashable: Crashable = {
    name,
    get alive() {
      return alive;
    },
    died,
    clock: {
      now: () => machine.now(),
      monotonic: () => machine.monotonic(),
      sleep: (ms, signal) => {
        if (!alive) return never();
        meet(['sleep']);
        if (!alive) return never();
        // Without a further await where nothing is suspended: it would change the order of all wakings.
        return replaced === undefined ? machine.sleep(ms, signal) : sleep(ms, signal);
      },
    },
    kill() {
      if (!alive) return;
      alive = false;
      machine.stop();
      die();
    },
    suspend(knows) {
      if (!alive || replaced !== undefined) return;
      replaced = { knows };
      let end = () => {};
      const over = new Promise<void>((resolve) => {
        end = resolve;
      });
      suspended = { over, end };
      die();
    },
    resume() {
      suspended?.end();
      suspended = undefined;
    },
    get isReplaced() {
      return replaced !== undefined;
    },
    get isFenced() {
      return replaced?.knows === true && suspended === undefined;
    },
    cross,
  };
  return crashable;
}

function before(name: string): string {
  return `${name}:before`;
}

function after(name: string): string {
  return `${name}:after`;
}
