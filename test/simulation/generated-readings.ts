import { type Readings, readingValues } from '../../src/emulator/readings.ts';
import type { Chance } from '../../src/simulation/chance.ts';

/**
 * Readings, and further values of readings, that are drawn separately: the stories of the seeds before them do not change.
 */
const apart: Readonly<Record<string, readonly unknown[] | 'all'>> = {
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

/** Drawn by {@link taskIdsOf} alone. */
const alone = 'taskIds';

type Values = Readonly<Record<string, readonly unknown[]>>;

function valuesWhere(holds: (name: string, value: unknown) => boolean): Values {
  return Object.fromEntries(
    Object.entries(readingValues)
      .map(([name, values]) => [name, values.filter((value) => holds(name, value))] as const)
      .filter(([name, values]) => values.length > 0 && name !== alone),
  );
}

function isApart(name: string, value: unknown): boolean {
  const values = apart[name];
  return values === 'all' || values?.includes(value) === true;
}

/** The readings that each story draws, each with its values, default first. */
export const generatedReadings: Values = valuesWhere((name, value) => !isApart(name, value));

/** The values, except the defaults, of the readings that are drawn separately. */
export const readingsApart: Values = valuesWhere(
  (name, value) => isApart(name, value) && value !== readingValues[name]?.[0],
);

/** The form of the ids of tasks decides nothing, so every kind of story draws it. */
export function taskIdsOf(dice: Chance): Partial<Readings> {
  return dice.happens(0.3) ? { [alone]: 'printable' } : {};
}
