import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { sep } from 'node:path';
import { ConfigError } from '../../core/errors.ts';

/** No API token is longer; a longer file is something else. */
const mostBytes = 8 * 1024;

/**
 * The text of a token file: a regular file of at most 8 KiB, so that no device, pipe or large file is read.
 *
 * @param below the folder that the file has to be in, with all symbolic links followed
 * @throws ConfigError that says why the file cannot be used, and nothing of its content; the system's error where there is no file to read
 */
export function readTokenFile(path: string, below?: string): string {
  const real = realpathSync(path);
  if (below !== undefined && !real.startsWith(withSeparator(realpathSync(below))))
    throw new ConfigError(`the token file ${path} leads out of ${below}: put the file itself there`);
  // Without blocking: the open of a pipe waits for a writer.
  const handle = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stats = fstatSync(handle);
    if (!stats.isFile()) throw new ConfigError(`the token file ${path} is not a regular file`);
    const bytes = Buffer.alloc(mostBytes + 1);
    const length = readSync(handle, bytes, 0, bytes.length, 0);
    if (length > mostBytes)
      throw new ConfigError(`the token file ${path} is larger than 8 KiB, so it holds no token`);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

function withSeparator(folder: string): string {
  return folder.endsWith(sep) ? folder : `${folder}${sep}`;
}
