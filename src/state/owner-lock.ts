import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { pid } from 'node:process';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../core/clock.ts';
import { StateInUseError } from '../core/errors.ts';
import { moment } from '../core/time.ts';
import { codeOf, sqliteCode, stateFailure } from './sqlite-file.ts';

/** Who holds a state, as they wrote it down. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** Wall time in ms. */
  readonly since: number;
}

/** The wait for another owner. Without `clock`, a taken lock is an error at once. */
export interface OwnerLockOptions {
  /** Wall time in ms, for those who wait. */
  readonly now: number;
  /** How long to wait for another owner's end, in ms; needs `clock`. Default: 0. */
  readonly waitMs?: number;
  readonly clock?: Clock;
  /** Called once, when waiting begins. */
  readonly onWait?: (holder: LockHolder | undefined) => void;
}

/**
 * Makes this process the one owner of the state at `path`, until `release`.
 *
 * The lock is an exclusive transaction on a database of its own, `<path>.lock`. The system frees the lock when the
 * process dies for any reason, so no process ever steals the lock by a timer. (A lock on the state's own database
 * would shut out the readers.) The file stays behind: after its deletion, two processes could lock two files of the
 * same name.
 *
 * @throws StateInUseError naming the holder, if the lock is still taken after `waitMs`.
 */
export async function acquireOwnerLock(
  path: string,
  options: OwnerLockOptions,
): Promise<{ release(): void }> {
  const holder = async () => readHolder(path);
  const lock = await waitFor(path, options, holder, async () => tryLock(path));
  return owned(path, lock, options.now);
}

/**
 * Tries to take a lock until `waitMs` is over; `isLast` says that it is.
 *
 * @throws StateInUseError naming the holder
 */
export async function waitFor<Lock>(
  label: string,
  { waitMs = 0, clock, onWait }: OwnerLockOptions,
  holderNow: () => Promise<LockHolder | undefined>,
  take: (isLast: boolean) => Promise<Lock | undefined>,
): Promise<Lock> {
  const giveUpAt = clock === undefined ? 0 : clock.monotonic() + waitMs;
  for (let tries = 0; ; tries += 1) {
    const leftMs = clock === undefined ? 0 : giveUpAt - clock.monotonic();
    const isLast = clock === undefined || leftMs <= 0;
    const lock = await take(isLast);
    if (lock !== undefined) return lock;
    const holder = await holderNow();
    if (isLast) throw new StateInUseError(inUseText(label, holder));
    if (tries === 0) onWait?.(holder);
    await clock.sleep(Math.min(pollMs, leftMs));
  }
}

/** Time between two attempts. */
const pollMs = 250;

function tryLock(path: string): DatabaseSync | undefined {
  const file = `${path}.lock`;
  let db: DatabaseSync | undefined;
  try {
    createPrivate(file);
    db = new DatabaseSync(file, { timeout: 0 });
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db?.close();
    if (codeOf(error) === sqliteCode.busy) return undefined;
    throw stateFailure(error, file, 'be locked');
  }
}

function owned(path: string, lock: DatabaseSync, now: number): { release(): void } {
  const holder: LockHolder = { pid, host: hostname(), since: now };
  const file = holderFile(path);
  try {
    writeHolder(file, holder);
  } catch {
    // The file only improves the message of another process. The lock works without the file.
  }
  return {
    release() {
      if (!lock.isOpen) return;
      try {
        rmSync(file, { force: true });
      } catch {
        // A file that stays behind is harmless: it is only read while a process owns the lock, and that process has
        // replaced it.
      }
      lock.exec('ROLLBACK');
      lock.close();
    },
  };
}

/**
 * Writes the whole file or nothing, and never through a link: a user who can write the folder could put a link at this
 * name, and this process would overwrite the target of the link.
 */
function writeHolder(file: string, holder: LockHolder): void {
  const next = `${file}.next`;
  rmSync(next, { force: true });
  writeFileSync(next, `${JSON.stringify(holder)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(next, file);
}

/** Creates the file with access for this user only, if it does not exist. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function readHolder(path: string): LockHolder | undefined {
  try {
    const { pid, host, since } = JSON.parse(readFileSync(holderFile(path), 'utf8')) as Partial<LockHolder>;
    if (typeof pid !== 'number' || typeof host !== 'string' || typeof since !== 'number') return undefined;
    return { pid, host, since };
  } catch {
    return undefined;
  }
}

/** Not the lock file itself: reading and closing that file would drop this process's own locks on it. */
function holderFile(path: string): string {
  return `${path}.owner`;
}

/** The reason why a state cannot be owned now, with a remedy. `label`: the name of the state for messages. */
export function inUseText(label: string, holder: LockHolder | undefined): string {
  const who =
    holder === undefined
      ? 'another process'
      : `process ${holder.pid} on ${holder.host} since ${moment(holder.since)}`;
  return (
    `The state ${label} is in use by ${who}. Wait until it has ended, or stop it; ` +
    'the lock is freed when it ends. `plan` and `status` can read it meanwhile.'
  );
}
