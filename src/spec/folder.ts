/** Of the names in a folder, those of specs, in order. */
export function specNames(names: readonly string[]): string[] {
  return names.filter((each) => /\.ya?ml$/.test(each) && !each.startsWith('.')).sort();
}
