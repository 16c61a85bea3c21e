/** A span in words: `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d${hours % 24 === 0 ? '' : ` ${hours % 24} h`}`;
}

export function ago(ms: number): string {
  return `${span(ms)} ago`;
}

export function ahead(ms: number): string {
  return ms <= 0 ? 'now' : `in ${span(ms)}`;
}
