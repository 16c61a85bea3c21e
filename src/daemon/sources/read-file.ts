import { readFile, stat } from 'node:fs/promises';
import type { Diagnostic } from '../../core/errors.ts';
import type { Source } from '../../spec/load.ts';
import { unreadable } from './source.ts';

/** The spec's own limit; a larger file is not even read. */
export const mostBytes = 1024 * 1024;

/** A file's text, or why there is none. `name` is what messages call it. */
export async function readSpecFile(path: string, name: string): Promise<Source | readonly Diagnostic[]> {
  try {
    if ((await stat(path)).size > mostBytes) return unreadable(name, 'it is longer than 1 MiB');
    return decodeSpec(await readFile(path), name);
  } catch (error) {
    return unreadable(name, reasonOf(error));
  }
}

/** Bytes as the text of a spec. */
export function decodeSpec(bytes: Uint8Array, name: string): Source | readonly Diagnostic[] {
  if (bytes.length > mostBytes) return unreadable(name, 'it is longer than 1 MiB');
  try {
    return { file: name, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return unreadable(name, 'it is not UTF-8');
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'EISDIR') return 'it is a folder';
  return error instanceof Error ? error.message : String(error);
}
