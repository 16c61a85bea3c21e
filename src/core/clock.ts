/**
 * The only source of time. Production uses the system's clock, tests and the
 * simulation a virtual one, so that nothing in the project waits for real.
 */
export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. May jump. */
  now(): number;
  /** Milliseconds since an arbitrary start. Never goes back; for measuring spans. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The answer, or `undefined` if it takes longer than `ms`. */
export async function within<Answer>(
  clock: Clock,
  ms: number,
  answer: Promise<Answer>,
): Promise<Answer | undefined> {
  const over = new AbortController();
  const late = clock.sleep(ms, over.signal).then(
    () => undefined,
    () => answer,
  );
  try {
    return await Promise.race([answer, late]);
  } finally {
    over.abort();
  }
}

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

/** The only source of chance, so that a seed reproduces a run. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
}
