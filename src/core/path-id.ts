/** No platform uses longer ids. */
const mostCharacters = 200;
/** Printable, with spaces only between other characters; without quotes and the separators of commands. */
const plain = /^(?! )[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}"'`|;&<>$\\]+(?<! )$/u;

/** Whether a command that an operator copies can contain this id of the API. @assumption A65 */
export function isPlainId(id: string): boolean {
  return id.length <= mostCharacters && plain.test(id);
}

/** Whether a plain id is also safe as one segment of a path: no segment may lead to another resource. */
export function fitsPath(id: string): boolean {
  return id !== '.' && id !== '..' && id.isWellFormed() && isPlainId(id);
}
