import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A path in a new folder, removed after the test. */
export function newStatePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-state-'));
  folders.push(folder);
  return join(folder, 'state.db');
}

/** Every file of a folder with a digest of its bytes. Not for a folder whose state this process has open. */
export function snapshot(folder: string): Record<string, string> {
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
  return Object.fromEntries(readdirSync(folder).map((name) => [name, digest(name)]));
}
