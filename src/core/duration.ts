const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration as people write it: `90m`, `24h`, `1h30m`, `7d`. */
export const durationPattern = /^(\d+(ms|[smhd]))+$/;

/** Milliseconds, or `undefined` where the text is no duration. */
export function parseDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)(ms|[smhd])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitMs[unit ?? ''] ?? 0), 0);
}
