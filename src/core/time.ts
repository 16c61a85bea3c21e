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

/**
 * A wall time, in ms or in the form of the public JSON, as `2026-01-31 12:00:00 UTC`: the form in every text for an
 * operator.
 */
export function moment(at: number | string): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
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
