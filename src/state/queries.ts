import type { SQLInputValue } from 'node:sqlite';

export type Row = Readonly<Record<string, unknown>>;

/** Reads rows, through any kind of connection. */
export interface Queries {
  /** All rows of a statement. Rejected statements throw `StateError`. */
  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[];
  close(): void;
}
