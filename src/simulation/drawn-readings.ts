import { readingValues } from '../emulator/readings.ts';

/** Readings and values that no story draws: the emulator alone plays them. */
const undrawn: Readonly<Record<string, readonly unknown[] | 'all'>> = {
  inFlightKey: ['conflictRetryAfter'],
  failedTaskLeaves: ['later'],
  bodyCheck: 'all',
  scopeCheck: 'all',
  paymentCheck: 'all',
  stored401: 'all',
  addressAt: 'all',
  attachedAt: 'all',
  interfaceAt: 'all',
  networkAt: 'all',
  isoAt: 'all',
  serverListedAt: 'all',
};

/** The readings that stories draw, each with its values, default first. */
export const drawnReadings: Readonly<Record<string, readonly unknown[]>> = Object.fromEntries(
  Object.entries(readingValues).flatMap(([name, values]) => {
    const left = undrawn[name] ?? [];
    return left === 'all' ? [] : [[name, values.filter((value) => !left.includes(value))]];
  }),
);
