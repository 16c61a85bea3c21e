import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import type { Io } from '../terminal.ts';
import { readText } from './config.ts';

/**
 * A secret from the variable `NAME`, or from the file that `NAME_FILE` names, which is read
 * again each time; `undefined` where neither is set.
 *
 * @throws ConfigError where both are set, or there is nothing in them.
 */
export function secretOf(name: string, io: Io): (() => string) | undefined {
  const value = io.env[name];
  const file = io.env[`${name}_FILE`];
  if (value && file) throw new ConfigError(`${name} and ${name}_FILE are both set: unset one`, true);
  if (value) {
    const secret = checked(value, name);
    return () => secret;
  }
  if (!file) return undefined;
  const path = resolve(io.cwd, file);
  let last = checked(readText(path, `${name}_FILE`, io), file);
  return () => {
    try {
      last = checked(readFileSync(path, 'utf8'), file);
    } catch {
      // While a secret is being exchanged its file may be away for a moment: the last one goes on.
    }
    return last;
  };
}

/** Whoever guesses one may have the daemon look, or look at it. */
const fewestCharacters = 16;

/** Of a secret that others check: whether one of those in it, separated by commas, is quickly guessed. */
export function isShort(secret: (() => string) | undefined): boolean {
  const parts = secret === undefined ? [] : secret().split(',');
  return parts.some((each) => each.trim().length < fewestCharacters);
}

function checked(text: string, source: string): string {
  const secret = text.trim();
  if (secret === '') throw new ConfigError(`${source} is empty`);
  return secret;
}
