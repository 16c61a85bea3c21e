import type { Claim } from '../core/claims.ts';
import { partsOf, patched } from '../core/intent.ts';
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
import { applyChange } from './postgres-changes.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { headColumns, type PostgresWriter } from './postgres-writer.ts';
import { type PastIntent, pastLine, pruning } from './prune.ts';
import type { Row } from './queries.ts';
import { bindingOf, claimOf, intentOf } from './records.ts';
import {
  checkPatch,
  isRecorded,
  refuseClosedStore,
  refuseOtherProject,
  refuseOtherService,
  refuseReadOnly,
  refuseSecondIntent,
  refuseUsedId,
  stillOpen,
} from './refusals.ts';
import { infoOf, journalEntryOf, noteOf } from './rows.ts';

export interface PostgresStoreDeps {
  readonly connection: PostgresConnection;
  /** The row of `vdcsync.states`. */
  readonly stateId: number;
  /** Left out: every change is rejected. */
  readonly writer?: PostgresWriter;
  /** Of a replica: whether its jobs were confirmed lately. */
  readonly isAlive?: () => boolean;
  /** Releases this state's part of the connection, if the connection still exists. Never rejects. */
  readonly close: () => Promise<void>;
}

/**
 * The state in PostgreSQL. Which one, who may write it and when: `openPostgresState`.
 *
 * Calls are carried out in the order in which they were made, each alone on the
 * connection; values are copied when the call is made, before anything is awaited.
 */
export class PostgresStore implements StateStore {
  private readonly deps: PostgresStoreDeps;
  /**
   * The rows that the owner has read. No other process changes them: the fence of the next write would detect it. Each
   * own write drops the rows when it is called.
   */
  private readonly known = new Map<string, Promise<readonly Row[]>>();
  private closed = false;

  constructor(deps: PostgresStoreDeps) {
    this.deps = deps;
    if (deps.writer !== undefined) this.known.set('head', Promise.resolve([deps.writer.head]));
  }

  isOwned(): boolean {
    const { connection, writer, isAlive } = this.deps;
    return !this.closed && connection.isOpen() && writer?.isFenced !== true && isAlive?.() !== false;
  }

  get lost(): AbortSignal {
    return this.deps.connection.lost;
  }

  async info(): Promise<StateInfo> {
    const [row = {}] = await this.knowing('head', `SELECT ${headColumns} FROM vdcsync.states WHERE id = $1`);
    const { writer, connection } = this.deps;
    if (writer === undefined) return infoOf(row);
    // In its turn, after the writes that were called before.
    return connection.exclusive(async () => ({ ...infoOf(row), serial: writer.lastSerial }));
  }

  async claimProject(projectId: number): Promise<void> {
    await this.claimOnce('project_id', (await this.info()).projectId, projectId, refuseOtherProject);
  }

  async claimService(service: string): Promise<void> {
    await this.claimOnce('service', (await this.info()).service, service, refuseOtherService);
  }

  async bindings(): Promise<readonly Binding[]> {
    return (await this.held()).filter(({ key }) => key !== null).map(bindingOf);
  }

  async claims(): Promise<readonly Claim[]> {
    return (await this.held()).filter(({ key }) => key === null).map(claimOf);
  }

  async incarnation(key: ResourceKey): Promise<number> {
    const sql = 'SELECT gone FROM vdcsync.incarnations WHERE state_id = $1 AND key = $2';
    return Number((await this.reading(() => this.run(sql, key)))[0]?.gone ?? 0);
  }

  async change(changes: readonly StateChange[], at: number): Promise<void> {
    this.writer();
    validTime(at, 'A change');
    const copies = throughJson(changes, 'A change');
    if (copies.length === 0) return;
    await this.writing(() => this.apply(copies, at));
  }

