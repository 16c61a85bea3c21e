import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { once } from '../../core/work.ts';
import { createLogger } from '../../platform/logger.ts';
import { usageError } from '../exit.ts';
import type { Io } from '../terminal.ts';
import { logSettings, readText } from './config.ts';

/**
 * A secret from the variable `NAME`, or from the file that `NAME_FILE` names, which is read
 * again each time; `undefined` where neither is set. A secret whose file is missing for ten minutes is no longer valid.
 *
 * @throws ConfigError where both are set, there is nothing in them, or `check` throws it.
 */
export function secretOf(name: string, io: Io, check?: (text: string) => void): (() => string) | undefined {
  const value = io.env[name];
  const file = io.env[`${name}_FILE`];
  if (value && file) throw usageError(`${name} and ${name}_FILE are both set: unset one`);
  if (value) {
    const secret = checked(value, name, check);
    return () => secret;
  }
  if (!file) return undefined;
  const path = resolve(io.cwd, file);
  let last = checked(readText(path, `${name}_FILE`, io), file, check);
  let missingSince: number | undefined;
  let isWithdrawn = false;
  const log = once(() => createLogger({ ...logSettings(io), write: (line) => void io.stderr.write(line) }));
  return () => {
    try {
      last = checked(readFileSync(path, 'utf8'), file, check);
      missingSince = undefined;
      isWithdrawn = false;
    } catch {
      // During the rotation of a secret its file may be absent for a moment. Until then the last value is used.
      if (missingSince === undefined)
        log().warn({ source: `${name}_FILE`, file }, 'the file of a secret cannot be used');
      missingSince ??= performance.now();
      if (!isWithdrawn && performance.now() - missingSince >= keptMs) {
        isWithdrawn = true;
        // A secret that no caller knows: every caller is refused.
        last = randomBytes(32).toString('hex');
        log().error(
          { source: `${name}_FILE`, file },
          'the secret is no longer valid, because its file is missing',
        );
      }
    }
    return last;
  };
}

/** How long a secret stays valid after its file has disappeared, in real ms. */
const keptMs = 10 * 60_000;

/** The fewest characters of a secret that others are checked by. */
const fewestCharacters = 16;

/**
 * A secret that callers of the daemon have to know. A variable that is set and empty is an error, as that of a
 * deployment whose own variable is missing: as if it were not set, it would leave the door open.
 *
 * @throws ConfigError where it is set and empty, or shorter than `strict` allows.
 */
export function guardOf(name: string, io: Io, { strict }: { readonly strict: boolean }) {
  for (const each of [name, `${name}_FILE`]) {
    if (io.env[each]?.trim() === '')
      throw new ConfigError(`${each} is set but empty: give it a value, or unset it`);
  }
  const secret = secretOf(name, io, strict ? (text) => refuseShort(text, name) : undefined);
  return { secret, isShort: secret !== undefined && hasShortPart(secret()) };
}

function refuseShort(text: string, name: string): void {
  if (!hasShortPart(text)) return;
  throw new ConfigError(
    `${name} holds a secret of less than ${fewestCharacters} characters, which is easy to guess: make one with \`openssl rand -hex 20\``,
  );
}

/** Of one secret, or of two that are separated by a comma. */
function hasShortPart(text: string): boolean {
  return text.split(',').some((each) => each.trim().length < fewestCharacters);
}

function checked(text: string, source: string, check: ((text: string) => void) | undefined): string {
  const secret = text.trim();
  if (secret === '') throw new ConfigError(`${source} is empty`);
  check?.(secret);
  return secret;
}
