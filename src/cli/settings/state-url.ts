/** Does a state's location name a database and not a file? */
export function isUrl(location: string): boolean {
  return /^\w+:\/\//.test(location);
}
