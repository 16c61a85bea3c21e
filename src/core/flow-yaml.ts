import type { ResourceKey } from './keys.ts';
import type { Change } from './plan.ts';

/** What brings the entry of `key` back to what it was, in words that can be pasted into it. */
export function restoring(changes: readonly Change[], key: ResourceKey): string {
  const gone = changes.filter(({ from }) => from === null).map(({ path }) => `\`${path}\``);
  const back = changes
    .filter(({ from }) => from !== null)
    .map(({ path, from }) => `\`${path}: ${flowYaml(path === 'public_ipv4' ? addressEntry(from) : from)}\``);
  if (back.length === 0) return `take ${gone.join(', ')} out of ${key}`;
  return `restore ${back.join(', ')} in ${key}${gone.length === 0 ? '' : `, without ${gone.join(', ')}`}`;
}

/** A value as it can stand in an entry, in one line: `{ip: web}`, `[a, b]`, `"12"`. */
export function flowYaml(value: unknown): string {
  if (typeof value === 'string') return isPlain(value) ? value : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flowYaml).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${flowYaml(name)}: ${flowYaml(each)}`)
    .join(', ')}}`;
}

/** A plan has an address in a word: `ips.NAME`, `new` or `reuse`. */
function addressEntry(word: unknown): unknown {
  const text = String(word);
  return text.startsWith('ips.') ? { ip: text.slice('ips.'.length) } : { [text]: true };
}

/** YAML reads it as this very text without quotes. */
function isPlain(text: string): boolean {
  if (!/^[A-Za-z0-9]([A-Za-z0-9 ./_-]*[A-Za-z0-9./_-])?$/.test(text)) return false;
  return !/^(true|false|null)$/i.test(text) && Number.isNaN(Number(text));
}
