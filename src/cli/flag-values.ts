import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../core/duration.ts';

// Parsers of flags with a format. Any other text is a mistake in the call.

/** A duration, in ms. */
export function duration(text: string): number {
  const ms = parseDuration(text) ?? 0;
  if (ms > 0) return ms;
  throw new InvalidArgumentError('It must be a duration, such as 90s or 30m.');
}

/** A duration, or the least and the most, in ms. */
export function durationRange(text: string): readonly [least: number, most: number] {
  const parts = text.split('..').map((part) => parseDuration(part) ?? 0);
  const [least = 0, most = least] = parts;
  if (parts.length <= 2 && least > 0 && least <= most) return [least, most];
  throw new InvalidArgumentError('It must be a duration, such as 5m, or the least and the most: 1m..25m.');
}

export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number over 0.');
}
