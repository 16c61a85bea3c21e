import { z } from 'zod';
import { durationPattern, parseDuration } from '../core/duration.ts';
import type { Json } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, Price, ResourceKind, World } from '../core/kind.ts';
import type { Backup, BackupPolicy, ServerId } from '../core/resources.ts';
import type { Binding } from '../core/state.ts';
import { idIn, recordedIds, unchanged } from './existence.ts';
import { packageOf } from './gpu-package.ts';

/**
 * Taken when the newest available backup is older than `max_age`. Each is billed and a
 * resource of its own; there is no task, so the list is polled until it is available.
 */
export interface BackupEntry {
  /** Milliseconds. */
  readonly max_age: number;
}

interface BackupObserved {
  readonly id: string | undefined;
  readonly backups: readonly Backup[];
}

export const backup: ResourceKind<BackupEntry, BackupObserved> = {
  name: 'backup',
  placement: { of: 'servers', field: 'backup' },
  schema: z.strictObject({
    max_age: z
      .string()
      .regex(durationPattern, 'a duration is written like 90m, 24h or 7d')
      .describe('Take one when the newest available one is older: 90m, 24h, 7d.'),
  }),
  neededToCreate: [],
  billed: true,
  deadlineMs: 6 * 3_600_000,
  repeats: true,
  urgency: 3,

  children: (field) => [
    { suffix: 'backup', value: { max_age: parseDuration((field as { max_age: string }).max_age) }, path: [] },
  ],
  check: ({ max_age }) =>
    max_age > 0
      ? []
      : [
          {
            path: ['max_age'],
            message: '`max_age` must be longer than nothing: every pass would buy a backup',
          },
        ],
  references: () => [],

  async observe(read, subjects, idOf) {
    const seen = await Promise.all(
      subjects.map(async ({ key, parent, desired }) => {
        const server = parent === undefined ? undefined : idOf(parent);
        if (server === undefined || desired === undefined) return undefined;
        const backups = await read.findBackups(Number(server) as ServerId);
        return backups && ([key, { id: newest(backups)?.id, backups }] as const);
      }),
    );
    return new Map(seen.filter((each) => each !== undefined));
  },

  diff({ desired, key, parent, binding }, observed, world): Diff {
    if (desired === undefined || !desired.managed) return unchanged;
    const wanted = { path: 'max_age', from: null, to: `${desired.value.max_age / 1000}s` };
    const price = priceOf(parent, observed?.backups ?? [], world);
    if (observed === undefined) return { verdict: { verdict: 'create', changes: [wanted] }, price };
    const last = newest(observed.backups);
    const doubt = inDoubt(observed.backups, desired.value.max_age, world.apiNow);
    const ageMs = last === undefined ? undefined : ageOf(last, binding, world.apiNow);
    if (ageMs !== undefined && ageMs <= desired.value.max_age) return unchanged;
    if (doubt !== undefined) return { ...unchanged, warnings: [{ ...doubt, key }] };
    const newestAt = { path: 'newest', from: last?.created_at ?? null, to: 'now' };
    return { verdict: { verdict: 'create', changes: [newestAt] }, price };
  },

  priceNow({ parent }, observed, world) {
    if (observed === undefined || observed.backups.length === 0) return undefined;
    const flat =
      parent === undefined ? undefined : packageOf(world.subjects.get(parent), world)?.backup_price;
    return flat == null ? { unknown: 'the price of backups depends on their size' } : { known: flat };
  },

  write: ({ subject, world }) => ({
    name: 'take_backup',
    path: { server_id: Number(subject.parent && world.idOf(subject.parent)) },
  }),

  async preimage({ subject, observed, world }, read) {
    const server = Number(subject.parent && world.idOf(subject.parent)) as ServerId;
    const policy = await read.findBackupPolicy(server);
    return {
      backups: (observed?.backups ?? []).map(({ id }) => id),
      policy: (policy as unknown as Json) ?? null,
    };
  },

  accept: (answer) => {
    const id = idIn(answer.data);
    return id === undefined ? {} : { id };
  },

  async evidence(intent, read) {
    const server = Number(intent.request.path.server_id) as ServerId;
    const backups = (await read.findBackups(server)) ?? [];
    if (intent.resourceId !== undefined) {
      const own = backups.find(({ id }) => id === intent.resourceId);
      return own === undefined ? { verdict: 'not_done' } : judge(own);
    }
    const before = recordedIds(intent.preimage, 'backups');
    const fresh = backups.filter(({ id }) => !before.has(id));
    const [one, another] = fresh;
    if (one === undefined) return { verdict: 'not_done' };
    const policy = (intent.preimage as { readonly policy: BackupPolicy | null }).policy;
    if (another !== undefined || policy?.enabled) {
      const reason = policy?.enabled
        ? 'a backup has come since, which may be the scheduled one'
        : `${fresh.length} backups have come since`;
      return { verdict: 'unclear', reason, candidates: fresh.map(({ id }) => id) };
    }
    return { verdict: 'done', id: one.id, certain: false };
  },

  bind: () => ({ identity: {}, applied: null, keep: false }),
};

/**
 * Without a `Date` header both clocks may be a day apart, and a backup just taken would look
 * old in every pass: one of ours is no older than the time since it was bound. @assumption A35
 */
function ageOf(last: Backup, binding: Binding | undefined, apiNow: number): number {
  const ageMs = apiNow - takenAt(last);
  return binding?.id === last.id ? Math.min(ageMs, Math.max(0, apiNow - binding.boundAt)) : ageMs;
}

function newest(backups: readonly Backup[]): Backup | undefined {
  return backups
    .filter((each) => each.status === 'available' && !Number.isNaN(takenAt(each)))
    .sort((a, b) => takenAt(b) - takenAt(a))[0];
}

/** The id is the moment itself, where the stamp cannot be read; NaN where neither can. @source API §2 */
function takenAt({ created_at, id }: Backup): number {
  const stamp = moment(created_at);
  return Number.isNaN(stamp) ? moment(id) : stamp;
}

/** Stricter than `Date.parse` alone, which finds a date in almost anything. */
function moment(text: string): number {
  return /^\d{4}-\d\d-\d\d[T ]/.test(text) ? Date.parse(text) : Number.NaN;
}

/** Each backup is billed, so none is taken beside one that may be about to count. Other statuses are not shown. */
function inDoubt(backups: readonly Backup[], maxAgeMs: number, apiNow: number) {
  if (backups.some(({ status }) => status === 'creating')) {
    return { code: 'backup_creating', message: 'a backup is being taken' };
  }
  const odd = backups.find((each) => {
    const age = apiNow - takenAt(each);
    return Number.isNaN(age) || (each.status !== 'available' && age <= maxAgeMs);
  });
  if (odd === undefined) return undefined;
  const message = `backup ${odd.id} has status ${odd.status} and was taken at ${odd.created_at}: no other is taken beside it`;
  return { code: 'backup_unclear', message };
}

/** Flat for a server in a package, however many there are; by size else. @source API §1.5 */
function priceOf(server: ResourceKey | undefined, backups: readonly Backup[], world: World): Price {
  const flat = server === undefined ? undefined : packageOf(world.subjects.get(server), world)?.backup_price;
  if (flat == null) return { unknown: 'the price of a backup depends on its size' };
  return { known: backups.length > 0 ? '0' : flat };
}

function judge(own: Backup) {
  if (own.status === 'available') return { verdict: 'done', id: own.id, certain: true } as const;
  if (own.status === 'creating') return { verdict: 'pending', id: own.id } as const;
  return { verdict: 'failed', id: own.id, detail: `its status is ${own.status}` } as const;
}
