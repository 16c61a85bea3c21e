import { compileCache } from './support/program-env.ts';

// With coverage Vitest turns the cache off for its workers, and for every program that they start. Those programs count
// no coverage, and need twice the processor time without the cache.
process.env.NODE_COMPILE_CACHE = compileCache;
delete process.env.NODE_DISABLE_COMPILE_CACHE;

/** `SEED=7 npm test` draws the same examples each time; without it every run draws its own. */
const { SEED } = process.env;

if (SEED !== undefined) {
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ seed: Number(SEED) });
}
