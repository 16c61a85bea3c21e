import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in a time that does not depend on the contents or the lengths. */
export function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

/** During a rotation, the old and the new secret are both valid, separated by a comma. */
export function secretsIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .slice(0, 2);
}
