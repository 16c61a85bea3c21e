import type { Position } from '../core/desired.ts';
import { parseKey, type ResourceKey } from '../core/keys.ts';
import { collections } from '../core/kind-facts.ts';
import { didYouMean } from '../core/suggest.ts';
import { type AddressRange, parseCidr } from '../reconcilers/network.ts';
import { type Entry, noun } from './entries.ts';
import { find, formatPosition, nearest, type Report } from './located.ts';

/** Two entries must not mean the same resource, nor claim the same name, network interface or addresses. */
export function checkUniqueness(entries: readonly Entry[], report: Report): void {
  const top = entries.filter(({ resource }) => resource.parent === undefined);
  reportTwice(top, report, {
    identify: ({ resource }) => (resource.id === undefined ? undefined : `${resource.kind} ${resource.id}`),
    place: (entry) => fieldPosition(entry, 'id'),
    messageOf: ({ resource, kind }, first, at) =>
      `${resource.key} and ${first.resource.key} (${at}) are bound to the same ${noun(kind)}, id ${resource.id}`,
  });
  reportTwice(
    top.filter(({ kind }) => kind.entry.section?.sameName !== undefined),
    report,
    {
      identify: ({ resource: { kind, value } }) =>
        value.name === undefined ? undefined : `${kind} ${value.name.trim()}`,
      place: (entry) => fieldPosition(entry, 'name'),
      messageOf: ({ resource, kind }, first, at) =>
        `${resource.key} and ${first.resource.key} (${at}) have the same name, ${kind.entry.section?.sameName}`,
    },
  );
  reportTwice(
    entries.filter(({ resource }) => resource.parent !== undefined),
    report,
    {
      identify: ({ resource }) => resource.key,
      place: ({ located }) => located.position,
      messageOf: ({ located }, _first, at) => `duplicate value ${located.shown}: first at ${at}`,
    },
  );
  reportMoves(top, report);
  reportOverlaps(top, report);
}

/** A key moves to one other key, and then no entry may use the old key. */
function reportMoves(entries: readonly Entry[], report: Report): void {
  const keys = new Set(entries.map(({ resource }) => resource.key));
  const claimed = new Map<string, Entry>();
  for (const entry of entries) {
    const { located, resource } = entry;
    const given = find(located, ['moved', 'from']);
    if (given === undefined || given.broken) continue;
    const { moved } = resource;
    const earlier = moved && claimed.get(moved);
    if (moved === undefined) {
      const map = resource.key.split('.')[0];
      report(given.position, `${given.shown} cannot be an earlier key of ${resource.key}: write ${map}.NAME`);
    } else if (moved === resource.key) {
      report(given.position, `${resource.key} cannot have moved from itself: remove \`moved\``);
    } else if (keys.has(moved)) {
      report(given.position, `${moved} is still in the spec: rename its entry, or remove \`moved\``);
    } else if (earlier !== undefined) {
      report(given.position, `${moved} cannot have become both ${earlier.resource.key} and ${resource.key}`);
    } else claimed.set(moved, entry);
  }
}

interface Rule {
  identify(entry: Entry): string | undefined;
  place(entry: Entry): Position;
  messageOf(entry: Entry, first: Entry, at: string): string;
}

function reportTwice(entries: readonly Entry[], report: Report, { identify, place, messageOf }: Rule): void {
  const seen = new Map<string, Entry>();
  for (const entry of entries) {
    const identity = identify(entry);
    if (identity === undefined) continue;
    const first = seen.get(identity);
    if (first === undefined) seen.set(identity, entry);
    else report(place(entry), messageOf(entry, first, formatPosition(place(first))));
  }
}

/** The addresses of an entry, and the position of its subnet. */
interface Range extends AddressRange {
  readonly key: ResourceKey;
  readonly position: Position;
  readonly order: number;
}

/**
 * Subnets are nested or apart, so in order of their starts each has only to be compared
 * with the widest one that is still open: no quadratic work for a file of many.
 */
function reportOverlaps(entries: readonly Entry[], report: Report): void {
  const ranges = entries
    .flatMap((entry, order) => range(entry, order) ?? [])
    .sort((a, b) => a.start - b.start || b.end - a.end || a.order - b.order);
  let open: Range | undefined;
  for (const each of ranges) {
    if (open === undefined || each.start > open.end) {
      open = each;
      continue;
    }
    const [first, second] = open.order < each.order ? [open, each] : [each, open];
    const at = formatPosition(first.position);
    report(second.position, `the subnets of ${second.key} and ${first.key} (${at}) overlap`);
  }
}

function range(entry: Entry, order: number): Range | undefined {
  const field = entry.kind.entry.section?.subnet;
  if (field === undefined) return undefined;
  const subnet = entry.resource.value[field];
  const range = typeof subnet === 'string' ? parseCidr(subnet) : undefined;
  return range && { ...range, key: entry.resource.key, position: fieldPosition(entry, field), order };
}

function fieldPosition({ located, resource }: Entry, field: string): Position {
  return find(located, [field])?.position ?? resource.position;
}

/** Comparing every wrong name with every right one would be quadratic. */
const maxSuggestions = 100;

export interface DeclaredNames {
  /** The keys of all entries, including entries with errors: a reference to one of them is no second error. */
  readonly declared: ReadonlySet<ResourceKey>;
  /** Maps that could not be read as a whole: there may be others in them. */
  readonly unread: ReadonlySet<string>;
  /** Of the project. */
  readonly expires: unknown;
}

/** Every reference has to lead to an entry, and an address to one server. */
export function checkReferences(
  entries: readonly Entry[],
  { declared, unread, expires }: DeclaredNames,
  report: Report,
): void {
  const claimed = new Map<ResourceKey, { readonly by: ResourceKey; readonly position: Position }>();
  const expiries = new Map(entries.map(({ resource }) => [resource.key, resource.expires]));
  const endOf = (key: ResourceKey) =>
    Math.min(
      ...[expiries.get(key), expires].map((at) => (typeof at === 'string' ? Date.parse(at) : Infinity)),
    );
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
      const { parent: user = resource.key } = resource;
      if (endOf(key) < endOf(user)) {
        const first = `${key} expires at ${expiries.get(key)}, and ${user} uses it for longer`;
        report(here.position, `${first}: give ${user} the same \`expires\`, or an earlier one`);
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
