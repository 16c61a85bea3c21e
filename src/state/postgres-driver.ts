import type { PostgresConnection } from './postgres-connection.ts';
import type { PostgresWriter } from './postgres-writer.ts';
import { refuseClosedStore, refuseReadOnly } from './records.ts';
import type { Row, SqlDriver, SqlValue } from './sql-driver.ts';

export interface PostgresDriverDeps {
  readonly connection: PostgresConnection;
  /** The row of `vdcsync.states`. */
  readonly stateId: number;
  /** Left out: every change is rejected. */
  readonly owner?: PostgresWriter;
  /** Of a replica: whether its jobs were confirmed lately. */
  readonly isAlive?: () => boolean;
  /** Releases this state's part of the connection, if the connection still exists. Never rejects. */
  readonly close: () => Promise<void>;
}

/** A state in PostgreSQL. Which one, who may write it and when: `openPostgresState`. */
export class PostgresDriver implements SqlDriver {
  readonly owner?: PostgresWriter;
  readonly #deps: PostgresDriverDeps;
  /** Other states may be owned on the connection, which then stays open. */
  #closed = false;

  constructor(deps: PostgresDriverDeps) {
    this.#deps = deps;
    if (deps.owner !== undefined) this.owner = deps.owner;
  }

  isOpen(): boolean {
    return this.#deps.connection.isOpen();
  }

  isOwned(): boolean {
    const { connection, owner, isAlive } = this.#deps;
    return !this.#closed && connection.isOpen() && owner?.isFenced !== true && isAlive?.() !== false;
  }

  get lost(): AbortSignal {
    return this.#deps.connection.lost;
  }

  reading<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) refuseClosedStore();
    const { connection } = this.#deps;
    return connection.exclusive(() => connection.failingAs('be read', work));
  }

  writing(changes: () => Promise<void>): Promise<void> {
    return this.#writer((owner) => owner.transaction(changes));
  }

  writeNote(name: string, value: string): Promise<void> {
    const sql = `INSERT INTO vdcsync.notes (state_id, name, value) SELECT $1, $6, $7 FROM fence
      ON CONFLICT (state_id, name) DO UPDATE SET value = excluded.value`;
    return this.#writer((owner) => owner.change(sql, name, value));
  }

  run(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    const { connection, stateId } = this.#deps;
    return connection.query(sql, stateId, ...values);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#deps.close();
  }

  #writer(write: (owner: PostgresWriter) => Promise<void>): Promise<void> {
    const { connection, owner } = this.#deps;
    if (this.#closed) refuseClosedStore();
    if (owner === undefined) refuseReadOnly();
    return connection.exclusive(() => write(owner));
  }
}
