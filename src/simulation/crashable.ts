import type { Clock } from '../core/clock.ts';
import type { MachineClock } from './virtual-clock.ts';

/** Called at each boundary; may kill the process that crosses it. */
type OnBoundary = (names: readonly string[]) => void;

// One promise for each call: a shared promise would keep all that wait for it in memory permanently.
const never = () => new Promise<never>(() => {});

/**
 * One run of the program, which can be killed at every `await`. Each call to the outside goes through `cross`:
 * once the run is dead, no call of the run reaches its target and no answer reaches the run. So its pending work
 * can never act again.
 */
export class Crashable {
  /** Resolves when it is killed. */
  readonly died: Promise<void>;
  readonly clock: Clock;
  readonly #machine: MachineClock;
  readonly #onBoundary: OnBoundary;
  readonly #die: () => void;
  #alive = true;
  #replaced: { readonly knows: boolean } | undefined;
  #suspended: PromiseWithResolvers<void> | undefined;

  constructor(machine: MachineClock, onBoundary: OnBoundary) {
    this.#machine = machine;
    this.#onBoundary = onBoundary;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.died = promise;
    this.#die = resolve;
    this.clock = {
      now: () => machine.now(),
      monotonic: () => machine.monotonic(),
      sleep: (ms, signal) => {
        if (!this.#alive) return never();
        this.#meet(['sleep']);
        if (!this.#alive) return never();
        // Without a further await where nothing is suspended: it would change the order of all wakings.
        return this.#replaced === undefined ? machine.sleep(ms, signal) : this.#sleep(ms, signal);
      },
    };
  }

  /** Another process has the state, from the suspension on. */
  get isReplaced(): boolean {
    return this.#replaced !== undefined;
  }

  /** It continues after a suspension, and can know that it has lost the state. */
  get isFenced(): boolean {
    return this.#replaced?.knows === true && this.#suspended === undefined;
  }

  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#machine.stop();
    this.#die();
  }

  /**
   * Suspends it at the boundary that it crosses, as SIGSTOP does, so that another process takes its state. `knows`: when
   * it continues, its own clocks show that its lease has ended.
   */
  suspend(knows: boolean): void {
    if (!this.#alive || this.isReplaced) return;
    this.#replaced = { knows };
    this.#suspended = Promise.withResolvers<void>();
    this.#die();
  }

  /** Continues after `suspend`: the calls under way go on, and answers that have arrived meanwhile are read. */
  resume(): void {
    this.#suspended?.resolve();
    this.#suspended = undefined;
  }

  /** Carries out `effect`, with a boundary before and one behind it, so named. */
  async cross<Value>(names: readonly string[], effect: () => Promise<Value>): Promise<Value> {
    if (!this.#alive) return never();
    this.#meet(names.map((name) => `${name}:before`));
    if (this.#suspended !== undefined) await this.#suspended.promise;
    if (!this.#alive) return never();
    let end: () => Value;
    try {
      const value = await effect();
      end = () => value;
    } catch (error) {
      end = () => {
        throw error;
      };
    }
    if (this.#suspended !== undefined) await this.#suspended.promise;
    if (!this.#alive) return never();
    this.#meet(names.map((name) => `${name}:after`));
    if (this.#suspended !== undefined) await this.#suspended.promise;
    return this.#alive ? end() : never();
  }

  /** A replaced process meets no further disturbance. */
  #meet(names: readonly string[]): void {
    if (!this.isReplaced) this.#onBoundary(names);
  }

  async #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#machine.sleep(ms, signal);
    if (this.#suspended !== undefined) await this.#suspended.promise;
  }
}
