import * as z from 'zod';
import { parseDurations } from './durations.ts';
import { type FaultRule, faultSchema } from './faults.ts';
import { parseText } from './profile.ts';
import { parseReadings, type Readings } from './readings.ts';
import { refusal } from './words.ts';
import type { Durations } from './world.ts';

/** The content of a faults file. */
interface FaultsFile {
  readonly faults: FaultRule[];
  readonly readings: Partial<Readings>;
  readonly durations: Partial<Durations>;
}

/**
 * Reads a faults file, YAML or JSON: a list of rules, or a map of `faults`,
 * `readings` and `durations`. Throws `EmulatorInputError` that names the rule and the member.
 */
export function loadFaults(text: string): FaultsFile {
  const document = parseText(text, 'faults');
  if (document === null) return { faults: [], readings: {}, durations: {} };
  if (Array.isArray(document)) return { faults: parseFaults(document), readings: {}, durations: {} };
  const file = fileSchema.safeParse(document);
  if (!file.success) throw refusal(file.error, 'faults file');
  return {
    faults: parseFaults(file.data.faults ?? [], ['faults']),
    readings: parseReadings(file.data.readings),
    durations: parseDurations(file.data.durations),
  };
}

/** Checks a list of rules. `base` is the path of the list inside the input. Throws `EmulatorInputError`. */
export function parseFaults(input: unknown, base: readonly PropertyKey[] = []): FaultRule[] {
  const rules = z.array(faultSchema).safeParse(input);
  if (!rules.success) throw refusal(rules.error, 'faults', base);
  return rules.data;
}

const fileSchema = z.strictObject({
  faults: z.unknown().optional(),
  readings: z.unknown().optional(),
  durations: z.unknown().optional(),
});
