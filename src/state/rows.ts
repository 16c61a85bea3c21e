import type { Json } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { JournalEntry, StateInfo } from '../core/state.ts';
import type { Row } from './sql-driver.ts';

/** Of `states`. */
export const headColumns = 'lineage, serial, created_at, project_id, service';

/** The values in a row of either database, in the types of the program. */
export function infoOf(row: Row): StateInfo {
  return {
    lineage: String(row.lineage),
    serial: Number(row.serial),
    createdAt: Number(row.created_at),
    projectId: row.project_id === null ? null : Number(row.project_id),
    service: row.service === null ? null : String(row.service),
  };
}

export function journalEntryOf({ at, key, event, intent_id: intentId, data }: Row): JournalEntry {
  return {
    at: Number(at),
    key: String(key) as ResourceKey,
    event: String(event) as JournalEntry['event'],
    ...(intentId === null ? {} : { intentId: String(intentId) }),
    data: JSON.parse(String(data)) as Json,
  };
}

/** A note's value; `undefined` where there is no row. */
export function noteOf(row: Row | undefined): Json | undefined {
  return row === undefined ? undefined : (JSON.parse(String(row.value)) as Json);
}
