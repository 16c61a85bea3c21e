/** For this time, reads may show the state before a write, in ms. @assumption A9 */
export const staleMs = 60_000;
/** The time between the two reads that confirm a resource as absent, in ms. @assumption A9 */
export const absenceGapMs = 60_000;

/** The time until the next read of a resource that is not complete yet: short at first, later a minute. */
export function nextReadMs(elapsedMs: number): number {
  return Math.min(60_000, 10_000 + elapsedMs / 4);
}
