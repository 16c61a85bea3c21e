import type { SentWrite } from '../core/evidence.ts';
import { sentByApi } from '../core/intent.ts';
import { given } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, Price, ResourceKind, Subject, World } from '../core/kind.ts';
import type { Preimage } from '../core/preimage.ts';
import type { Backup, BackupPolicy, ServerId } from '../core/resources.ts';
import type { Binding } from '../core/state.ts';
import { parseDuration } from '../core/time.ts';
import {
  type BackupEntry,
  type BackupObserved,
  backupSchema,
  copyOf,
  diffCopy,
  isCopy,
  keptWarnings,
  makesRoom,
  takenAt,
} from './backup/copies.ts';
import { flatPrice, packageOf, priceBySize, priceOfBackups } from './prices.ts';
import {
  done,
  doneIf,
  fromNothing,
  idIn,
  notDone,
  observeInside,
  recordedIds,
  serverOf,
  unchanged,
  unclear,
} from './verdicts.ts';

interface BackupBefore extends Preimage {
  /** The schedule, which may take a backup at the same time. */
  readonly policy?: BackupPolicy | null;
}

const leastUsualAgeMs = 3_600_000;

export const backup: ResourceKind<BackupEntry, BackupObserved, BackupBefore> = {
  name: 'backup',
  entry: {
    schema: backupSchema,
    children: (field) => [{ suffix: 'backup', value: field as BackupEntry, path: [] }],
    cautions: (entry) => {
      const message = `with \`max_age: ${entry.max_age}\`, vdcsync takes more than one backup an hour, and each backup is billed`;
      const isUnusual = maxAgeMs(entry) > 0 && maxAgeMs(entry) < leastUsualAgeMs;
      return isUnusual ? [{ path: ['max_age'], message }] : [];
    },
    check: (entry) => {
      const message = '`max_age` must be more than 0: otherwise every reconciliation buys a backup';
      return maxAgeMs(entry) > 0 ? [] : [{ path: ['max_age'], message }];
    },
  },
  billing: {
    billed: true,
    recordedPrice(_binding, prices, server) {
      const flat = packageOf(server && { binding: server }, prices)?.backup_price;
      return flat == null ? priceBySize : { known: flat };
    },
    /** Reported once per server. */
    priceNow(subject, observed, world) {
      if (isCopy(subject) || observed === undefined || observed.backups.length === 0) return undefined;
      return priceOfBackups(subject.parent, world);
    },
  },
  timing: { deadlineMs: 6 * 3_600_000, urgency: 3 },

  observe: (read, subjects, idOf) =>
    observeInside(subjects, idOf, async (server, subject) => {
      const { desired, binding } = subject;
      const copy = isCopy(subject);
      if (desired === undefined && !copy) return undefined;
      const backups = await read.findBackups(server);
      const own = copy ? backups?.find(({ id }) => id === binding?.id) : newest(backups ?? []);
      return backups && { id: own?.id, backups };
    }),

  diff(subject, observed, world): Diff {
    if (isCopy(subject)) return diffCopy(subject, observed, world);
    const diff = diffNewest(subject, observed, world);
    const kept = observed === undefined ? [] : keptWarnings(subject, observed, world);
    return kept.length === 0 ? diff : { ...diff, warnings: [...(diff.warnings ?? []), ...kept] };
  },

  writes: {
    request({ subject, operation, world }) {
      const server_id = serverOf(subject, world);
      return operation.verb === 'delete'
        ? { name: 'delete_backup', path: { server_id, id: operation.target ?? '' } }
        : { name: 'take_backup', path: { server_id } };
    },

    stale: ({ path }) => ({ server: path.server_id, inside: ['findBackups'] }),

    async preimage({ subject, operation, observed, world }, read) {
      if (operation.verb === 'delete') return {};
      const policy = await read.findBackupPolicy(serverOf(subject, world));
      return { backups: (observed?.backups ?? []).map(({ id }) => id), policy: policy ?? null };
    },

    accept: (answer) => given({ id: idIn(answer.data) }),

    async evidence(intent, read) {
      const server = Number(intent.request.path.server_id) as ServerId;
      const listed = await read.findBackups(server);
      if (intent.verb === 'delete') {
        const id = String(intent.request.path.id);
        // For a server that is gone the list is empty, even if backups exist. @assumption A42
        return doneIf(listed?.every((each) => each.id !== id) === true, id);
      }
      const backups = listed ?? [];
      const made = intent.answer?.id;
      if (made !== undefined) {
        const own = backups.find(({ id }) => id === made);
        return own === undefined ? notDone : judge(own);
      }
      const before = recordedIds(intent.preimage.backups);
      const fresh = backups.filter((each) => !before.has(each.id) && isInWindow(each, intent));
      const [one, another] = fresh;
      if (one === undefined) return notDone;
      const { policy = null } = intent.preimage;
      if (another !== undefined || mayBeScheduled(one, policy)) {
        const reason =
          another === undefined
            ? 'a new backup exists, but it may be a scheduled backup'
            : `${fresh.length} new backups exist`;
        return unclear(reason, fresh);
      }
      return judge(one);
    },
  },

  bind: () => ({ identity: {}, applied: null, keep: false }),

  creation: {
    companions({ subject, id }) {
      const copy = copyOf(subject, id);
      return copy === undefined ? [] : [copy];
    },
  },
};

