import type { Position } from '../core/desired.ts';
import { formatPosition, type Located, type Report, withFields } from './located.ts';

/** Finds the other part of a value that an overlay changes. */
export class Counterparts {
  readonly #texts = new Map<string, string>();

  /** @param relation `overlay of` or `changed at` */
  add(place: Position | undefined, relation: string, other: Position): void {
    if (place !== undefined)
      this.#texts.set(formatPosition(place), ` (${relation} ${formatPosition(other)})`);
  }

  /** The end of a message about this place. */
  textFor(place: Position): string {
    return this.#texts.get(formatPosition(place)) ?? '';
  }
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
  const result = [...roots];
  const change = (path: readonly [string, ...string[]], value: Located) => {
    const holders = result.flatMap((root, at) => (has(root, path) ? [at] : []));
    const nearest = result.findIndex((root) => has(root, path.slice(0, -1)));
    const targets = holders.length > 0 ? holders : removes(value) ? [] : [Math.max(0, nearest)];
    for (const at of targets) {
      const root = result[at];
      if (root !== undefined) result[at] = setAt(root, path, value, counterparts);
    }
  };
  for (const [name, value] of patch.fields) {
    if (value.fields === undefined) change([name], value);
    else for (const [member, each] of value.fields) change([name, member], each);
  }
  return result;
}

function has(root: Located, path: readonly string[]): boolean {
  let here: Located | undefined = root;
  for (const step of path) here = here?.fields?.get(step);
  return here !== undefined;
}

function removes({ value, broken }: Located): boolean {
  return value === null && !broken;
}

function setAt(
  root: Located,
  [name, ...rest]: readonly string[],
  value: Located,
  counterparts: Counterparts,
): Located {
  const before = root.fields?.get(name ?? '');
  const [next] = rest;
  const after =
    next === undefined
      ? merged(before, value, root, counterparts)
      : setAt(
          before?.fields === undefined ? emptyMap(before ?? root, value) : before,
          rest,
          value,
          counterparts,
        );
  return withField(root, name ?? '', after);
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
  let result = target?.fields === undefined ? emptyMap(patch, patch) : target;
  for (const [name, each] of patch.fields) {
    result = withField(result, name, merged(result.fields?.get(name), each, result, counterparts));
  }
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
export function withField(map: Located, name: string, value: Located | undefined): Located {
  const fields = new Map(map.fields);
  if (value === undefined) fields.delete(name);
  else fields.set(name, value);
  return withFields(map, fields);
}
