import { namesakeOf, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Entries, SpecModel } from './story.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The spec that a machine applies. */
export interface SpecFile {
  model: SpecModel;
  readonly lines: KeyLines;
}

/**
 * The truth about renames: which keys of one spec mean the same resource over time. A line has the name of its first
 * key.
 */
export interface KeyLines {
  /** The name of the line of a key, and of a resource inside the line. */
  nameOf(key: ResourceKey): string;
  /** The key that the line has now, or had last. */
  keyOf(line: string): ResourceKey;
  /** Whether the line has had the key. */
  hasHad(line: string, key: ResourceKey): boolean;
  /** A state has a binding or a write under the key. */
  use(key: ResourceKey): void;
  /** The resource is created under the key, and nothing of the line exists: the earlier keys mean other resources. */
  restart(key: ResourceKey): void;
}

/** A spec without renames: each key has a line of its own. */
export function plainSpecFile(model: SpecModel): SpecFile {
  return {
    model,
    lines: {
      nameOf: (key) => lineName(key, bareKey),
      keyOf: (line) => line as ResourceKey,
      hasHad: (line, key) => line === key,
      use: () => {},
      restart: () => {},
    },
  };
}

/** The name of the line of a key, by the line of each top-level key. */
export function lineName(key: ResourceKey, lineOf: (key: string) => string): string {
  const parsed = takeApart(key);
  const { parent } = parsed;
  if (parent === undefined) return lineOf(key);
  const namesake = namesakeOf(parsed);
  const suffix = namesake === undefined ? key.slice(parent.length + 1) : `in ${lineOf(namesake)}`;
  return `${lineOf(parent)}.${suffix}`;
}

/** A server that is replaced keeps its line. */
export function bareKey(key: string): string {
  return key.replace(/~.*$/, '');
}

/** The part of the spec that a key names: an entry, or a field of an entry, for example a firewall. */
export function entryOf(file: SpecModel, key: string): Fields | undefined {
  const [collection = '', name = '', field] = key.split('.');
  const entry = (file as unknown as Readonly<Record<string, Entries>>)[collection]?.[name];
  return field === undefined ? entry : (entry?.[field] as Fields | undefined);
}

/** The spec with another entry, or field of an entry, at the place that a key names. */
export function withEntry(file: SpecModel, key: string, value: Fields): SpecModel {
  const [collection = '', name = '', field] = key.split('.');
  const section = (file as unknown as Readonly<Record<string, Entries>>)[collection] ?? {};
  const entry = field === undefined ? value : { ...section[name], [field]: value };
  return { ...file, [collection]: { ...section, [name]: entry } };
}