/** The longest time after the last send at which a backup of that send may be dated, by the API's clock, in ms. */
const windowMs = 15 * 60_000;

/**
 * Whether the write can have produced the backup: the backup is not younger than the last possible execution.
 * @assumption A35
 */
function isInWindow(backup: Backup, sent: SentWrite): boolean {
  const { firstSentAt, lastSentAt } = sent;
  return takenAt(backup) <= sentByApi(sent) + Math.max(0, lastSentAt - firstSentAt) + windowMs;
}

/** Whether the schedule was due when the backup was taken, or the policy does not show its next run. */
function mayBeScheduled(backup: Backup, policy: BackupPolicy | null): boolean {
  if (policy?.enabled !== true) return false;
  return policy.next_run === null || takenAt(backup) >= Date.parse(policy.next_run);
}

function diffNewest(
  { desired, key, parent, binding }: Subject<BackupEntry>,
  observed: BackupObserved | undefined,
  world: World,
): Diff {
  if (desired === undefined || !desired.managed) return unchanged;
  const { max_age, keep } = desired.value;
  const mostMs = maxAgeMs(desired.value);
  const wanted = fromNothing({ max_age, keep });
  const price = priceOf(parent, observed?.backups ?? [], world);
  if (observed === undefined) return { verdict: { verdict: 'create', changes: wanted }, price };
  const last = newest(observed.backups);
  const warning = unconfirmed(observed.backups, mostMs, world.apiNow);
  const ageMs = last === undefined ? undefined : world.apiNow - takenAt(last);
  if (ageMs !== undefined && ageMs <= mostMs) return unchanged;
  if (warning !== undefined) return { ...unchanged, warnings: [{ ...warning, key }] };
  const young = isYoung(binding, mostMs, world.now);
  const listed = observed.backups.some(({ id }) => id === binding?.id);
  if (young && (listed || isYoung(binding, listsLagMs, world.now))) return unchanged;
  const cause =
    last === undefined ? 'there is no backup yet' : `the newest backup is older than max_age ${max_age}`;
  const newestAt = { path: 'due', from: last?.created_at ?? null, to: cause };
  const lost = young ? { lost: `backup ${binding?.id} no longer exists` } : {};
  const goes = parent === undefined ? [] : makesRoom(parent, observed, world);
  return { verdict: { verdict: 'create', changes: [newestAt, ...goes], ...lost }, price };
}

function maxAgeMs({ max_age }: BackupEntry): number {
  return parseDuration(max_age) ?? 0;
}

/** For this time a list may lack a backup that exists. @assumption A9 */
const listsLagMs = 2 * 60_000;

/**
 * Whether the last own backup is young enough by the local clock, counted from its binding. The stamps and the clock
 * of the API may be wrong, and would then cause a purchase at every reconciliation. @assumption A35
 */
function isYoung(binding: Binding | undefined, mostMs: number, now: number): boolean {
  if (binding === undefined) return false;
  const ageMs = now - binding.boundAt;
  return ageMs >= 0 && ageMs <= mostMs;
}

function newest(backups: readonly Backup[]): Backup | undefined {
  return backups
    .filter((each) => each.status === 'available' && !Number.isNaN(takenAt(each)))
    .sort((a, b) => takenAt(b) - takenAt(a))[0];
}

/**
 * Each backup is billed, so no backup is taken while another one may become valid. Other statuses are not documented.
 */
function unconfirmed(backups: readonly Backup[], mostMs: number, apiNow: number) {
  if (backups.some(({ status }) => status === 'creating')) {
    return { code: 'backup_creating' as const, message: 'a backup is being taken' };
  }
  const odd = backups.find((each) => {
    const age = apiNow - takenAt(each);
    return Number.isNaN(age) || (each.status !== 'available' && age <= mostMs);
  });
  if (odd === undefined) return undefined;
  const message = `backup ${odd.id} has status ${odd.status} and was taken at ${odd.created_at}: vdcsync takes no further backup until that is clear`;
  return { code: 'backup_unclear' as const, message };
}

/** One price for all backups of a server in a package; by size otherwise. @source API §1.5 */
function priceOf(server: ResourceKey | undefined, backups: readonly Backup[], world: World): Price {
  const flat = flatPrice(server, world);
  if (flat === undefined) return priceBySize;
  return { known: backups.length > 0 ? '0' : flat };
}

function judge(own: Backup) {
  if (own.status === 'available') return done(own.id);
  if (own.status === 'creating') return { verdict: 'pending', id: own.id } as const;
  return { verdict: 'failed', id: own.id, detail: `its status is ${own.status}` } as const;
}
