import type { ProjectSession } from '../ports.ts';

const noteName = 'pruned';
/** Between two prunings, in ms of the project's clock. */
const dayMs = 24 * 3_600_000;

/** Once a day, deletes intents and journal lines that ended longer ago than `keepMs` and that no other part needs. */
export async function pruneHistory(
  { store, clock }: Pick<ProjectSession, 'store' | 'clock'>,
  keepMs: number,
): Promise<void> {
  const now = clock.now();
  const last = await store.note(noteName);
  if (typeof last === 'number' && now - last < dayMs && last <= now) return;
  await store.prune(now - keepMs);
  await store.putNote(noteName, now);
}
