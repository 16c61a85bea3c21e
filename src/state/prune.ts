import type { ResourceKey } from '../core/keys.ts';
import type { JournalEntry, RecordedWrite } from '../core/state.ts';
import { journalEntryOf } from './records.ts';
import type { Row } from './sql-driver.ts';

/** The facts about an intent that pruning needs. */
export interface PastIntent extends Pick<RecordedWrite, 'id' | 'key' | 'verb' | 'incarnation' | 'attempt'> {
  readonly phase: string;
  readonly outcome: string | null;
}

/** The facts about a line of the journal that pruning needs. */
type PastLine = ReturnType<typeof pastLine>;

/** A stored line of the journal: `data` is needed of releases and notes alone. */
export function pastLine({ seq, ...row }: Row) {
  const { data, ...line } = journalEntryOf(row);
  const { gone, incarnation } = data as { readonly gone?: unknown; readonly incarnation?: unknown };
  const { event } = line;
  // Whether it counts an incarnation.
  const counts = (event === 'released' && gone === true) || (event === 'note' && incarnation === 'next');
  return { ...line, seq: Number(seq), counts };
}

/**
 * The part of the past that a state does not need any more: intents that closed before a moment, with their lines, and
 * bindings and claims that have ended or were replaced by then, and older proofs. Both lists come oldest first, and whole.
 *
 * The following stay at any age: open intents; for each key and verb the last intent that was done, which records how
 * a live resource was made; the last attempt under a key's last incarnation, which decides the next idempotency key;
 * every line that counts an incarnation. So a replay of the remaining journal gives the same bindings, claims,
 * incarnations and open intents.
 */
export function pruning(intents: readonly PastIntent[], lines: readonly PastLine[], before: number) {
  const gone = goneIntents(intents, lines, before);
  const lastOfKey = new Map<ResourceKey, number>();
  for (const { key, event, seq } of lines) if (begins(event) || ends(event)) lastOfKey.set(key, seq);
  const dropped: number[] = [];
  // Lines that stay without their intents.
  const detached: number[] = [];
  const held = new Set<ResourceKey>();
  for (const line of lines) {
    const isOrphan = line.intentId !== undefined && gone.has(line.intentId);
    const isUseless = begins(line.event)
      ? lastOfKey.get(line.key) !== line.seq && line.at < before
      : ends(line.event)
        ? !line.counts && !held.has(line.key) && line.at < before
        : line.event === 'proof'
          ? line.at < before
          : isOrphan && !line.counts;
    if (isUseless) dropped.push(line.seq);
    else if (isOrphan) detached.push(line.seq);
    if (begins(line.event) && !isUseless) held.add(line.key);
    if (ends(line.event) && !isUseless) held.delete(line.key);
  }
  return { intents: [...gone], lines: dropped, detached };
}

function goneIntents(
  intents: readonly PastIntent[],
  lines: readonly PastLine[],
  before: number,
): ReadonlySet<string> {
  const closed = new Set(
    lines.filter(({ event, at }) => event === 'closed' && at < before).map(({ intentId }) => intentId),
  );
  const lastIncarnation = new Map(intents.map(({ key, incarnation }) => [key, incarnation]));
  const kept = new Map<string, string>();
  const attempts = new Map<string, number>();
  for (const { id, key, verb, incarnation, attempt, outcome } of intents) {
    if (outcome === 'done') kept.set(`done ${verb} ${key}`, id);
    const isLast = incarnation === lastIncarnation.get(key) && outcome !== 'void';
    const of = `attempt ${verb} ${key}`;
    if (!isLast || attempt < (attempts.get(of) ?? -1)) continue;
    attempts.set(of, attempt);
    kept.set(of, id);
  }
  const stays = new Set(kept.values());
  return new Set(
    intents
      .filter(({ id, phase }) => phase === 'closed' && closed.has(id) && !stays.has(id))
      .map(({ id }) => id),
  );
}

function begins(event: JournalEntry['event']): boolean {
  return event === 'bound' || event === 'claimed';
}

function ends(event: JournalEntry['event']): boolean {
  return event === 'released' || event === 'unclaimed';
}
