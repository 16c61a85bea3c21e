import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Diagnostic, reasonOf } from '../../core/errors.ts';
import { decodeSpec, mostBytes, type Source, unreadable } from '../../spec/load.ts';
import { SourceError } from './source.ts';

/**
 * The text of a file, or the reason why it cannot be a spec. `name` is the name for messages.
 *
 * @throws Error of the system if the file cannot be opened; `reasonOf` puts it into words.
 */
export async function readSpecFile(path: string, name: string): Promise<Source | readonly Diagnostic[]> {
  // Without blocking: the open of a pipe waits for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (stats.isDirectory()) return unreadable(name, 'it is a folder');
    if (!stats.isFile()) return unreadable(name, 'it is not a regular file');
    if (stats.size > mostBytes) return unreadable(name, 'it is longer than 1 MiB');
    // One byte more than the file has: the reading then ends at its end. The bytes that are appended meanwhile are not read.
    const length = stats.size + 1;
    const bytes = Buffer.allocUnsafeSlow(length);
    const { bytesRead } = await file.read(bytes, 0, length, 0);
    return decodeSpec(bytes.subarray(0, bytesRead), name);
  } finally {
    await file.close();
  }
}

/** A missing file is not an edit: the source reports an error, and the last content stays in force. */
export function failWith(name: string): (error: unknown) => never {
  return (error) => {
    throw new SourceError(`${name}: ${reasonOf(error)}`);
  };
}
