import type { z } from 'zod';
import type { EntryFields } from './desired.ts';
import type { ResourceKey } from './keys.ts';

/** The entries of a kind in its top-level map of the spec. */
export interface SectionTraits {
  readonly description: string;
  readonly example: Readonly<Record<string, unknown>>;
  /** The names of entries. They are part of keys, so a shell or the dots of a key must not misread a character. */
  readonly names: { readonly pattern: RegExp; readonly text: string };
  /** The `id` of an entry; a whole number where left out. */
  readonly id?: z.ZodType;
  /** Why two entries must not have the same `name`. */
  readonly sameName?: string;
  /** The field with a subnet, which must not overlap with the subnet of another entry. */
  readonly subnet?: string;
  /** A creation needs one of these fields. */
  readonly oneOf?: readonly string[];
  /** Fields that exclude other fields. */
  readonly notWith?: Readonly<Record<string, readonly string[]>>;
}

/** A mistake in an entry that the schema alone cannot refuse. `path` is inside the entry. */
export interface EntryIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The name of the field at the path is wrong, not its value. */
  readonly named?: true;
}

/** One resource declared by a field of a server's entry. `path` is inside the field. */
export interface ChildEntry {
  /** The part after the server's key: `firewall`, `network_interfaces.backend`. */
  readonly suffix: string;
  readonly value: EntryFields;
  readonly path: readonly (string | number)[];
}

/** Another resource that an entry names. */
export interface Reference {
  readonly path: readonly (string | number)[];
  readonly key: ResourceKey;
  /** Only one entry may name the resource. */
  readonly exclusive?: true;
}
