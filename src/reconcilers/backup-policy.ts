import equal from 'fast-deep-equal';
import { z } from 'zod';
import type { Json } from '../core/json.ts';
import { childKey, type ResourceKey } from '../core/keys.ts';
import type { Diff, ResourceKind, World } from '../core/kind.ts';
import type { Change } from '../core/plan.ts';
import type { BackupPolicy, ServerId } from '../core/resources.ts';
import { priceOfBackups } from './prices.ts';
import { doneIf, fromNothing, observeInside, serverOf, unchanged } from './verdicts.ts';

/** A server's backup schedule: compared and reported; written only if the profile enables the operation. */
type BackupPolicyEntry = Readonly<z.infer<typeof backupPolicySchema>>;

interface BackupPolicyObserved {
  readonly id: string | undefined;
  readonly live: BackupPolicy;
}

const fields = ['enabled', 'days', 'hour', 'minute', 'keep'] as const;

export const backupPolicySchema = z
  .strictObject({
    enabled: z.boolean().optional().describe('Whether the API takes backups by this schedule.'),
    days: z
      .array(z.enum(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']))
      .optional()
      .describe('Days of the backups.'),
    hour: z.int().min(0).max(23).optional().describe('Hour of the backups.'),
    minute: z.int().min(0).max(59).optional().describe('Minute of the backups.'),
    keep: z.int().min(1).optional().describe('Number of backups that the API keeps.'),
  })
  .describe(
    'The backup schedule of the API. To change it, vdcsync needs update_backup_policy in the API profile.',
  );

export const backupPolicy: ResourceKind<BackupPolicyEntry, BackupPolicyObserved> = {
  name: 'backup_policy',
  entry: { schema: backupPolicySchema },
  billing: {
    billed: false,
    priceNow: ({ parent }, observed, world) =>
      observed?.live.enabled === true && !hasBackupEntry(parent, world)
        ? priceOfBackups(parent, world)
        : undefined,
  },
  timing: { deadlineMs: 10 * 60_000, urgency: 1 },

  setting: true,

  observe: (read, subjects, idOf) =>
    observeInside(subjects, idOf, async (server, { desired }) => {
      const live = desired && (await read.findBackupPolicy(server));
      return live && { id: String(server), live };
    }),

  diff({ desired, key, binding, parent }, observed, world): Diff {
    if (desired === undefined) return unchanged;
    const writable = world.profile.operations.update_backup_policy !== undefined;
    const bill = (before: Partial<BackupPolicy>) => billOf(before, desired.value, parent, world);
    if (observed === undefined) {
      return writable
        ? { verdict: { verdict: 'create', changes: fromNothing({ ...desired.value }) }, ...bill({}) }
        : unchanged;
    }
    const changes = diffDeclared(desired.value, observed.live);
    if (changes.length === 0) return unchanged;
    if (writable) {
      const costs = bill(observed.live);
      if (binding === undefined && !observed.live.enabled)
        return { verdict: { verdict: 'create', changes }, ...costs };
      const applied = (binding?.applied ?? null) as BackupPolicyEntry | null;
      const moved = applied !== null && diffDeclared(applied, observed.live).length > 0;
      return { verdict: { verdict: 'update', changes, cause: moved ? 'drift' : 'file' }, ...costs };
    }
    const texts = changes.map(
      ({ path, from, to }) => `${path} is ${JSON.stringify(from)}, not ${JSON.stringify(to)}`,
    );
    const message = `${texts.join('; ')}. The API does not document how to change the schedule: change it in the client area, or enable \`update_backup_policy\` in the API profile`;
    return { ...unchanged, warnings: [{ code: 'backup_policy_differs', key, message }] };
  },

  writes: {
    request: ({ subject, observed, world }) => ({
      name: 'update_backup_policy',
      path: { server_id: serverOf(subject, world) },
      body: Object.fromEntries(
        fields.map((field) => [field, subject.desired?.value[field] ?? observed?.live[field]]),
      ) as Json,
    }),

    stale: ({ path }) => ({ server: path.server_id, inside: ['findBackupPolicy'] }),

    accept: (_answer, request) => ({ id: String(request.path.server_id) }),

    async evidence(intent, read) {
      const id = Number(intent.request.path.server_id) as ServerId;
      const live = await read.findBackupPolicy(id);
      const sent = intent.request.body as unknown as BackupPolicyEntry;
      return doneIf(live !== undefined && diffDeclared(sent, live).length === 0, id);
    },
  },

  bind: ({ request }) => ({ identity: {}, applied: request?.body ?? null, keep: false }),
};

/** Scheduled backups are billed like other backups, so more of them is new spending. @source API §1.5, §1.6 */
function billOf(
  before: Partial<BackupPolicy>,
  entry: BackupPolicyEntry,
  server: ResourceKey | undefined,
  world: World,
): Pick<Diff, 'price' | 'spend'> {
  const after = { ...before, ...entry };
  if (!after.enabled) return before.enabled ? { spend: 'reduces' } : {};
  if (before.enabled) {
    const size = ({ keep = 0, days = [] }: Pick<typeof after, 'keep' | 'days'>) =>
      [keep, days.length] as const;
    const [[keep, days], [keepBefore, daysBefore]] = [size(after), size(before)];
    return keep > keepBefore || days > daysBefore ? { spend: 'adds' } : {};
  }
  return {
    spend: 'adds',
    ...(hasBackupEntry(server, world) ? {} : { price: priceOfBackups(server, world) }),
  };
}

/** The `backup` entry has the price already: a packaged server has one price for all its backups. */
function hasBackupEntry(server: ResourceKey | undefined, world: World): boolean {
  return server !== undefined && world.subjects.get(childKey(server, 'backup'))?.desired !== undefined;
}

function diffDeclared(entry: BackupPolicyEntry, live: BackupPolicy): Change[] {
  return fields.flatMap((path) => {
    const [from, to] = [live[path], entry[path]];
    return to === undefined || equal(inOrder(from), inOrder(to)) ? [] : [{ path, from, to }];
  });
}

function inOrder(value: unknown): unknown {
  return Array.isArray(value) ? [...value].sort() : value;
}
