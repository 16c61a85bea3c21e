import { z } from 'zod';
import { durationPattern } from '../../core/duration.ts';
import type { Backup } from '../../core/resources.ts';

/**
 * Taken when the newest available backup is older than `max_age`. Each is billed and a
 * resource of its own; there is no task, so the list is polled until it is available.
 */
export type BackupEntry = {
  /** A duration as in the spec, such as `24h`. */
  readonly max_age: string;
  /** Those that vdcsync took itself; all of them where left out. */
  readonly keep?: number;
};

export interface BackupObserved {
  readonly id: string | undefined;
  readonly backups: readonly Backup[];
}

export const backupSchema = z
  .strictObject({
    max_age: z
      .string('a duration is written like 90m, 24h or 7d')
      .regex(durationPattern, 'a duration is written like 90m, 24h or 7d')
      .describe(
        'vdcsync takes a backup if the newest available backup is older than this time, such as 90m, 24h or 7d.',
      ),
    keep: z
      .int()
      .min(1)
      .optional()
      .describe(
        'Number of its own backups that vdcsync keeps, if the API profile has delete_backup. Backups from before you set keep stay, except the newest of them.',
      ),
  })
  .describe('Backups that vdcsync takes.');
