import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { compileCache } from '../support/program-env.ts';

/** The test files that judge the mutants of one file. Isolated: a mutant of a constant acts when its module is loaded. */
export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    testTimeout: 60_000,
    maxWorkers: 1,
    server: { deps: { external: [/\/src\//, /\/test\/support\//] } },
    env: { NODE_COMPILE_CACHE: compileCache },
    // The option `testFiles` of Stryker would activate the mutants of constants too late.
    include: JSON.parse(process.env.MUTANT_TESTS ?? '[]'),
  },
});
