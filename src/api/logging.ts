/** What the client needs of a logger. Messages are constant; values stand in the fields. */
export interface ApiLogger {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** For where nothing is to be logged. */
export const silent: ApiLogger = { debug: () => {}, warn: () => {} };
