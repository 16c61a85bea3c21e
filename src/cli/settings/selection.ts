import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { collections } from '../../core/kind-facts.ts';
import type { Plan, Selection } from '../../core/plan.ts';
import { didYouMeanKey, nearMiss } from '../../core/suggest.ts';
import type { Session } from '../compose.ts';
import { printable } from '../terminal.ts';

export interface SelectionFlags {
  readonly target?: readonly string[];
  readonly exclude?: readonly string[];
}

/**
 * The part of the plan that the flags select, or `undefined` for the whole plan.
 *
 * @throws ConfigError for a key that neither the spec nor the state has: it would select nothing.
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
        `${flag} ${printable(text)}: neither the spec nor the state has this key${hint}`,
        true,
      );
    };
  return { targets: target.map(checked('--target')), excludes: exclude.map(checked('--exclude')) };
}

/** @throws ConfigError if the flags select another part than the saved plan in `path` contains. */
export function refuseOtherSelection(saved: Plan, given: SelectionFlags, path: string): void {
  const { targets = [], excludes = [] } = saved.selection ?? {};
  const [made, asked] = [written(targets, excludes), written(given.target, given.exclude)];
  if (asked === '' || asked === made) return;
  const of = made === '' ? 'for the complete file' : `with ${made}`;
  throw new ConfigError(
    `${printable(path)} was made ${of}, and this command has ${asked}. Remove these flags, or make the plan again with them`,
    true,
  );
}

function written(targets: readonly string[] = [], excludes: readonly string[] = []): string {
  const flags = [
    ...targets.map((key) => `--target ${printable(key)}`),
    ...excludes.map((key) => `--exclude ${printable(key)}`),
  ];
  return [...new Set(flags)].sort().join(' ');
}

/** @throws ConfigError for a text that is no key, with a suggestion for its collection. */
export function checkedKey(text: string): ResourceKey {
  const parsed = parseKey(text);
  if (parsed !== undefined) return parsed.key;
  const [first = '', ...rest] = text.split('.');
  const collection = rest.length === 0 ? undefined : nearMiss(first, collections);
  const meant = parseKey(`${collection}.${rest.join('.')}`)?.key;
  const like = 'examples of keys: servers.web-1, servers.web-1.network_interfaces.backend';
  const hint = meant === undefined ? `: ${like}` : `; did you mean ${printable(meant)}?`;
  throw new ConfigError(`${JSON.stringify(printable(text))} is not a key${hint}`, true);
}
