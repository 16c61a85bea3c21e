/**
 * The wait before the next try, in ms: `firstMs` times 1, 2, 4, …, at most `mostMs`, plus up to a tenth of it.
 *
 * @param tries the waits before this one
 * @param jitter a random number from 0 to 1, so that many clients do not try again at the same moment
 */
export function backOff(
  { firstMs, mostMs }: { readonly firstMs: number; readonly mostMs: number },
  tries: number,
  jitter: number,
): number {
  return Math.min(firstMs * 2 ** Math.min(tries, 20), mostMs) * (1 + jitter / 10);
}
