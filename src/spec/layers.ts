import type { z } from 'zod';
import type { Position } from '../core/desired.ts';
import { containers } from '../core/keys.ts';
import {
  type Counterparts,
  checkSchema,
  formatPosition,
  isUnread,
  type Located,
  type Report,
  withFields,
} from './located.ts';
import { defaultsSchema } from './schemas.ts';

/**
 * The files with `defaults.servers` in every server. A field of a server replaces the default: the two are not merged,
 * and `null` leaves the default out. An error in a default is reported once, at the position of the default.
 */
export function withDefaults(roots: readonly Located[], report: Report): readonly Located[] {
  const [defaults, second] = roots.flatMap((root) => root.fields?.get('defaults') ?? []);
  if (defaults !== undefined && second !== undefined) {
    const first = formatPosition(defaults.keyPosition ?? defaults.position);
    report(
      second.keyPosition ?? second.position,
      `\`defaults\` appear twice in the spec: first at ${first}. Keep them in one file; they apply to all files.`,
    );
  }
  const servers = defaults?.fields?.get(containers);
  if (servers?.fields === undefined) return roots;
  const schema = defaultsSchema.shape.servers.unwrap();
  const takesNull = fieldsWithNull(schema.shape);
  const checked = checkSchema(schema, servers, '`defaults.servers`', report);
  // A reported value is broken, so that no further message mentions it.
  const usable = [...servers.fields].map(([name, value]) => {
    const isReported = !checked.ok && checked.fields.has(name);
    return [name, isReported ? { ...value, broken: true } : value] as const;
  });

  return roots.map((root) => {
    const map = root.fields?.get(containers);
    if (map?.fields === undefined) return root;
    const filled = [...map.fields].map(
      ([name, server]) => [name, withDefaultsIn(server, usable, takesNull)] as const,
    );
    return withFields(
      root,
      new Map([...(root.fields ?? []), [containers, withFields(map, new Map(filled))]]),
    );
  });
}

/** Inside a server that is not managed nothing is declared. */
function withDefaultsIn(
  server: Located,
  defaults: readonly (readonly [string, Located])[],
  takesNull: ReadonlySet<string>,
): Located {
  const isMap = server.fields !== undefined || (server.value === null && !server.broken);
  if (!isMap || server.fields?.get('managed')?.value === false) return server;
  const filled = new Map(server.fields);
  for (const [name, value] of defaults) {
    const own = filled.get(name);
    if (own === undefined) filled.set(name, value);
    else if (own.value === null && !isUnread(own) && !takesNull.has(name)) filled.delete(name);
  }
  return withFields(server, filled);
}

/** `iso: null` is a value: nothing in the drive. */
function fieldsWithNull(fields: Readonly<Record<string, z.ZodType>>): ReadonlySet<string> {
  return new Set(
    Object.entries(fields).flatMap(([name, schema]) => (schema.safeParse(null).success ? [name] : [])),
  );
}

/**
 * The files with an overlay: a merge patch (RFC 7396). Maps are merged, `null` removes, everything else replaces. An
 * entry is changed in the file that holds it; a new one belongs to the file that holds its map, or to the first.
 */
export function overlaid(
  roots: readonly Located[],
  patch: Located,
  counterparts: Counterparts,
  report: Report,
): readonly Located[] {
  if (patch.fields === undefined) {
    if (!patch.broken) report(patch.position, 'an overlay is a map of changes');
    return roots;
  }
  return [...patch.fields].reduce<readonly Located[]>(
    (results, [name, value]) => withSection(results, name, value, counterparts),
    roots,
  );
}

/** One section changed. Each file is built once, because an overlay may change thousands of entries. */
function withSection(
  roots: readonly Located[],
  name: string,
  change: Located,
  counterparts: Counterparts,
): readonly Located[] {
  const sections = roots.map((root) => root.fields?.get(name));
  const holder = Math.max(
    0,
    sections.findIndex((section) => section !== undefined),
  );
  const isDefined = (member: string) => sections.some((section) => section?.fields?.has(member));
  return roots.map((root, at) => {
    const section = sections[at];
    const takesNew = (value: Located) => at === holder && !removes(value);
    if (change.fields === undefined) {
      if (section === undefined && !takesNew(change)) return root;
      return withField(root, name, merged(section, change, root, counterparts));
    }
    const own = [...change.fields].filter(
      ([member, value]) => section?.fields?.has(member) || (takesNew(value) && !isDefined(member)),
    );
    const [some] = own;
    if (some === undefined) return root;
    const base = section?.fields === undefined ? emptyMap(section ?? root, some[1]) : section;
    return withField(root, name, mergedFields(base, own, counterparts));
  });
}

/** The map after the changes of some of its fields. */
function mergedFields(
  base: Located,
  changes: Iterable<readonly [string, Located]>,
  counterparts: Counterparts,
): Located {
  const fields = new Map(base.fields);
  for (const [name, change] of changes) {
    const after = merged(fields.get(name), change, base, counterparts);
    if (after === undefined) fields.delete(name);
    else fields.set(name, after);
  }
  return withFields(base, fields);
}

function removes({ value, broken }: Located): boolean {
  return value === null && !broken;
}

/** The value under a name after the patch; `undefined`: it is removed. */
function merged(
  target: Located | undefined,
  patch: Located,
  around: Located,
  counterparts: Counterparts,
): Located | undefined {
  if (removes(patch)) return undefined;
  const base = target ?? around;
  const place = base.keyPosition ?? base.position;
  if (patch.fields === undefined || target?.fields === undefined) {
    addWhole(patch, place, counterparts);
  } else {
    const other = patch.keyPosition ?? patch.position;
    counterparts.add(target.position, 'changed at', other);
    counterparts.add(target.keyPosition, 'changed at', other);
  }
  if (patch.fields === undefined) return patch;
  const result = mergedFields(
    target?.fields === undefined ? emptyMap(patch, patch) : target,
    patch.fields,
    counterparts,
  );
  return patch.partial === true ? { ...result, partial: true } : result;
}

/** The value and all in it. */
function addWhole(
  { position, keyPosition, fields, items }: Located,
  place: Position,
  counterparts: Counterparts,
): void {
  counterparts.add(position, 'overlay of', place);
  counterparts.add(keyPosition, 'overlay of', place);
  for (const each of [...(fields?.values() ?? []), ...(items ?? [])]) addWhole(each, place, counterparts);
}

function emptyMap({ position, keyPosition }: Located, { broken }: Located): Located {
  const place = keyPosition === undefined ? { position } : { position, keyPosition };
  return { ...place, value: {}, shown: 'a map', secret: false, broken, fields: new Map() };
}

/** The map with another value under this name, or without the name. */
function withField(map: Located, name: string, value: Located | undefined): Located {
  const fields = new Map(map.fields);
  if (value === undefined) fields.delete(name);
  else fields.set(name, value);
  return withFields(map, fields);
}
