import { Cron } from 'croner';
import type { ChangeWindow, WindowVerb } from './desired.ts';
import { parseDuration } from './time.ts';

/**
 * The calendar of a project: which changes are allowed at a moment, and when the next window for them opens. Pure: the
 * moment is an argument, in wall ms. A window opens at the times of its cron expression
 * in its time zone, and stays open for its duration in elapsed time: a clock change makes no window longer or shorter.
 * If a clock change skips the time, the window opens when the skipped hour ends; if the time occurs twice, at the first
 * one.
 */

/**
 * When the verb is allowed: `open` now, from a moment on, or `never`, if no window allows the verb. Without windows,
 * every verb is always allowed.
 */
export type Opening = 'open' | 'never' | number;

/** @param now wall time in ms. An opening in the future is the earliest start of a window that allows the verb. */
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
