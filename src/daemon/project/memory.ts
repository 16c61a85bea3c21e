import { z } from 'zod';
import type { ResourceKey } from '../../core/keys.ts';
import { typed } from '../../core/plan-schema.ts';

/** The name under which a project's state keeps it. */
export const memoryNote = 'daemon';

const backOff = z.object({
  key: typed<ResourceKey>(z.string()),
  failures: z.number(),
  until: z.number(),
  code: z.string(),
  reason: z.string(),
  /** The entry of the key in the spec at that time. A key whose entry changes is tried at once. */
  basis: z.string(),
});

const history = z.object({
  condition: z.string(),
  conditionSince: z.number(),
  reconciliations: z.number(),
  /** Passes that died, in a row. */
  failures: z.number(),
  outcome: z.string(),
  endedAt: z.number(),
  blocked: z.number(),
  exposed: z.boolean().default(false),
  leaking: z.boolean().default(false),
  settledDigest: z.string().nullable(),
  waiting: z.array(z.string()),
  drifted: z.array(z.string()).default([]),
  idleSince: z.array(z.tuple([z.number(), z.number()])).default([]),
  exposedSince: z.array(z.tuple([z.string(), z.number()])).default([]),
  differsSince: z.number().nullable(),
  scarce: z.array(typed<ResourceKey>(z.string())),
});

const memory = z.object({
  /** The replica that made the last reconciliation. */
  replica: z.string(),
  /** A digest of the spec that the last reconciliation used. Empty if the spec could not be used. */
  spec: z.string().default(''),
  /** The time since which the project has been in this condition with this spec. Wall ms of the database. */
  since: z.number().default(0),
  /** When the last reconciliation ended. Wall ms of the database. */
  turnedAt: z.number().default(0),
  history,
  backOff: z.array(backOff),
  /** The last notifications that were sent, by subject. */
  notified: z.record(z.string(), z.string()),
  /** The digest of the spec to return to, and the valid spec that the daemon has returned from. */
  wayBack: z
    .object({
      kept: z.string().optional(),
      refused: z.object({ digest: z.string(), commit: z.string().optional(), reason: z.string() }).optional(),
    })
    .optional(),
});

/**
 * The results that one reconciliation of a project records for the next one, which another process may make: condition, failures, sent notifications. Wall times in ms of the project's clock. The data may be lost at
 * any time: the next refresh finds it again.
 */
export type ReconciliationMemory = z.infer<typeof memory>;

/** `undefined` if the note is missing, or if another release has written it. */
export function readMemory(note: unknown): ReconciliationMemory | undefined {
  return memory.safeParse(note).data;
}
