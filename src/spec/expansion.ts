import type { Located, Report } from './located.ts';

/**
 * Values of all files together, after overlays and defaults: a map, a list and each of their entries is one, and a long
 * text counts as several. Defaults multiply: without this limit, a small file could hold millions of values.
 */
export const maxValues = 200_000;
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
