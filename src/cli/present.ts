/** The items that are there, in order: `false` and `undefined` are left out, and a list counts as its items. */
export function present<Item>(...parts: readonly (Item | readonly Item[] | false | undefined)[]): Item[] {
  return parts.flatMap((part) => (part === false || part === undefined ? [] : part));
}
