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

/**
 * Values of all files together, after overlays and defaults: a map, a list and each of their entries is one, and a long
 * text counts as several. Defaults multiply: without this limit, a small file could hold millions of values.
 */
const maxValues = 200_000;
/** Resources of a project, those inside servers included. Every page, plan and refresh handles each of them. */
export const maxResources = 10_000;
/** So many characters of a text or a name count as one value. */
const charactersEach = 100;

/** Refuses files that are too large after overlays and defaults. Returns whether they are small enough. */
export function checkExpansion(roots: readonly Located[], report: Report): boolean {
  const counter = new ValueCounter();
  const values = roots.reduce((sum, root) => sum + counter.count(root), 0);
  const [first] = roots;
  if (values <= maxValues || first === undefined) return true;
  const defaults = roots.flatMap((root) => root.fields?.get('defaults') ?? [])[0];
  const { keyPosition, position } = defaults ?? first;
  report(
    keyPosition ?? position,
    `the spec has ${values} values${defaults === undefined ? '' : ' after `defaults` are added to each server'}, and at most ${maxValues} are possible: split the project into several, or shorten its lists`,
  );
  return false;
}

/** Counts each shared value once, and adds it for each of its uses: a default is the same value in every server. */
class ValueCounter {
  readonly #known = new WeakMap<Located, number>();

  count(here: Located): number {
    const known = this.#known.get(here);
    if (known !== undefined) return known;
    let values = 1;
    if (typeof here.value === 'string') values += Math.floor(here.value.length / charactersEach);
    for (const [name, field] of here.fields ?? [])
      values += this.count(field) + Math.floor(name.length / charactersEach);
    for (const item of here.items ?? []) values += this.count(item);
    this.#known.set(here, values);
    return values;
  }
}
