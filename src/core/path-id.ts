/** Platforms make no longer ids. */
const mostCharacters = 200;
/** Printable, with spaces only between other characters; without quotes and the separators of commands. */
const plain = /^(?! )[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}"'`|;&<>$\\]+(?<! )$/u;

/** Whether an id of the API can stand in a command that an operator copies. @assumption A65 */
export function isPlainId(id: string): boolean {
  return id.length <= mostCharacters && plain.test(id);
}

/** Whether such an id can also stand as one segment of a path, from which nothing leads to another resource. */
export function fitsPath(id: string): boolean {
  return id !== '.' && id !== '..' && id.isWellFormed() && isPlainId(id);
}
