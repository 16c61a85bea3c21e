/** A moment in the public JSON. */
export function time(ms: number): string {
  return new Date(ms).toISOString();
}

export function timeOrNull(ms: number | null | undefined): string | null {
  return ms === undefined || ms === null || !Number.isFinite(ms) ? null : time(ms);
}
