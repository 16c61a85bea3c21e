import type { Random } from '../../core/random.ts';

/** After a pass that died: 5, 10, 20, … s, at most 15 min. */
const retry = { firstMs: 5_000, longestMs: 15 * 60_000 } as const;

export interface Rest {
  /** Passes that died, in a row. */
  readonly failures: number;
  /** Nothing but another token helps. */
  readonly hopeless: boolean;
  readonly intervalMs: number;
  /** Further reasons to look, so long from now. */
  readonly untilMs: readonly number[];
}

/** How long to wait for the next pass, where nothing triggers one before. Jittered, so that many do not march in step. */
export function restMs({ failures, hopeless, intervalMs, untilMs }: Rest, random: Random): number {
  if (failures === 0) return Math.min(intervalMs * (0.9 + random.next() / 5), ...untilMs);
  const span = Math.min(retry.firstMs * 2 ** Math.min(failures - 1, 20), retry.longestMs);
  return Math.max(span, hopeless ? intervalMs : 0) * (1 + random.next() / 10);
}
