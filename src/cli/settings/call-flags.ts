import { shellWord } from '../../core/text.ts';
import type { Io } from '../terminal.ts';

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

/** A word without a path or an extension. As a new state, it is more often a mistake than a file. */
export function isBareName(location: string): boolean {
  return /^[\w-]+$/.test(location);
}

/**
 * A state's location as a shell takes it. A URL may hold a password, which no message repeats: where the environment
 * has it, the variable is named; else host, database and state alone.
 */
export function stateWord(location: string, { VDCSYNC_STATE: known = '' }: NodeJS.ProcessEnv): string {
  if (!isUrl(location)) return shellWord(isBareName(location) ? `./${location}` : location);
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
