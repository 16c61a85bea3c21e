import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { didYouMeanKey } from '../../core/suggest.ts';
import type { Selection } from '../../plan/selection.ts';
import type { Session } from '../compose.ts';
import { printable } from '../terminal.ts';

export interface SelectionFlags {
  readonly target?: readonly string[];
  readonly exclude?: readonly string[];
}

/**
 * The part of the plan that a call means, or `undefined` for all of it.
 *
 * @throws ConfigError for a key that neither the file nor the state has: it would select nothing.
 */
export async function selectionOf(
  { target = [], exclude = [] }: SelectionFlags,
  desired: Desired,
  { store }: Session,
): Promise<Selection | undefined> {
  if (target.length + exclude.length === 0) return undefined;
  const known = new Set<string>([
    ...desired.resources.map(({ key }) => key),
    ...(await store.bindings()).map(({ key }) => key),
  ]);
  const checked =
    (flag: string) =>
    (text: string): ResourceKey => {
      const key = parseKey(text)?.key;
      if (key !== undefined && known.has(key)) return key;
      const hint = didYouMeanKey(text, known, '');
      throw new ConfigError(
        `${flag} ${printable(text)}: neither the file nor the state has such a key${hint}`,
        true,
      );
    };
  return { targets: target.map(checked('--target')), excludes: exclude.map(checked('--exclude')) };
}
