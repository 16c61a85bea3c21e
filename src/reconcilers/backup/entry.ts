import { z } from 'zod';
import { durationPattern } from '../../core/duration.ts';
import type { Backup } from '../../core/resources.ts';

/**
 * Taken when the newest available backup is older than `max_age`. Each is billed and a
 * resource of its own; there is no task, so the list is polled until it is available.
 */
export interface BackupEntry {
  /** Milliseconds. */
  readonly max_age: number;
  /** Those that vdcsync took itself; all of them where left out. */
  readonly keep?: number;
}

export interface BackupObserved {
  readonly id: string | undefined;
  readonly backups: readonly Backup[];
}

export const backupSchema = z.strictObject({
  max_age: z
    .string()
    .regex(durationPattern, 'a duration is written like 90m, 24h or 7d')
    .describe('Take one when the newest available one is older: 90m, 24h, 7d.'),
  keep: z
    .int()
    .min(1)
    .optional()
    .describe(
      'How many of those that vdcsync took stay; the oldest others are deleted where the API profile knows how. Counted from when it is written.',
    ),
});
