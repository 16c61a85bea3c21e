import { Cron } from 'croner';
import type { ChangeWindow, Desired, DesiredResource, ExpiredEntry, WindowVerb } from './desired.ts';
import type { ResourceKey } from './keys.ts';

/**
 * The calendar of a project: which changes are allowed at a moment, when the next window for them opens, and which
 * entries have expired. Pure: the moment is an argument, in wall ms. A window opens at the times of its cron expression
 * in its time zone, and stays open for its duration in elapsed time: a clock change makes no window longer or shorter.
 * If a clock change skips the time, the window opens when the skipped hour ends; if the time occurs twice, at the first
 * one.
 */

/**
 * When the verb is allowed: `open` now, from a moment on, or `never`, if no window allows the verb. Without windows,
 * every verb is always allowed.
 */
export type Opening = 'open' | 'never' | number;

export function openingFor(verb: WindowVerb, windows: readonly ChangeWindow[], now: number): Opening {
  if (windows.length === 0) return 'open';
  const allowing = windows.filter(({ allow }) => allow.includes(verb));
  if (allowing.some((window) => isOpen(window, now))) return 'open';
  const starts = allowing.flatMap((window) => startAfter(window, now) ?? []);
  return starts.length === 0 ? 'never' : Math.min(...starts);
}

/** The windows that are open, for a comparison of two moments. */
export function openWindows(windows: readonly ChangeWindow[], now: number): string {
  return windows.map((window) => (isOpen(window, now) ? '1' : '0')).join('');
}

/** A window is open from its start until its duration is over: at that moment it is closed. */
function isOpen(window: ChangeWindow, now: number): boolean {
  const start = startAfter(window, now - (parseDuration(window.duration) ?? 0));
  return start !== undefined && start <= now;
}

/** The first start later than the moment. */
function startAfter({ cron, timezone }: Pick<ChangeWindow, 'cron' | 'timezone'>, ms: number) {
  // The library counts in whole seconds.
  const second = Math.floor(ms / 1_000) * 1_000;
  return new Cron(cron, { timezone, paused: true }).nextRun(new Date(second))?.getTime();
}

/** The error in a cron expression of five fields, if there is one. `?` would be the time of the program's start. */
export function cronProblem(cron: string): string | undefined {
  const example = 'such as "0 2 * * 6" for Saturdays at 02:00';
  if (cron.trim().split(/\s+/).length !== 5 || cron.includes('?'))
    return `write the five fields of a cron expression, ${example}`;
  try {
    const never = startAfter({ cron, timezone: 'UTC' }, 0) === undefined;
    return never ? 'no day matches this cron expression, so the window would never open' : undefined;
  } catch {
    return `write a valid cron expression, ${example}`;
  }
}

/** Whether the text is an IANA name of a time zone that this machine knows. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return /^[A-Za-z]/.test(name);
  } catch {
    return false;
  }
}

/** The moment from which the spec no longer asks for the entry: the earlier one of its own and that of the project. */
export function expiryOf(
  entry: Pick<DesiredResource, 'expires'>,
  { expires }: { readonly expires?: string | undefined },
) {
  const [own, all] = [entry.expires, expires];
  const isOwn = own !== undefined && (all === undefined || Date.parse(own) <= Date.parse(all));
  const at = isOwn ? own : all;
  return at === undefined ? undefined : { at, of: isOwn ? ('entry' as const) : ('project' as const) };
}

/**
 * The spec at a moment: without the entries that have expired, as if they had left the file. Every plan and every write
 * comes from this spec.
 */
export function withoutExpired(desired: Desired, now: number): Desired {
  const own = new Map<ResourceKey, ExpiredEntry>();
  for (const entry of desired.resources) {
    const { key, parent, protect } = entry;
    const expiry = parent === undefined ? expiryOf(entry, desired) : undefined;
    if (expiry !== undefined && Date.parse(expiry.at) <= now) own.set(key, { key, protect, ...expiry });
  }
  if (own.size === 0) return desired;
  const resources = desired.resources.filter(({ key, parent = key }) => !own.has(parent));
  const expired = [...own.values()];
  const names = expired.map(({ key }) => key).join(' ');
  return { ...desired, resources, expired, digest: `${desired.digest} without ${names}` };
}

/** The moments at which the suspension or an entry ends, those in the past included. */
export function endsIn(desired: Desired | undefined): readonly number[] {
  const { resources = [], expires, settings } = desired ?? {};
  const ends = [expires, settings?.suspend?.until, ...resources.map((each) => each.expires)];
  return ends.flatMap((at) => (at === undefined ? [] : [Date.parse(at)]));
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration in common notation: `90m`, `24h`, `1h30m`, `7d`. */
export const durationPattern = /^(\d+(ms|[smhd]))+$/;

/** In common notation: one day is `24h`, and longer durations are in days if the number of days is whole. */
export function writtenDuration(ms: number): string {
  const unit = (['d', 'h', 'm', 's'] as const).find((each) => {
    const size = unitMs[each] ?? 1;
    return ms % size === 0 && (each !== 'd' || ms > size);
  });
  return unit === undefined ? `${ms}ms` : `${ms / (unitMs[unit] ?? 1)}${unit}`;
}

/** Milliseconds, or `undefined` where the text is no duration. */
export function parseDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)(ms|[smhd])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitMs[unit ?? ''] ?? 0), 0);
}

/** Wall time in ms as `2026-01-31 12:00:00 UTC`: the form in every text for an operator. */
export function moment(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Wall time in ms as `12:04:30 UTC`, for a time within the next hours. */
export function timeOfDay(ms: number): string {
  return moment(ms).slice('2026-01-31 '.length);
}

/** A calendar month in UTC: the first moment, and the first moment after it, in ms. */
export interface Month {
  /** `2026-11` */
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** The month of a text such as `2026-11`; `undefined` for any other text. */
export function monthOf(text: string): Month | undefined {
  return /^\d{4}-(0[1-9]|1[0-2])$/.test(text) ? monthAt(Date.parse(text)) : undefined;
}

/** The month that contains a moment, in UTC. */
export function monthAt(ms: number): Month {
  const date = new Date(ms);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return {
    name: date.toISOString().slice(0, 7),
    from: Date.UTC(year, month),
    to: Date.UTC(year, month + 1),
  };
}
