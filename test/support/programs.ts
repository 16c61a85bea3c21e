import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/**
 * Whether a test has to be skipped because a program is missing. CI sets REQUIRE_PROGRAMS, and a test that misses its
 * program fails there.
 */
export function lacks(program: string): boolean {
  const folders = (process.env.PATH ?? '').split(':');
  if (folders.some((folder) => isExecutable(join(folder, program)))) return false;
  if (process.env.REQUIRE_PROGRAMS !== undefined) return false;
  process.stderr.write(`A test is skipped: install ${program} to run it.\n`);
  return true;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
