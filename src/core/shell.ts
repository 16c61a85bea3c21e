/** A word as a shell takes it: as it is, or in quotes. */
export function shellWord(word: string | number): string {
  const text = String(word);
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
