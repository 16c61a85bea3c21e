import { type Claim, type LiveObject, objectName } from '../core/claims.ts';
import { patched } from '../core/intent.ts';
import type { Json } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Verb } from '../core/plan.ts';
import type {
  Binding,
  Ended,
  Intent,
  IntentFilter,
  IntentPatch,
  JournalEntry,
  JournalFilter,
  StateChange,
  StateInfo,
  StateStore,
} from '../core/state.ts';
import {
  begun,
  begunEntry,
  changeEntry,
  closedEntry,
  ended,
  throughJson,
  updatedEntry,
  validTime,
} from './journal.ts';
import { type PastIntent, pastLine, pruning } from './prune.ts';
import type { Queries, Row } from './queries.ts';
import { bindingOf, claimOf, intentOf } from './records.ts';
import {
  checkPatch,
  isRecorded,
  refuseClosedStore,
  refuseOtherProject,
  refuseOtherService,
  refuseReadOnly,
  refuseSecondHolder,
  refuseSecondIntent,
  refuseUsedId,
  stillOpen,
} from './refusals.ts';
import { infoOf, journalEntryOf, noteOf } from './rows.ts';
import type { SqliteWriter } from './sqlite-writer.ts';

export interface SqliteStoreDeps {
  readonly queries: Queries;
  /** Left out: every change is rejected. */
  readonly writer?: SqliteWriter;
  /** Runs after the connection is closed. */
  readonly onClose?: () => void;
}

/**
 * The state in SQL. Which file, who may write it and when: `openSqliteState`.
 *
 * Between a check and the transaction it guards nothing is awaited, so calls made side by
 * side cannot come in between.
 */
export class SqliteStore implements StateStore {
  private readonly deps: SqliteStoreDeps;
  private closed = false;

  constructor(deps: SqliteStoreDeps) {
    this.deps = deps;
  }

  async info(): Promise<StateInfo> {
    return this.head();
  }

  async claimProject(projectId: number): Promise<void> {
    const writer = this.writer();
    if (isRecorded(this.head().projectId, projectId, refuseOtherProject)) return;
    writer.transaction(() => writer.run('UPDATE meta SET project_id = ?', projectId));
  }

  async claimService(service: string): Promise<void> {
    const writer = this.writer();
    if (isRecorded(this.head().service, service, refuseOtherService)) return;
    writer.transaction(() => writer.run('UPDATE meta SET service = ?', service));
  }

  async bindings(): Promise<readonly Binding[]> {
    return this.rows('SELECT key, body FROM claims WHERE key IS NOT NULL ORDER BY key').map(bindingOf);
  }

  async claims(): Promise<readonly Claim[]> {
    return this.rows('SELECT object, body FROM claims WHERE key IS NULL ORDER BY object').map(claimOf);
  }

  async incarnation(key: ResourceKey): Promise<number> {
    return Number(this.rows('SELECT gone FROM incarnations WHERE key = ?', key)[0]?.gone ?? 0);
  }

  async change(changes: readonly StateChange[], at: number): Promise<void> {
    const writer = this.writer();
    validTime(at, 'A change');
    const copies = throughJson(changes, 'A change');
    if (copies.length === 0) return;
    writer.transaction(() => this.apply(writer, copies, at));
  }

  async beginIntent(intent: Intent): Promise<void> {
    const writer = this.writer();
    const copy = begun(intent);
    if (this.find(copy.id) !== undefined) refuseUsedId(copy.id);
    const [open] = this.rows(`SELECT id, body FROM intents WHERE key = ? AND phase <> 'closed'`, copy.key);
    if (open !== undefined) refuseSecondIntent(intentOf(open), copy);
    writer.transaction(() => {
      writer.run('INSERT INTO intents (id, body) VALUES (?, ?)', copy.id, JSON.stringify(copy));
      this.append(writer, begunEntry(copy));
    });
  }

  async updateIntent(id: string, patch: IntentPatch, at: number, note?: Json): Promise<void> {
    const writer = this.writer();
    const intent = stillOpen(id, this.find(id));
    checkPatch(intent, patch);
    validTime(at, `The update of intent ${id}`);
    const copy = throughJson(patch, `The update of intent ${id}`);
    const line = throughJson(updatedEntry(intent, patch, at, note), `The update of intent ${id}`);
    writer.transaction(() => {
      this.put(writer, patched(intent, copy));
      this.append(writer, line);
    });
  }

  async closeIntent(id: string, how: Ended, changes: readonly StateChange[], at: number): Promise<void> {
    const writer = this.writer();
    const intent = stillOpen(id, this.find(id));
    validTime(at, `The end of intent ${id}`);
    const copies = throughJson(changes, `The end of intent ${id}`);
    writer.transaction(() => {
      this.put(writer, ended(intent, how, at));
      this.append(writer, closedEntry(intent, how, at));
      this.apply(writer, copies, at, intent);
    });
  }

  async openIntents(): Promise<readonly Intent[]> {
    return this.rows(`SELECT id, body FROM intents WHERE phase <> 'closed' ORDER BY seq`).map(intentOf);
  }

  async lastAttempt(key: ResourceKey, verb: Verb, incarnation: string): Promise<number> {
    const sql = `SELECT max(attempt) AS last FROM intents
      WHERE key = ? AND verb = ? AND incarnation = ? AND outcome IS NOT 'void'`;
    return Number(this.rows(sql, key, verb, incarnation)[0]?.last ?? -1);
  }

  async intents({ key, outcome, limit }: IntentFilter): Promise<readonly Intent[]> {
    const asked = key ?? outcome;
    const where = asked === undefined ? '' : `WHERE ${key === undefined ? 'outcome' : 'key'} = ?`;
    const sql = `SELECT id, body FROM intents ${where} ORDER BY seq DESC LIMIT ?`;
    return this.rows(sql, ...(asked === undefined ? [] : [asked]), limitOf(limit)).map(intentOf);
  }

