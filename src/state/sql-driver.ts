/** One row of an answer, by its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A value that SQLite and PostgreSQL store alike. JSON is stored as text. */
export type SqlValue = string | number | null;

/**
 * One state in a database, for one process. Pieces of work are carried out one after the other, in the order of the
 * calls. Statements are in the words that SQLite and PostgreSQL share; `$1` is the id of the state.
 */
export interface SqlDriver {
  /** `undefined`: the state is open for reading only. */
  readonly owner: SqlOwner | undefined;
  /** Whether no end of the connection is known. Left out: there is no connection that could end. */
  isOpen?(): boolean;
  /** See `StateStore`. */
  isOwned?(): boolean;
  readonly lost?: AbortSignal;
  /** @throws StateError if the state cannot be read */
  reading<T>(work: () => Promise<T>): Promise<T>;
  /** One statement. Only inside `reading` and `writing`. */
  run(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** The part of the owner. */
export interface SqlOwner {
  /** The row of the state when it was opened. */
  readonly head: Row;
  /** Counts every change that this owner has made. */
  readonly serial: number;
  /**
   * Makes the changes as one durable change, or none of them.
   *
   * @throws StateError if they could not be made durable, or if another process has written since
   */
  writing(changes: () => Promise<void>): Promise<void>;
  /** The same for the value of a note, as one statement. */
  writeNote(name: string, value: string): Promise<void>;
}
