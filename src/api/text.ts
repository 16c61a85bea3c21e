/** The longest piece of server text that is passed on, in characters. */
const maxLength = 1_000;

/** Server text fit for a message: bounded, and without control or direction characters. */
export function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}…` : clean;
}
