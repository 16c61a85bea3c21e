import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { join, sep } from 'node:path';
import { ConfigError } from '../../core/errors.ts';

/** No API token is longer; a longer file is something else. */
const mostBytes = 8 * 1024;

/** More files than this are something else than a folder of tokens. */
const mostFiles = 64;

/**
 * The texts of a token file, or of every file in a folder, by name. Names that begin with a dot are left out:
 * Kubernetes keeps the versions of a secret under these names.
 *
 * @throws as `readTokenFile`
 */
export function readTokenFiles(path: string, below?: string): readonly string[] {
  const real = realpathSync(path);
  refuseOutside(path, real, below);
  if (!statSync(real).isDirectory()) return [readTokenFile(path, below)];
  const names = readdirSync(path)
    .filter((name) => !name.startsWith('.'))
    .sort();
  if (names.length > mostFiles)
    throw new ConfigError(
      `the token folder ${path} has ${names.length} files: at most ${mostFiles} are possible`,
    );
  return names.map((name) => readTokenFile(join(path, name), below));
}

/**
 * The text of a token file: a regular file of at most 8 KiB, so that no device, pipe or large file is read.
 *
 * @param below the folder that the file has to be in, with all symbolic links followed
 * @throws ConfigError if the file cannot be used; the message shows no part of its content. The system's error if no file can be read
 */
export function readTokenFile(path: string, below?: string): string {
  const real = realpathSync(path);
  refuseOutside(path, real, below);
  // Without blocking: the open of a pipe waits for a writer.
  const handle = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stats = fstatSync(handle);
    if (!stats.isFile()) throw new ConfigError(`the token file ${path} is not a regular file`);
    const bytes = Buffer.alloc(mostBytes + 1);
    const length = readSync(handle, bytes, 0, bytes.length, 0);
    if (length > mostBytes)
      throw new ConfigError(`the token file ${path} is larger than 8 KiB, so it cannot be a token`);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

function refuseOutside(path: string, real: string, below: string | undefined): void {
  if (below !== undefined && !real.startsWith(withSeparator(realpathSync(below))))
    throw new ConfigError(`the token file ${path} leads out of ${below}: put the file itself there`);
}

function withSeparator(folder: string): string {
  return folder.endsWith(sep) ? folder : `${folder}${sep}`;
}
