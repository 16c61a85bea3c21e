import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import type { Clock, Random } from '../../core/clock.ts';
import type { TokenPlace } from '../../core/desired.ts';
import { ConfigError, reasonOf } from '../../core/errors.ts';
import { type ApiProfile, documentedProfile } from '../../core/profile.ts';
import { command, type Remedy } from '../../core/remedy.ts';
import { type LogFormat, type LogLevel, logFormats, logLevels } from '../../platform/log-levels.ts';
import { systemClock, systemRandom } from '../../platform/system.ts';
import { usageError } from '../exit.ts';
import { type CommonFlags, defaultSpec, defaultState, isUrl, stateNameOf } from '../flags.ts';
import type { Io } from '../terminal.ts';
import { loadPrices, loadProfile } from './profile.ts';

/** The commands that write a first spec. */
export function writingSpec(): readonly Remedy[] {
  return [
    command('init', [], { when: 'to write a first one' }),
    command('export', ['--out', defaultSpec], { when: 'to write the spec of an existing project' }),
  ];
}

/** The default files, in order of preference, in the working folder. */
const defaultFiles = [defaultSpec, 'vdcsync.yml', 'vdc.yaml', 'vdc.yml'];

/** The spec files that a call means. */
export function specFiles(flags: CommonFlags, io: Io): readonly string[] {
  if (flags.file !== undefined && flags.file.length > 0) return flags.file;
  const found = defaultFiles.find((name) => existsSync(join(io.cwd, name)));
  if (found !== undefined) return [found];
  throw usageError(`no spec: name it with -f FILE, or put a ${defaultSpec} into ${io.cwd}`, writingSpec());
}

/** Where the state is; flags over environment. */
export function stateLocation(flags: CommonFlags, io: Io): string {
  const named = flags.state ?? io.env.VDCSYNC_STATE;
  if (named === '') throw usageError('the state needs a path: --state or VDCSYNC_STATE is empty');
  if (named !== undefined && !isUrl(named) && /:\/\/|^[?&]/.test(named)) {
    // Not repeated: a password may be in it.
    throw usageError(
      'the state is neither a path nor a URL, but contains a part of a URL. Is VDCSYNC_STATE set, and are the quotation marks right?',
    );
  }
  if (named === ':memory:')
    throw usageError('the state needs a file or a database: a state in memory would be lost');
  const location = named ?? defaultState;
  return isUrl(location) ? location : resolve(io.cwd, location);
}

/** One state for each project. As files: one folder each, with the state, its lock and an emulator's world. */
export function ownState(location: string, id: number | 'fleet'): string {
  if (isUrl(location)) {
    const url = URL.parse(location);
    if (url === null) return location;
    url.searchParams.set('state', ownName(stateNameOf(location), id));
    return url.href;
  }
  return join(dirname(location), String(id), 'state.db');
}

/** The name of one project's state in the database that a fleet of this name shares. */
export function ownName(fleet: string | null, id: number | 'fleet'): string {
  return fleet === null ? String(id) : `${fleet}-${id}`;
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
  throw usageError(
    'no API: set VDC_BASE_URL to the URL of the API with its version, such as https://api.example.com/v1, or try --emulator',
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
  throw usageError(`${name} is ${JSON.stringify(given)}; known: ${known.join(', ')}`);
}

/** A file's text. @throws ConfigError that names the file and its purpose. */
export function readText(path: string, what: string, io: Io): string {
  try {
    return readFileSync(resolve(io.cwd, path), 'utf8');
  } catch (error) {
    throw new ConfigError(`${what} ${path} cannot be read: ${reasonOf(error)}`);
  }
}

/** The clock of a call. */
export function clockOf({ clock = systemClock }: Pick<Io, 'clock'>): Clock {
  return clock;
}

/** The randomness of a call. */
export function randomOf({ random = systemRandom }: Pick<Io, 'random'>): Random {
  return random;
}

/**
 * The source of the project's tokens: the variable, or a file or a folder of files, which are read again each
 * time, so that a new token is used without a restart. A token is never a flag: arguments are world-readable.
 */
export function tokenSource(io: Io, place?: TokenPlace): () => readonly string[] {
  const { VDC_TOKEN: usual, VDC_TOKEN_FILE: usualFile } = io.env;
  const { value, file, below } =
    place === undefined ? { value: usual, file: usualFile, below: undefined } : namedPlace(place, io);
  if (value && file) throw usageError('VDC_TOKEN and VDC_TOKEN_FILE are both set: unset one');
  if (value) {
    const token = [checkedToken(value, place?.env ?? 'VDC_TOKEN')];
    return () => token;
  }
  if (!file) throw usageError('no token: set VDC_TOKEN or VDC_TOKEN_FILE, or try --emulator');
  const path = resolve(io.cwd, file);
  let last = checkedTokens(tokenTexts(path, below), file);
  return () => {
    try {
      last = checkedTokens(tokenTexts(path, below), file);
    } catch {
      // During the rotation of a secret its file may be absent for a moment. Until then the last value is used.
    }
    return last;
  };
}

function tokenTexts(path: string, below: string | undefined): readonly string[] {
  try {
    return readTokenFiles(path, below);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`the token file ${path} cannot be read: ${reasonOf(error)}`);
  }
}

/** The token place of the spec takes precedence over the environment, because it belongs to this project alone. */
function namedPlace({ env: name, file, below }: TokenPlace, { env }: Io) {
  if (name === undefined) return { value: undefined, file, below };
  const value = env[name];
  if (value) return { value, file: undefined, below: undefined };
  throw usageError(`no token: the spec names the variable ${name}, which is not set`);
}

/** More tokens than this are a mistake: a project has no use for them. */
const mostTokens = 16;

/** One token a line; empty lines do not count. */
function checkedTokens(texts: readonly string[], source: string): readonly string[] {
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => line.trim() !== '');
  if (lines.length > mostTokens)
    throw new ConfigError(
      `${source} has ${lines.length} lines: a project can have at most ${mostTokens} tokens`,
    );
  return lines.length === 0 ? [checkedToken('', source)] : lines.map((line) => checkedToken(line, source));
}

function checkedToken(text: string, source: string): string {
  const token = text.trim();
  if (token === '') throw new ConfigError(`${source} holds no token`);
  // The message must not repeat a text that may be most of a secret.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new ConfigError(`${source} has spaces or characters that a token cannot have. Check the value`);
  }
  return token;
}

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
function readTokenFiles(path: string, below?: string): readonly string[] {
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
