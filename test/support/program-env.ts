import { fileURLToPath } from 'node:url';

/**
 * Node keeps the compiled sources of programs here. Programs that tests start run the sources, and start in half the
 * time with this folder.
 */
export const compileCache = fileURLToPath(new URL('../../node_modules/.cache/tests', import.meta.url));

/** The variables that a program under test needs to start, and to start quickly. */
export function programEnv(): Record<string, string> {
  const { PATH = '' } = process.env;
  return { PATH, NODE_COMPILE_CACHE: compileCache };
}
