import { type Claim, type LiveObject, objectName } from '../core/claims.ts';
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
import { type PastIntent, pastLine, pruning } from './prune.ts';
import {
  begun,
  begunEntry,
  bindingIn,
  changeEntry,
  checkPatch,
  claimIn,
  closedEntry,
  ended,
  headColumns,
  infoOf,
  intentIn,
  journalEntryOf,
  noteOf,
  openIntent,
  refuseClosedStore,
  refuseOtherProject,
  refuseOtherService,
  refuseReadOnly,
  refuseSecondHolder,
  refuseSecondIntent,
  refuseUsedId,
  throughJson,
  updatedEntry,
  validTime,
} from './records.ts';
import type { Row, SqlDriver, SqlOwner, SqlValue } from './sql-driver.ts';

/** More rows than a state has: SQL has no infinite number. */
const all = 2 ** 31;
/** So many rows are removed by one statement. */
const atOnce = 200;
/** So many intents are read together. */
const few = 100;

/**
 * The state in a database. Which one, who may write it and when: `openSqliteState`, `openPostgresState`.
 *
 * Calls are carried out in the order in which they were made; values are copied when the call is made, before anything
 * is awaited.
 */
export class SqlStore implements StateStore {
  readonly #driver: SqlDriver;
  /**
   * The rows that the owner has read. No other process changes them: the fence of the next write would detect it. Each
   * own write drops the rows when it is called.
   */
  readonly #known = new Map<string, Promise<readonly Row[]>>();
  #closed = false;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
    if (driver.owner !== undefined) this.#known.set('head', Promise.resolve([driver.owner.head]));
  }

  isOwned(): boolean {
    return !this.#closed && this.#driver.isOwned?.() !== false;
  }

  get lost(): AbortSignal | undefined {
    return this.#driver.lost;
  }

  async info(): Promise<StateInfo> {
    const [row = {}] = await this.#knowing('head', `SELECT ${headColumns} FROM vdcsync.states WHERE id = $1`);
    const { owner } = this.#driver;
    if (owner === undefined) return infoOf(row);
    // In its turn, after the writes that were called before.
    return this.#driver.reading(async () => ({ ...infoOf(row), serial: owner.serial }));
  }

  async claimProject(projectId: number): Promise<void> {
    await this.#claimOnce('project_id', (await this.info()).projectId, projectId, refuseOtherProject);
  }

  async claimService(service: string): Promise<void> {
    await this.#claimOnce('service', (await this.info()).service, service, refuseOtherService);
  }

  async bindings(): Promise<readonly Binding[]> {
    return (await this.#held()).filter(({ key }) => key !== null).map(bindingIn);
  }

  async claims(): Promise<readonly Claim[]> {
    return (await this.#held()).filter(({ key }) => key === null).map(claimIn);
  }

  async incarnation(key: ResourceKey): Promise<number> {
    const sql = 'SELECT gone FROM vdcsync.incarnations WHERE state_id = $1 AND key = $2';
    return Number((await this.#read(() => this.#run(sql, key)))[0]?.gone ?? 0);
  }

  async change(changes: readonly StateChange[], at: number): Promise<void> {
    this.#checkWritable();
    validTime(at, 'A change');
    const copies = throughJson(changes, 'A change');
    if (copies.length === 0) return;
    await this.#write(() => this.#apply(copies, at));
  }

  async beginIntent(intent: Intent): Promise<void> {
    this.#checkWritable();
    const copy = begun(intent);
    await this.#write(async () => {
      if ((await this.#find(copy.id)) !== undefined) refuseUsedId(copy.id);
      const [open] = await this.#run(
        `SELECT id, body FROM vdcsync.intents WHERE state_id = $1 AND key = $2 AND phase <> 'closed'`,
        copy.key,
      );
      if (open !== undefined) refuseSecondIntent(intentIn(open), copy);
      const { id, key, verb, incarnation, attempt, phase } = copy;
      await this.#run(
        `INSERT INTO vdcsync.intents (state_id, id, key, verb, incarnation, attempt, phase, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        ...[id, key, verb, incarnation, attempt, phase, JSON.stringify(copy)],
      );
      await this.#append(begunEntry(copy));
    });
  }

  async updateIntent(id: string, patch: IntentPatch, at: number, note?: Json): Promise<void> {
    this.#checkWritable();
    const copy = throughJson(
      { patch, ...(note === undefined ? {} : { note }) },
      `The update of intent ${id}`,
    );
    await this.#write(async () => {
      const intent = openIntent(id, await this.#find(id));
      checkPatch(intent, copy.patch);
      validTime(at, `The update of intent ${id}`);
      await this.#put(patched(intent, copy.patch));
      await this.#append(updatedEntry(intent, copy.patch, at, copy.note));
    });
  }

  async closeIntent(id: string, how: Ended, changes: readonly StateChange[], at: number): Promise<void> {
    this.#checkWritable();
    const copies = throughJson(changes, `The end of intent ${id}`);
    await this.#write(async () => {
      const intent = openIntent(id, await this.#find(id));
      validTime(at, `The end of intent ${id}`);
      await this.#put(ended(intent, how, at));
      await this.#append(closedEntry(intent, how, at));
      await this.#apply(copies, at, intent);
    });
  }

  async openIntents(): Promise<readonly Intent[]> {
    const newest = await this.#newestIntents();
    const sql = `SELECT id, body FROM vdcsync.intents WHERE state_id = $1 AND phase <> 'closed' ORDER BY seq`;
    const rows =
      newest.length < few
        ? newest.filter(({ phase }) => phase !== 'closed').toReversed()
        : await this.#knowing('open intents', sql);
    return rows.map(intentIn);
  }

  async lastAttempt(key: ResourceKey, verb: Verb, incarnation: string): Promise<number> {
    const sql = `SELECT max(attempt) AS last FROM vdcsync.intents
      WHERE state_id = $1 AND key = $2 AND verb = $3 AND incarnation = $4 AND outcome IS DISTINCT FROM 'void'`;
    return Number((await this.#read(() => this.#run(sql, key, verb, incarnation)))[0]?.last ?? -1);
  }

  async intents(filter: IntentFilter): Promise<readonly Intent[]> {
    const { key, outcome, limit } = filter;
    const select = 'SELECT id, body FROM vdcsync.intents';
    if (key !== undefined) return (await this.#newest(select, filter)).map(intentIn);
    const newest = await this.#newestIntents();
    const found = newest.filter((row) => outcome === undefined || row.outcome === outcome);
    const isAll = newest.length < few || found.length >= limit;
    const ended = outcome === undefined ? '' : ` AND outcome = '${outcome}'`;
    const sql = `${select} WHERE state_id = $1${ended} ORDER BY seq DESC LIMIT ${Math.min(limit, all)}`;
    return (isAll ? found.slice(0, limit) : await this.#knowing(sql, sql)).map(intentIn);
  }

  /** Most states have no other ones: one statement then answers every question of a run that changes nothing. */
  #newestIntents(): Promise<readonly Row[]> {
    const sql = `SELECT id, phase, outcome, body FROM vdcsync.intents WHERE state_id = $1 ORDER BY seq DESC LIMIT ${few}`;
    return this.#knowing('newest intents', sql);
  }

  async journal(filter: JournalFilter): Promise<readonly JournalEntry[]> {
    const rows = await this.#newest('SELECT at, key, event, intent_id, data FROM vdcsync.journal', filter);
    return rows.toReversed().map(journalEntryOf);
  }

  async prune(before: number): Promise<number> {
    this.#checkWritable();
    validTime(before, 'The moment to prune before');
    const { intents, lines, detached } = await this.#driver.reading(async () => {
      const past = await this.#run(
        'SELECT id, key, verb, incarnation, attempt, phase, outcome FROM vdcsync.intents WHERE state_id = $1 ORDER BY seq',
      );
      const all = await this.#run(
        `SELECT seq, at, key, event, intent_id, CASE WHEN event IN ('released', 'note') THEN data ELSE '{}' END AS data
         FROM vdcsync.journal WHERE state_id = $1 ORDER BY seq`,
      );
      return pruning(past as unknown as readonly PastIntent[], all.map(pastLine), before);
    });
    if (intents.length + lines.length === 0) return 0;
    await this.#write(async () => {
      const each = async (sql: string, values: readonly SqlValue[]) => {
        for (let at = 0; at < values.length; at += atOnce) {
          const some = values.slice(at, at + atOnce);
          const list = some.map((_, index) => `$${index + 2}`).join(', ');
          await this.#run(`${sql} IN (${list})`, ...some);
        }
      };
      await each('DELETE FROM vdcsync.journal WHERE state_id = $1 AND seq', lines);
      await each('UPDATE vdcsync.journal SET intent_id = NULL WHERE state_id = $1 AND seq', detached);
      await each('DELETE FROM vdcsync.intents WHERE state_id = $1 AND id', intents);
    });
    return lines.length;
  }

  async note(name: string): Promise<Json | undefined> {
    if (this.#driver.owner === undefined) {
      const sql = 'SELECT value FROM vdcsync.notes WHERE state_id = $1 AND name = $2';
      return noteOf((await this.#read(() => this.#run(sql, name)))[0]);
    }
    const all = await this.#knowing('notes', 'SELECT name, value FROM vdcsync.notes WHERE state_id = $1');
    return noteOf(all.find((row) => row.name === name));
  }

  async putNote(name: string, value: Json): Promise<void> {
    const owner = this.#checkWritable();
    const text = JSON.stringify(throughJson(value, `The note ${name}`));
    const before = this.#known.get('notes');
    const writing = owner.writeNote(name, text);
    if (before !== undefined) {
      const others = Promise.all([before, writing]).then(([rows]) => rows.filter((row) => row.name !== name));
      this.#remember(
        'notes',
        others.then((rows) => [...rows, { name, value: text }]),
      );
    }
    await writing;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#driver.close();
  }

  #newest(select: string, { key, event, limit }: JournalFilter) {
    const asked = Object.entries({ key, event }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    const also = asked.map(([name], at) => ` AND ${name} = $${at + 3}`).join('');
    const sql = `${select} WHERE state_id = $1${also} ORDER BY seq DESC LIMIT $2`;
    return this.#read(() => this.#run(sql, Math.min(limit, all), ...asked.map(([, value]) => value)));
  }

  /** Records a value of the head that never changes. `known` may be older than the row. */
  async #claimOnce<Value extends string | number>(
    column: 'project_id' | 'service',
    known: Value | null,
    value: Value,
    refuse: (recorded: Value, asked: Value) => never,
  ): Promise<void> {
    this.#checkWritable();
    if (known !== null && known !== value) refuse(known, value);
    if (known === value) return;
    this.#known.delete('head');
    await this.#write(async () => {
      const [row] = await this.#run(`SELECT ${column} AS recorded FROM vdcsync.states WHERE id = $1`);
      if (row !== undefined && row.recorded !== null) refuse(row.recorded as Value, value);
      await this.#run(`UPDATE vdcsync.states SET ${column} = $2 WHERE id = $1`, value);
    });
  }

  async #apply(changes: readonly StateChange[], at: number, intent?: Intent): Promise<void> {
    for (const change of changes) {
      if (change.type === 'bind') {
        await this.#run(release, change.binding.key);
        await this.#hold(change.binding, change.binding.key);
      } else if (change.type === 'release') {
        await this.#run(release, change.key);
      } else if (change.type === 'claim') {
        await this.#run(unclaim, objectName(change.claim));
        await this.#hold(change.claim, null);
      } else if (change.type === 'unclaim') {
        await this.#run(unclaim, objectName(change.object));
      }
      if (change.type === 'next_incarnation' || (change.type === 'release' && change.gone)) {
        await this.#run(nextIncarnation, change.key);
      }
      await this.#append(changeEntry(change, at, intent));
    }
  }

  async #hold(body: LiveObject, key: ResourceKey | null): Promise<void> {
    const object = objectName(body);
    const [holder] = await this.#run(
      'SELECT key FROM vdcsync.claims WHERE state_id = $1 AND object = $2',
      object,
    );
    if (holder !== undefined) refuseSecondHolder(object, holder.key as ResourceKey | null);
    await this.#run(
      'INSERT INTO vdcsync.claims (state_id, object, key, body) VALUES ($1, $2, $3, $4)',
      ...[object, key, JSON.stringify(body)],
    );
  }

  /** Bindings by key, then claims by object. */
  #held(): Promise<readonly Row[]> {
    return this.#knowing(
      'claims',
      'SELECT key, object, body FROM vdcsync.claims WHERE state_id = $1 ORDER BY key, object',
    );
  }

  async #append({ at, key, event, intentId, data }: JournalEntry): Promise<void> {
    await this.#run(
      `INSERT INTO vdcsync.journal (state_id, at, key, event, intent_id, data) VALUES ($1, $2, $3, $4, $5, $6)`,
      ...[at, key, event, intentId ?? null, JSON.stringify(data)],
    );
  }

  /** Updates only the columns that change: phase, outcome and body. */
  async #put(intent: Intent): Promise<void> {
    await this.#run(
      'UPDATE vdcsync.intents SET phase = $3, outcome = $4, body = $5 WHERE state_id = $1 AND id = $2',
      ...[intent.id, intent.phase, partsOf(intent).outcome ?? null, JSON.stringify(intent)],
    );
  }

  async #find(id: string): Promise<Intent | undefined> {
    const rows = await this.#run('SELECT id, body FROM vdcsync.intents WHERE state_id = $1 AND id = $2', id);
    return rows.map(intentIn)[0];
  }

  #run(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#driver.run(sql, ...values);
  }

  #read<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) refuseClosedStore();
    return this.#driver.reading(work);
  }

  /** Reads once, where this is the owner. */
  #knowing(what: string, sql: string): Promise<readonly Row[]> {
    if (this.#closed) refuseClosedStore();
    const known = this.#known.get(what);
    if (known !== undefined && this.#driver.isOpen?.() !== false) return known;
    const reading = this.#read(() => this.#run(sql));
    if (this.#driver.owner !== undefined) this.#remember(what, reading);
    return reading;
  }

  /** Until the next write of it, and where it could be read. */
  #remember(what: string, rows: Promise<readonly Row[]>): void {
    this.#known.set(what, rows);
    rows.catch(() => this.#known.get(what) === rows && this.#known.delete(what));
  }

  /** Checks and changes in one transaction, behind the fence. */
  #write(work: () => Promise<void>): Promise<void> {
    const owner = this.#checkWritable();
    for (const what of this.#known.keys()) if (what !== 'head' && what !== 'notes') this.#known.delete(what);
    return owner.writing(work);
  }

  #checkWritable(): SqlOwner {
    if (this.#closed) refuseClosedStore();
    return this.#driver.owner ?? refuseReadOnly();
  }
}

const release = 'DELETE FROM vdcsync.claims WHERE state_id = $1 AND key = $2';
const unclaim = 'DELETE FROM vdcsync.claims WHERE state_id = $1 AND object = $2 AND key IS NULL';
const nextIncarnation = `INSERT INTO vdcsync.incarnations AS known (state_id, key, gone) VALUES ($1, $2, 1)
  ON CONFLICT (state_id, key) DO UPDATE SET gone = known.gone + 1`;
