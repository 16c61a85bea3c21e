import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Clock, Random } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { type ApiProfile, documentedProfile } from '../../core/profile.ts';
import { type Remedy, run } from '../../core/remedy.ts';
import { type LogFormat, type LogLevel, logFormats, logLevels } from '../../platform/log-levels.ts';
import { systemClock, systemRandom } from '../../platform/system.ts';
import type { Io } from '../terminal.ts';
import { type CommonFlags, isUrl } from './call-flags.ts';
import { loadPrices, loadProfile } from './profile.ts';

/** The commands that write a first spec. */
export const writingSpec: readonly Remedy[] = [
  run('init', [], { when: 'to write a first one' }),
  run('export', ['--out', 'vdcsync.yaml'], { when: 'to write the spec of an existing project' }),
];

/** The default files, in order of preference, in the working folder. */
const defaultFiles = ['vdcsync.yaml', 'vdcsync.yml', 'vdc.yaml', 'vdc.yml'];

/** The spec files that a call means. */
export function specFiles(flags: CommonFlags, io: Io): readonly string[] {
  if (flags.file !== undefined && flags.file.length > 0) return flags.file;
  const found = defaultFiles.find((name) => existsSync(join(io.cwd, name)));
  if (found !== undefined) return [found];
  throw new ConfigError(
    `no spec: name it with -f FILE, or put a vdcsync.yaml into ${io.cwd}`,
    true,
    writingSpec,
  );
}

/** Where the state is; flags over environment. */
export function stateLocation(flags: CommonFlags, io: Io): string {
  const named = flags.state ?? io.env.VDCSYNC_STATE;
  if (named === '') throw new ConfigError('the state needs a path: --state or VDCSYNC_STATE is empty', true);
  if (named !== undefined && !isUrl(named) && /:\/\/|^[?&]/.test(named)) {
    // Not repeated: a password may be in it.
    throw new ConfigError(
      'the state is neither a path nor a URL, but contains a part of a URL. Is VDCSYNC_STATE set, and are the quotation marks right?',
      true,
    );
  }
  const location = named ?? join('.vdcsync', 'state.db');
  return location === ':memory:' || isUrl(location) ? location : resolve(io.cwd, location);
}

/** The profile that applies, and its text for the emulator, which parses the text with its own code. */
export function profileOf(flags: CommonFlags, io: Io): { profile: ApiProfile; text: string } {
  const file = flags.apiProfile ?? io.env.VDCSYNC_API_PROFILE;
  const text = file === undefined || file === '' ? '' : readText(file, 'the API profile', io);
  const profile = text === '' ? documentedProfile : loadProfile(text, file ?? '');
  const prices = flags.prices ?? io.env.VDCSYNC_PRICES;
  if (prices === undefined || prices === '') return { profile, text };
  return {
    profile: { ...profile, prices: loadPrices(readText(prices, 'the price list', io), prices) },
    text,
  };
}

/** Where the API is. */
export function baseUrlOf(io: Io): string {
  const url = io.env.VDC_BASE_URL;
  if (url !== undefined && url.trim() !== '') return url;
  if (io.env.npm_config_emulator !== undefined) {
    throw new ConfigError(
      'npm has taken --emulator as its own flag. Write: npm run -s vdcsync -- … --emulator',
      true,
    );
  }
  throw new ConfigError(
    'no API: set VDC_BASE_URL to the URL of the API with its version, such as https://api.example.com/v1, or try --emulator',
    true,
  );
}

/** `LOG_LEVEL` and `LOG_FORMAT`. */
export function logSettings(io: Io): { level: LogLevel; format: LogFormat } {
  return {
    level: oneOf('LOG_LEVEL', io.env.LOG_LEVEL, logLevels, 'info'),
    format: oneOf('LOG_FORMAT', io.env.LOG_FORMAT, logFormats, 'text'),
  };
}

function oneOf<T extends string>(
  name: string,
  given: string | undefined,
  known: readonly T[],
  otherwise: T,
): T {
  if (given === undefined || given === '') return otherwise;
  const found = known.find((each) => each === given);
  if (found !== undefined) return found;
  throw new ConfigError(`${name} is ${JSON.stringify(given)}; known: ${known.join(', ')}`, true);
}

/** A file's text. @throws ConfigError that names the file and its purpose. */
export function readText(path: string, what: string, io: Io): string {
  try {
    return readFileSync(resolve(io.cwd, path), 'utf8');
  } catch (error) {
    throw new ConfigError(`${what} ${path} cannot be read: ${reasonOf(error)}`);
  }
}

/** Why a file could not be read or written, in words. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known: Readonly<Record<string, string>> = {
    ENOENT: 'the file does not exist',
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
    ENOTDIR: 'a part of its path is not a folder',
    EROFS: 'the file system is read-only',
    ENOSPC: 'the disk is full',
  };
  return known[code] ?? (error instanceof Error ? error.message : String(error));
}

/** The clock of a call. */
export function clockOf({ clock = systemClock }: Pick<Io, 'clock'>): Clock {
  return clock;
}

/** The randomness of a call. */
export function randomOf({ random = systemRandom }: Pick<Io, 'random'>): Random {
  return random;
}
