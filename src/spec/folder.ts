/** The names of the spec files in a folder, sorted. */
export function specNames(names: readonly string[]): string[] {
  return names.filter((each) => /\.ya?ml$/.test(each) && !each.startsWith('.')).sort();
}
