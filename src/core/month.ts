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
