import type { Range } from './dice.ts';
import { durationMs } from './profile.ts';
import { EmulatorInputError } from './readings.ts';
import type { Durations } from './world.ts';

/** The default durations: least and most, in emulator milliseconds. */
export const DEFAULT_DURATIONS: Durations = {
  create_server: [25_000, 45_000],
  delete_server: [10_000, 20_000],
  create_network: [3_000, 8_000],
  delete_network: [3_000, 8_000],
  add_card: [4_000, 10_000],
  remove_card: [4_000, 10_000],
  add_iso: [20_000, 60_000],
  take_image: [20_000, 60_000],
  change_server: [5_000, 15_000],
  backup: [60_000, 120_000],
  image_submission: [1_500, 2_500],
} satisfies Record<string, Range>;

/**
 * Checks a map of how long work takes, each a duration such as `5m`, or the least and the most: `1m..25m`.
 * Throws an `EmulatorInputError` that names the work.
 */
export function parseDurations(input: unknown): Partial<Durations> {
  if (input === undefined || input === null) return {};
  if (typeof input !== 'object' || Array.isArray(input))
    throw new EmulatorInputError('durations: must be a map of name to duration', ['durations']);
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      if (!Object.hasOwn(DEFAULT_DURATIONS, name)) {
        const known = Object.keys(DEFAULT_DURATIONS).join(', ');
        throw new EmulatorInputError(`durations.${name}: unknown type of task; known types: ${known}`, [
          'durations',
          name,
        ]);
      }
      return [name, parseRange(value, `durations.${name}`, ['durations', name])];
    }),
  );
}

/** One duration, or the least and the most: `5m`, `1m..25m`. Throws `EmulatorInputError`. */
function parseRange(value: unknown, at: string, path: readonly PropertyKey[]): Range {
  const parts = String(value).split('..').map(durationMs);
  const [least, most] = [parts[0], parts.at(-1)];
  if (parts.length <= 2 && least !== undefined && most !== undefined && least <= most) return [least, most];
  throw new EmulatorInputError(
    `${at}: must be a duration such as 5m, or the least and the most such as 1m..25m, not ${JSON.stringify(value)}`,
    path,
  );
}
