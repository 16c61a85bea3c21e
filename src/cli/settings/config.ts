import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Clock, Random } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { type ApiProfile, documentedProfile } from '../../core/profile.ts';
import { type Remedy, run } from '../../core/remedy.ts';
import { shellWord } from '../../core/text.ts';
import { type LogFormat, type LogLevel, logFormats, logLevels } from '../../platform/log-levels.ts';
import { systemClock, systemRandom } from '../../platform/system.ts';
import type { Io } from '../terminal.ts';
import { loadPrices, loadProfile } from './profile.ts';

/** Options that every command with a file, a state or the API takes. */
export interface CommonFlags extends TrustFlags {
  readonly file?: readonly string[];
  /** Merge patches over the files, in this order. */
  readonly overlay?: readonly string[];
  readonly state?: string;
  readonly apiProfile?: string;
  readonly emulator?: boolean;
  readonly prices?: string;
}

/** The flags that let specs use variables and files of this machine. */
export interface TrustFlags {
  readonly allowEnv?: readonly string[];
  readonly tokenFolder?: string;
  readonly tokenEnvPrefix?: string;
}

/** Does a state's location name a database and not a file? */
export function isUrl(location: string): boolean {
  return /^\w+:\/\//.test(location);
}

/** Which of the states in a database a URL names. The last one counts: it may have been added to a URL that names one. */
export function stateNameOf(url: string): string | null {
  return URL.parse(url)?.searchParams.getAll('state').at(-1) ?? null;
}

/**
 * A state's location as a shell takes it. A URL may hold a password, which no message repeats: where the environment
 * has it, the variable is named; else host, database and state alone.
 */
export function stateWord(location: string, { VDCSYNC_STATE: known = '' }: NodeJS.ProcessEnv): string {
  if (!isUrl(location)) return shellWord(location);
  const [name, usual] = [location, known].map(stateNameOf);
  if (withoutName(known) === withoutName(location) && /^[\w.-]*$/.test(name ?? '')) {
    const more = name === usual ? '' : `${known.includes('?') ? '&' : '?'}state=${name ?? 'default'}`;
    return `"$VDCSYNC_STATE${more}"`;
  }
  const { protocol = 'postgres:', host = '…', pathname = '' } = URL.parse(location) ?? {};
  return shellWord(`${protocol}//${host}${pathname}${name === null ? '' : `?state=${name}`}`);
}

function withoutName(location: string): string {
  const url = URL.parse(location);
  url?.searchParams.delete('state');
  return url?.href ?? location;
}

/** The flags that select the project. Each command in the output needs them too. */
export function callFlags(flags: CommonFlags, environment: Io['env']): string {
  return [
    flags.emulator === true ? ' --emulator' : '',
    ...(flags.file ?? []).map((file) => ` -f ${shellWord(file)}`),
    ...(flags.overlay ?? []).map((file) => ` --overlay ${shellWord(file)}`),
    flags.state === undefined ? '' : ` --state ${stateWord(flags.state, environment)}`,
    flags.apiProfile === undefined ? '' : ` --api-profile ${shellWord(flags.apiProfile)}`,
    flags.prices === undefined ? '' : ` --prices ${shellWord(flags.prices)}`,
    ...(flags.allowEnv ?? []).map((name) => ` --allow-env ${shellWord(name)}`),
    flags.tokenFolder === undefined ? '' : ` --token-folder ${shellWord(flags.tokenFolder)}`,
    flags.tokenEnvPrefix === undefined ? '' : ` --token-env-prefix ${shellWord(flags.tokenEnvPrefix)}`,
  ].join('');
}

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
