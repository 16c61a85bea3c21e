import { chance } from '../../src/simulation/chance.ts';

const { ALL_CASES, SEED } = process.env;

/** The tests draw the same examples in each run. `SEED=7 npm test` draws others. */
export const seed = Number(SEED ?? 1);

/** This run plays every case of the long lists, as `npm run test:all` does. */
export const playsAll = ALL_CASES !== undefined;

/** How many of so many alike this run plays: all with `npm run test:all`, otherwise about a fifth, at least one. */
export function share(count: number): number {
  return playsAll ? count : Math.ceil(count / 5);
}

/** The cases of a long list that this run plays: all with `npm run test:all`, otherwise `some`. */
export function drawn<Case>(cases: readonly Case[]): readonly Case[] {
  return playsAll ? cases : some(cases);
}

/** The moments `from`, `from + by` … up to `to` that this run plays. */
export function moments(from: number, to: number, by = 1): readonly number[] {
  return drawn(Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, at) => from + at * by));
}

/** About a fifth of the cases of a list that a command of its own plays whole; at least one. */
export function some<Case>(cases: readonly Case[]): readonly Case[] {
  if (cases.length === 0) return cases;
  const dice = chance(seed);
  const chosen = cases.filter(() => dice.happens(0.2));
  return chosen.length > 0 ? chosen : [dice.pick(cases)];
}
