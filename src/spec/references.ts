import type { Position } from '../core/desired.ts';
import { parseKey, type ResourceKey } from '../core/keys.ts';
import { collections } from '../core/kind-facts.ts';
import { didYouMean } from '../core/suggest.ts';
import { type Entry, noun } from './entries.ts';
import { formatPosition, nearest, type Report } from './located.ts';

/** Comparing every wrong name with every right one would be quadratic. */
const maxSuggestions = 100;

export interface DeclaredNames {
  /** The keys of all entries, including entries with errors: a reference to one of them is no second error. */
  readonly declared: ReadonlySet<ResourceKey>;
  /** Maps that could not be read as a whole: there may be others in them. */
  readonly unread: ReadonlySet<string>;
}

/** Every reference has to lead to an entry, and an address to one server. */
export function checkReferences(
  entries: readonly Entry[],
  { declared, unread }: DeclaredNames,
  report: Report,
): void {
  const claimed = new Map<ResourceKey, { readonly by: ResourceKey; readonly position: Position }>();
  let suggestions = 0;
  for (const { resource, located, kind } of entries) {
    for (const { path, key, exclusive } of kind.entry.references?.(resource.value) ?? []) {
      const here = nearest(located, path);
      if (here.secret) continue;
      const target = parseKey(key);
      if (target === undefined || !declared.has(key)) {
        const collection = collections.find((each) => key.startsWith(`${each}.`)) ?? '';
        if (unread.has(collection)) continue;
        const name = key.slice(collection.length + 1);
        suggestions += 1;
        const hint = suggestions > maxSuggestions ? '' : didYouMean(name, namesIn(declared, collection));
        const word = collection.replace(/s$/, '');
        report(
          here.position,
          `unknown ${word} ${here.shown}${hint || `: \`${collection}\` has no entry of this name`}`,
        );
        continue;
      }
      if (!exclusive) continue;
      const earlier = claimed.get(key);
      if (earlier === undefined) claimed.set(key, { by: resource.key, position: here.position });
      else {
        report(
          here.position,
          `the ${noun({ name: target.kind })} ${here.shown} is already used by ${earlier.by} at ${formatPosition(earlier.position)}: an address belongs to one server`,
        );
      }
    }
  }
}

function namesIn(declared: DeclaredNames['declared'], collection: string): string[] {
  const prefix = `${collection}.`;
  return [...declared].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
}
