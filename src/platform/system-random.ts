import { getRandomValues } from 'node:crypto';
import type { Random } from '../core/random.ts';

/** The machine's randomness, for jitter. No seed reproduces it. */
export const systemRandom: Random = {
  next: () => (getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32,
};
