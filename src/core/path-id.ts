/** Whether an id can stand as one segment of a path, from which nothing leads to another resource. */
export function fitsPath(id: string): boolean {
  return id !== '' && id !== '.' && id !== '..' && id.isWellFormed();
}
