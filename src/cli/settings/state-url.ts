import { shellWord } from '../../core/escape.ts';

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
