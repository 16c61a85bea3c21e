/** RFC 3339 with an offset; a moment without one would mean another instant on another machine. */
export const momentPattern =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** Whether the text is a moment of a day that exists: `Date` would silently read 30 February as 2 March. */
export function isRealMoment(text: string): boolean {
  const parts = momentPattern.exec(text);
  if (parts === null) return false;
  const [year, month, day] = parts.slice(1, 4).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
