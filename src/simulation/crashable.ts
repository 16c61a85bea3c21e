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
  /** Carries out `effect`, with a boundary before and one behind it, so named. */
  cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value>;
}

/** Called at each boundary; may kill the process that crosses it. */
export type OnBoundary = (crashable: Crashable, names: readonly string[]) => void;

// One promise for each call: a shared promise would keep all that wait for it in memory permanently.
const never = () => new Promise<never>(() => {});

export function createCrashable(name: string, machine: MachineClock, onBoundary: OnBoundary): Crashable {
  let alive = true;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });

  async function cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value> {
    if (!alive) return never();
    onBoundary(crashable, names.map(before));
    if (!alive) return never();
    try {
      const value = await effect();
      if (!alive) return never();
      onBoundary(crashable, names.map(after));
      return alive ? value : never();
    } catch (error) {
      if (!alive) return never();
      onBoundary(crashable, names.map(after));
      if (!alive) return never();
      throw error;
    }
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
        onBoundary(crashable, ['sleep']);
        return alive ? machine.sleep(ms, signal) : never();
      },
    },
    kill() {
      if (!alive) return;
      alive = false;
      machine.stop();
      die();
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
