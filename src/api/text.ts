/** The longest piece of server text that is passed on, in characters. */
const maxLength = 1_000;
/** The limit for a header, because every line of the log contains it. */
const maxHeaderLength = 200;

/** Server text fit for a message: bounded, and without control or direction characters. */
export function printable(text: string, most = maxLength): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();
  return clean.length > most ? `${clean.slice(0, most).toWellFormed()}…` : clean;
}

/** A header's value, fit for a message. */
export function printableHeader(value: string): string {
  return printable(value, maxHeaderLength);
}
