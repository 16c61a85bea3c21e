/** The text with a capital first letter, unless it begins with the name of this program. */
export function capitalised(text: string): string {
  return /^vdcsync\b/.test(text) ? text : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** `3 writes`, `1 write`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The text, cut to this number of letters and with an ellipsis where it is longer. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
