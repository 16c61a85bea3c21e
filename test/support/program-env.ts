/**
 * The variables that a program under test needs to start, and to start quickly: the tests run the sources, and Node
 * keeps them compiled in the folder of `NODE_COMPILE_CACHE` (see `vitest.config.ts`).
 */
export function programEnv(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE: cache } = process.env;
  return { PATH, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }) };
}
