/** The logger that the client needs. Messages are constant; the fields hold the values. */
export interface ApiLogger {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** A logger that logs nothing. */
export const silent: ApiLogger = { debug: () => {}, warn: () => {} };