  async beginIntent(intent: Intent): Promise<void> {
    this.writer();
    const copy = begun(intent);
    await this.writing(async () => {
      if ((await this.find(copy.id)) !== undefined) refuseUsedId(copy.id);
      const [open] = await this.run(
        `SELECT id, body FROM vdcsync.intents WHERE state_id = $1 AND key = $2 AND phase <> 'closed'`,
        copy.key,
      );
      if (open !== undefined) refuseSecondIntent(intentOf(open), copy);
      const { id, key, verb, incarnation, attempt, phase } = copy;
      await this.run(
        `INSERT INTO vdcsync.intents (state_id, id, key, verb, incarnation, attempt, phase, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        ...[id, key, verb, incarnation, attempt, phase, JSON.stringify(copy)],
      );
      await this.append(begunEntry(copy));
    });
  }

  async updateIntent(id: string, patch: IntentPatch, at: number, note?: Json): Promise<void> {
    this.writer();
    const copy = throughJson(
      { patch, ...(note === undefined ? {} : { note }) },
      `The update of intent ${id}`,
    );
    await this.writing(async () => {
      const intent = stillOpen(id, await this.find(id));
      checkPatch(intent, copy.patch);
      validTime(at, `The update of intent ${id}`);
      await this.put(patched(intent, copy.patch));
      await this.append(updatedEntry(intent, copy.patch, at, copy.note));
    });
  }

  async closeIntent(id: string, how: Ended, changes: readonly StateChange[], at: number): Promise<void> {
    this.writer();
    const copies = throughJson(changes, `The end of intent ${id}`);
    await this.writing(async () => {
      const intent = stillOpen(id, await this.find(id));
      validTime(at, `The end of intent ${id}`);
      await this.put(ended(intent, how, at));
      await this.append(closedEntry(intent, how, at));
      await this.apply(copies, at, intent);
    });
  }

  async openIntents(): Promise<readonly Intent[]> {
    const sql = `SELECT id, body FROM vdcsync.intents WHERE state_id = $1 AND phase <> 'closed' ORDER BY seq`;
    return (await this.knowing('open intents', sql)).map(intentOf);
  }

  async lastAttempt(key: ResourceKey, verb: Verb, incarnation: string): Promise<number> {
    const sql = `SELECT max(attempt) AS last FROM vdcsync.intents
      WHERE state_id = $1 AND key = $2 AND verb = $3 AND incarnation = $4 AND outcome IS DISTINCT FROM 'void'`;
    return Number((await this.reading(() => this.run(sql, key, verb, incarnation)))[0]?.last ?? -1);
  }

  async intents(filter: IntentFilter): Promise<readonly Intent[]> {
    const { key, outcome, limit } = filter;
    const select = 'SELECT id, body FROM vdcsync.intents';
    const ended = outcome === undefined ? '' : ` AND outcome = '${outcome}'`;
    const most = Number.isFinite(limit) ? limit : 'ALL';
    const sql = `${select} WHERE state_id = $1${ended} ORDER BY seq DESC LIMIT ${most}`;
    const rows = await (key === undefined ? this.knowing(sql, sql) : this.newest(select, filter));
    return rows.map(intentOf);
  }

  async journal(filter: JournalFilter): Promise<readonly JournalEntry[]> {
    const rows = await this.newest('SELECT at, key, event, intent_id, data FROM vdcsync.journal', filter);
    return rows.toReversed().map(journalEntryOf);
  }

  async prune(before: number): Promise<number> {
    this.writer();
    validTime(before, 'The moment to prune before');
    const { intents, lines, detached } = await this.reading(async () => {
      const past = await this.run(
        'SELECT id, key, verb, incarnation, attempt, phase, outcome FROM vdcsync.intents WHERE state_id = $1 ORDER BY seq',
      );
      const all = await this.run(
        `SELECT seq, at, key, event, intent_id, CASE WHEN event IN ('released', 'note') THEN data ELSE '{}' END AS data
         FROM vdcsync.journal WHERE state_id = $1 ORDER BY seq`,
      );
      return pruning(
        past as unknown as readonly PastIntent[],
        all.map((row) => pastLine(Number(row.seq), journalEntryOf(row))),
        before,
      );
    });
    if (intents.length + lines.length === 0) return 0;
    await this.writing(async () => {
      const { connection, stateId } = this.deps;
      const each = (sql: string, values: readonly (string | number)[]) =>
        connection.query(sql, stateId, values.map(String));
      await each('DELETE FROM vdcsync.journal WHERE state_id = $1 AND seq = ANY($2::bigint[])', lines);
      await each(
        'UPDATE vdcsync.journal SET intent_id = NULL WHERE state_id = $1 AND seq = ANY($2::bigint[])',
        detached,
      );
      await each('DELETE FROM vdcsync.intents WHERE state_id = $1 AND id = ANY($2::text[])', intents);
    });
    return lines.length;
  }

  async recordUse(bucket: string, at: number, since: number, count = 1): Promise<void> {
    this.writer();
    validTime(at, `A request of ${bucket}`);
    await this.changing(
      `, old AS (DELETE FROM vdcsync.uses USING fence WHERE state_id = $1 AND bucket = $6 AND at < $8)
       INSERT INTO vdcsync.uses (state_id, bucket, at) SELECT $1, $6, $7 FROM fence, generate_series(1, $9::integer)`,
      () => [bucket, at, since, count],
    );
  }

  async recentUse(bucket: string, since: number): Promise<readonly number[]> {
    const sql = 'SELECT at FROM vdcsync.uses WHERE state_id = $1 AND bucket = $2 AND at >= $3 ORDER BY at';
    const rows = await this.reading(() => this.run(sql, bucket, since));
    return rows.map(({ at }) => Number(at));
  }

  async note(name: string): Promise<Json | undefined> {
    if (this.deps.writer === undefined) {
      const sql = 'SELECT value FROM vdcsync.notes WHERE state_id = $1 AND name = $2';
      return noteOf((await this.reading(() => this.run(sql, name)))[0]);
    }
    const all = await this.knowing('notes', 'SELECT name, value FROM vdcsync.notes WHERE state_id = $1');
    return noteOf(all.find((row) => row.name === name));
  }

  async putNote(name: string, value: Json): Promise<void> {
    this.writer();
    const text = JSON.stringify(throughJson(value, `The note ${name}`));
    const before = this.known.get('notes');
    const writing = this.changing(
      `INSERT INTO vdcsync.notes (state_id, name, value) SELECT $1, $6, $7 FROM fence
       ON CONFLICT (state_id, name) DO UPDATE SET value = excluded.value`,
      () => [name, text],
    );
    if (before !== undefined) {
      const others = Promise.all([before, writing]).then(([rows]) => rows.filter((row) => row.name !== name));
      this.remember(
        'notes',
        others.then((rows) => [...rows, { name, value: text }]),
      );
    }
    await writing;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.deps.close();
  }

  private newest(select: string, { key, event, limit: most }: JournalFilter) {
    // NULL is SQL's "no limit"; Infinity is no integer to it.
    const limit = Number.isFinite(most) ? most : null;
    const asked = Object.entries({ key, event }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    const also = asked.map(([name], at) => ` AND ${name} = $${at + 3}`).join('');
    const sql = `${select} WHERE state_id = $1${also} ORDER BY seq DESC LIMIT $2`;
    return this.reading(() => this.run(sql, limit, ...asked.map(([, value]) => value)));
  }

  /** Records a value of the head that never changes. `known` may be older than the row. */
  private async claimOnce<Value extends string | number>(
    column: 'project_id' | 'service',
    known: Value | null,
    value: Value,
    refuse: (recorded: Value, asked: Value) => never,
  ): Promise<void> {
    this.writer();
    if (isRecorded(known, value, refuse)) return;
    this.known.delete('head');
    await this.writing(async () => {
      const [row] = await this.run(`SELECT ${column} AS recorded FROM vdcsync.states WHERE id = $1`);
      if (row !== undefined && row.recorded !== null) refuse(row.recorded as Value, value);
      await this.run(`UPDATE vdcsync.states SET ${column} = $2 WHERE id = $1`, value);
    });
  }

  private async apply(changes: readonly StateChange[], at: number, intent?: Intent): Promise<void> {
    for (const change of changes) {
      await applyChange((sql, ...values) => this.run(sql, ...values), change);
      await this.append(changeEntry(change, at, intent));
    }
  }

  /** Bindings by key, then claims by object. */
  private held(): Promise<readonly Row[]> {
    return this.knowing(
      'claims',
      'SELECT key, object, body FROM vdcsync.claims WHERE state_id = $1 ORDER BY key, object',
    );
  }

  private async append({ at, key, event, intentId, data }: JournalEntry): Promise<void> {
    await this.run(
      `INSERT INTO vdcsync.journal (state_id, at, key, event, intent_id, data) VALUES ($1, $2, $3, $4, $5, $6)`,
      ...[at, key, event, intentId ?? null, JSON.stringify(data)],
    );
  }

  /** Updates only the columns that change: phase, outcome and body. */
  private async put(intent: Intent): Promise<void> {
    await this.run(
      'UPDATE vdcsync.intents SET phase = $3, outcome = $4, body = $5 WHERE state_id = $1 AND id = $2',
      ...[intent.id, intent.phase, partsOf(intent).outcome ?? null, JSON.stringify(intent)],
    );
  }

  private async find(id: string): Promise<Intent | undefined> {
    const rows = await this.run('SELECT id, body FROM vdcsync.intents WHERE state_id = $1 AND id = $2', id);
    return rows.map(intentOf)[0];
  }

  /** One statement about this state: `$1` is its id. */
  run(sql: string, ...values: readonly (string | number | null)[]): Promise<readonly Row[]> {
    return this.deps.connection.query(sql, this.deps.stateId, ...values);
  }

  reading<T>(work: () => Promise<T>): Promise<T> {
    if (this.closed) refuseClosedStore();
    const { connection } = this.deps;
    return connection.exclusive(() => connection.failingAs('be read', work));
  }

  /** Reads once, where this is the owner. */
  private knowing(what: string, sql: string): Promise<readonly Row[]> {
    if (this.closed) refuseClosedStore();
    const { writer, connection } = this.deps;
    const known = this.known.get(what);
    if (known !== undefined && connection.isOpen()) return known;
    const reading = this.reading(() => this.run(sql));
    if (writer !== undefined) this.remember(what, reading);
    return reading;
  }

  /** Until the next write of it, and where it could be read. */
  private remember(what: string, rows: Promise<readonly Row[]>): void {
    this.known.set(what, rows);
    rows.catch(() => this.known.get(what) === rows && this.known.delete(what));
  }

  /** One statement behind the fence, which needs no check. */
  private changing(sql: string, values: () => readonly (string | number)[]): Promise<void> {
    const writer = this.writer();
    return this.deps.connection.exclusive(() => writer.change(sql, ...values()));
  }

  /** Checks and changes in one transaction, behind the fence. */
  writing(work: () => Promise<void>): Promise<void> {
    const writer = this.writer();
    for (const what of this.known.keys()) if (what !== 'head' && what !== 'notes') this.known.delete(what);
    return this.deps.connection.exclusive(() => writer.transaction(work));
  }

  private writer(): PostgresWriter {
    if (this.closed) refuseClosedStore();
    return this.deps.writer ?? refuseReadOnly();
  }
}
