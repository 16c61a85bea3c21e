import type { z } from 'zod';
import { containers } from '../core/keys.ts';
import { formatPosition, isUnread, type Located, type Report, withFields } from './located.ts';
import { checkSchema } from './messages.ts';
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
  const checked = checkSchema(defaultsSchema.shape.servers.unwrap(), servers, '`defaults.servers`', report);
  const usable = [...servers.fields].map(([name, value]) =>
    checked.ok || !checked.fields.has(name) ? ([name, value] as const) : ([name, unusable(value)] as const),
  );
  return roots.map((root) => {
    const map = root.fields?.get(containers);
    if (map?.fields === undefined) return root;
    const filled = [...map.fields].map(([name, server]) => [name, withDefaultsIn(server, usable)] as const);
    return withFields(
      root,
      new Map([...(root.fields ?? []), [containers, withFields(map, new Map(filled))]]),
    );
  });
}

const takesNull = fieldsWithNull(defaultsSchema.shape.servers.unwrap().shape);

/** Inside a server that is not managed nothing is declared. */
function withDefaultsIn(server: Located, defaults: readonly (readonly [string, Located])[]): Located {
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

/** Marks the value as reported, so that no further message mentions it. */
function unusable(value: Located): Located {
  return { ...value, broken: true };
}
