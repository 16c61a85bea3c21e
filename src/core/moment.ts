/** Wall time in ms as `2026-01-31 12:00:00 UTC`: the form in every text for an operator. */
export function moment(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Wall time in ms as `12:04:30 UTC`, for a time within the next hours. */
export function timeOfDay(ms: number): string {
  return moment(ms).slice('2026-01-31 '.length);
}