  async journal(filter: JournalFilter): Promise<readonly JournalEntry[]> {
    const { key, event, limit } = filter;
    const asked = Object.entries({ key, event }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    const where = asked.length === 0 ? '' : `WHERE ${asked.map(([name]) => `${name} = ?`).join(' AND ')}`;
    const sql = `SELECT at, key, event, intent_id, data FROM journal ${where} ORDER BY seq DESC LIMIT ?`;
    const rows = this.rows(sql, ...asked.map(([, value]) => value), limitOf(limit));
    return rows.toReversed().map(journalEntryOf);
  }

  async prune(before: number): Promise<number> {
    const writer = this.writer();
    validTime(before, 'The moment to prune before');
    const past = this.rows(
      'SELECT id, key, verb, incarnation, attempt, phase, outcome FROM intents ORDER BY seq',
    );
    const all = this.rows('SELECT seq, at, key, event, intent_id, data FROM journal ORDER BY seq');
    const { intents, lines, detached } = pruning(
      past as unknown as readonly PastIntent[],
      all.map((row) => pastLine(Number(row.seq), journalEntryOf(row))),
      before,
    );
    if (intents.length + lines.length === 0) return 0;
    writer.transaction(() => {
      for (const seq of lines) writer.run('DELETE FROM journal WHERE seq = ?', seq);
      for (const seq of detached) writer.run('UPDATE journal SET intent_id = NULL WHERE seq = ?', seq);
      for (const id of intents) writer.run('DELETE FROM intents WHERE id = ?', id);
    });
    return lines.length;
  }

  async recordUse(bucket: string, at: number, since: number, count = 1): Promise<void> {
    const writer = this.writer();
    validTime(at, `A request of ${bucket}`);
    writer.transaction(() => {
      writer.run('DELETE FROM uses WHERE bucket = ? AND at < ?', bucket, since);
      for (let use = 0; use < count; use += 1)
        writer.run('INSERT INTO uses (bucket, at) VALUES (?, ?)', bucket, at);
    });
  }

  async recentUse(bucket: string, since: number): Promise<readonly number[]> {
    const rows = this.rows('SELECT at FROM uses WHERE bucket = ? AND at >= ? ORDER BY at', bucket, since);
    return rows.map(({ at }) => Number(at));
  }

  async note(name: string): Promise<Json | undefined> {
    const [row] = this.rows('SELECT value FROM notes WHERE name = ?', name);
    return noteOf(row);
  }

  async putNote(name: string, value: Json): Promise<void> {
    const writer = this.writer();
    const text = JSON.stringify(throughJson(value, `The note ${name}`));
    writer.transaction(() =>
      writer.run('INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)', name, text),
    );
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    try {
      this.deps.queries.close();
    } finally {
      this.deps.onClose?.();
    }
  }

  private head(): StateInfo {
    const [row = {}] = this.rows('SELECT lineage, serial, created_at, project_id, service FROM meta');
    return infoOf(row);
  }

  private apply(writer: SqliteWriter, changes: readonly StateChange[], at: number, intent?: Intent): void {
    for (const change of changes) {
      if (change.type === 'bind') {
        writer.run('DELETE FROM claims WHERE key = ?', change.binding.key);
        this.hold(writer, change.binding, change.binding.key);
      } else if (change.type === 'release') {
        writer.run('DELETE FROM claims WHERE key = ?', change.key);
      } else if (change.type === 'claim') {
        writer.run(unclaim, objectName(change.claim));
        this.hold(writer, change.claim, null);
      } else if (change.type === 'unclaim') {
        writer.run(unclaim, objectName(change.object));
      }
      if (change.type === 'next_incarnation' || (change.type === 'release' && change.gone)) {
        const sql = 'INSERT INTO incarnations VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET gone = gone + 1';
        writer.run(sql, change.key);
      }
      this.append(writer, changeEntry(change, at, intent));
    }
  }

  private hold(writer: SqliteWriter, body: LiveObject, key: ResourceKey | null): void {
    const object = objectName(body);
    const [holder] = this.rows('SELECT key FROM claims WHERE object = ?', object);
    if (holder !== undefined) refuseSecondHolder(object, holder.key as ResourceKey | null);
    const sql = 'INSERT INTO claims (object, key, body) VALUES (?, ?, ?)';
    writer.run(sql, object, key, JSON.stringify(body));
  }

  private append(writer: SqliteWriter, { at, key, event, intentId, data }: JournalEntry): void {
    const sql = 'INSERT INTO journal (at, key, event, intent_id, data) VALUES (?, ?, ?, ?, ?)';
    writer.run(sql, at, key, event, intentId ?? null, JSON.stringify(data));
  }

  private put(writer: SqliteWriter, intent: Intent): void {
    writer.run('UPDATE intents SET body = ? WHERE id = ?', JSON.stringify(intent), intent.id);
  }

  private find(id: string): Intent | undefined {
    return this.rows('SELECT id, body FROM intents WHERE id = ?', id).map(intentOf)[0];
  }

  private rows(sql: string, ...values: (string | number)[]): readonly Row[] {
    if (this.closed) refuseClosedStore();
    return this.deps.queries.all(sql, ...values);
  }

  private writer(): SqliteWriter {
    if (this.closed) refuseClosedStore();
    return this.deps.writer ?? refuseReadOnly();
  }
}

const unclaim = 'DELETE FROM claims WHERE object = ? AND key IS NULL';

/** SQL's "no limit" is -1; Infinity is no integer to it. */
function limitOf(limit: number): number {
  return Number.isFinite(limit) ? limit : -1;
}
