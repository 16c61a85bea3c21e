import type { z } from 'zod';
import { containers } from '../core/keys.ts';
import { formatPosition, isUnread, type Located, type Report } from './located.ts';
import { checkSchema } from './messages.ts';
import { withField } from './overlay.ts';
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
    let filled = map;
    for (const [name, server] of map.fields) filled = withField(filled, name, withDefaultsIn(server, usable));
    return withField(root, containers, filled);
  });
}

/** Inside a server that is not managed nothing is declared. */
function withDefaultsIn(server: Located, defaults: readonly (readonly [string, Located])[]): Located {
  const isMap = server.fields !== undefined || (server.value === null && !server.broken);
  if (!isMap || server.fields?.get('managed')?.value === false) return server;
  let filled: Located = { ...server, value: server.value ?? {}, fields: server.fields ?? new Map() };
  for (const [name, value] of defaults) {
    const own = filled.fields?.get(name);
    if (own === undefined) filled = withField(filled, name, value);
    else if (own.value === null && !isUnread(own) && !takesNull(name)) {
      filled = withField(filled, name, undefined);
    }
  }
  return filled;
}

/** `iso: null` is a value: nothing in the drive. */
function takesNull(name: string): boolean {
  const fields: Readonly<Record<string, z.ZodType>> = defaultsSchema.shape.servers.unwrap().shape;
  return fields[name]?.safeParse(null).success === true;
}

/** Marks the value as reported, so that no further message mentions it. */
function unusable(value: Located): Located {
  return { ...value, broken: true };
}
