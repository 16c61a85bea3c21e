/** A word for a shell: unchanged, or in quotes. */
export function shellWord(word: string | number): string {
  const text = String(word);
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
