import * as z from 'zod';
import { parseDurations } from './durations.ts';
import type { FaultRule } from './faults.ts';
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
  const rules = z.array(ruleSchema).safeParse(input);
  if (!rules.success) throw refusal(rules.error, 'faults', base);
  return rules.data as FaultRule[];
}

const fileSchema = z.strictObject({
  faults: z.unknown().optional(),
  readings: z.unknown().optional(),
  durations: z.unknown().optional(),
});

const count = z.int().min(1);
const ms = z.number().min(0);
const effect = z.enum(['none', 'done']).optional();
const stored = z.boolean().optional();
const status = z.int().min(200).max(599);

const actionSchema = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('answer'),
    status,
    code: z.string().min(1).optional(),
    detail: z.string().optional(),
    retryAfter: z.int().min(0).optional(),
    headers: z.record(z.string(), z.string()).optional(),
    effect,
    stored,
  }),
  z.strictObject({ do: z.literal('reset'), effect, stored }),
  z.strictObject({ do: z.literal('refuse') }),
  z.strictObject({ do: z.literal('truncate'), keep: z.int().min(0).optional(), stored }),
  z.strictObject({ do: z.literal('malformed'), stored }),
  z.strictObject({ do: z.literal('html'), status: status.optional(), effect, stored }),
  z.strictObject({
    do: z.literal('redirect'),
    status: z.int().min(300).max(399).optional(),
    location: z.string().optional(),
    effect,
    stored,
  }),
  z.strictObject({ do: z.literal('slow'), ms }),
  z.strictObject({ do: z.literal('late'), ms, holdsKey: z.boolean().optional() }),
  z.strictObject({
    do: z.literal('task'),
    outcome: z.enum(['fail', 'stuck', 'forgotten']).optional(),
    leaves: z.enum(['nothing', 'everything', 'partial', 'later']).optional(),
    ms: ms.optional(),
    laterMs: ms.optional(),
  }),
  z.strictObject({ do: z.literal('omit_task') }),
  z.strictObject({ do: z.literal('no_gpu_capacity') }),
  z.strictObject({
    do: z.literal('decorate'),
    fields: z.record(z.string(), z.unknown()).optional(),
    status: z.string().optional(),
    taskStatus: z.string().optional(),
  }),
  z.strictObject({ do: z.literal('stale'), ms }),
  z.strictObject({ do: z.literal('truncate_list'), keep: z.int().min(0) }),
  z.strictObject({ do: z.literal('stored_429'), retryAfter: z.int().min(0).optional() }),
  z.strictObject({ do: z.literal('standing'), standing: z.enum(['active', 'suspended', 'unpaid']) }),
]);

const ruleSchema = z.strictObject({
  when: z.strictObject({
    method: z.string().min(1).optional(),
    path: z.string().min(1).optional(),
    nth: count.optional(),
    times: count.optional(),
    probability: z.number().min(0).max(1).optional(),
  }),
  // biome-ignore lint/suspicious/noThenProperty: the file format says when … then, and it is not a function
  then: actionSchema,
});
