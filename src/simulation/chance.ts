import type { Random } from '../core/clock.ts';

/** Seeded chance with the few questions that a generator asks. (mulberry32) */
export interface Chance extends Random {
  /** Whether an event of this probability happens. */
  happens(probability: number): boolean;
  /** A whole number between both, both included. */
  between(least: number, most: number): number;
  /** Small numbers far more often than large ones, both ends included. */
  mostlySmall(least: number, most: number): number;
  pick<Value>(values: readonly Value[]): Value;
  /** Another source that draws its own numbers, so that one decision more here moves nothing there. */
  fork(): Chance;
}

/** The same seed gives the same numbers. */
export function chance(seed: number): Chance {
  let state = seed | 0;
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    happens: (probability) => next() < probability,
    between,
    mostlySmall: (least, most) => Math.floor(least * ((most + 1) / least) ** next()),
    pick(values) {
      if (values.length === 0) throw new Error('nothing to pick from');
      return values[between(0, values.length - 1)] as (typeof values)[number];
    },
    fork: () => chance(Math.floor(next() * 4294967296)),
  };
}
