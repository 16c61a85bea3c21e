import { ConfigError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { collections } from '../../core/kind-facts.ts';
import { nearMiss } from '../../core/suggest.ts';
import { printable } from '../terminal.ts';

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
