import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from '../support/folders.ts';

/** A path in a new folder. */
export function newStatePath(): string {
  return join(newFolder('vdcsync-state-'), 'state.db');
}

/** Every file of a folder with a digest of its bytes. Not for a folder whose state this process has open. */
export function snapshot(folder: string): Record<string, string> {
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
  return Object.fromEntries(readdirSync(folder).map((name) => [name, digest(name)]));
}
