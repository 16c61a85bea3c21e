import { chance } from '../../src/simulation/chance.ts';

const { ALL_CASES, SEED } = process.env;
const dice = chance(SEED === undefined ? Date.now() : Number(SEED));

/** This run plays every case of the long lists, as CI does. */
export const playsAll = ALL_CASES !== undefined;

/** How many of so many alike this run plays: all with `ALL_CASES=1`, otherwise about a fifth, at least one. */
export function share(count: number): number {
  return playsAll ? count : Math.ceil(count / 5);
}

/**
 * The cases of a long list that this run plays: all with `ALL_CASES=1`, otherwise about a fifth, at least one. Each run
 * draws its own, and runs with the same `SEED` draw the same.
 */
export function drawn<Case>(cases: readonly Case[]): readonly Case[] {
  if (playsAll) return cases;
  const some = cases.filter(() => dice.happens(0.2));
  return some.length > 0 || cases.length === 0 ? some : [dice.pick(cases)];
}
