import type { Clock } from '../core/clock.ts';
import type { MachineClock } from './virtual-clock.ts';

/**
 * One run of the program, which can be killed wherever it awaits something. Whatever it
 * asks of the world goes through `cross`: once dead, no call of it reaches anything and
 * no answer reaches it, so what it had under way can never act again.
 */
export interface Mortal {
  readonly name: string;
  readonly alive: boolean;
  /** Resolves when it is killed. */
  readonly died: Promise<void>;
  readonly clock: Clock;
  kill(): void;
  /** Carries out `effect`, with a boundary before and one behind it, so named. */
  cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value>;
}

/** Told of each boundary; may kill the process that crosses it. */
export type OnBoundary = (mortal: Mortal, names: readonly string[]) => void;

/** One for each: what waits for a shared one is kept in memory for good. */
const never = () => new Promise<never>(() => {});

export function createMortal(name: string, machine: MachineClock, onBoundary: OnBoundary): Mortal {
  let alive = true;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });

  async function cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value> {
    if (!alive) return never();
    onBoundary(mortal, names.map(before));
    if (!alive) return never();
    try {
      const value = await effect();
      if (!alive) return never();
      onBoundary(mortal, names.map(after));
      return alive ? value : never();
    } catch (error) {
      if (!alive) return never();
      onBoundary(mortal, names.map(after));
      if (!alive) return never();
      throw error;
    }
  }

  const mortal: Mortal = {
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
        onBoundary(mortal, ['sleep']);
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
  return mortal;
}

function before(name: string): string {
  return `${name}:before`;
}

function after(name: string): string {
  return `${name}:after`;
}
