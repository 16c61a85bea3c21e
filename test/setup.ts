import { configureGlobal } from 'fast-check';
import { afterAll } from 'vitest';
import { seed } from './support/drawn.ts';
import { removeFolders } from './support/folders.ts';
import { compileCache } from './support/program-env.ts';

// With coverage Vitest turns the cache off for its workers, and for every program that they start. Those programs count
// no coverage, and need twice the processor time without the cache.
process.env.NODE_COMPILE_CACHE = compileCache;
delete process.env.NODE_DISABLE_COMPILE_CACHE;

configureGlobal({ seed });

// Here and not in a helper: the test files of one worker share a helper, which registers only with the first of them.
afterAll(removeFolders);
