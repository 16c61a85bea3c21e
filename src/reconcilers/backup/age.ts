import type { Backup } from '../../core/resources.ts';

/** When it was taken, ms. The id is the moment itself, where the stamp cannot be read; NaN where neither can. @source API §2 */
export function takenAt({ created_at, id }: Pick<Backup, 'created_at' | 'id'>): number {
  const stamp = moment(created_at);
  return Number.isNaN(stamp) ? moment(id) : stamp;
}

/** Stricter than `Date.parse` alone, which finds a date in almost anything. */
function moment(text: string): number {
  return /^\d{4}-\d\d-\d\d[T ]/.test(text) ? Date.parse(text) : Number.NaN;
}
