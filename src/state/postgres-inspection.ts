import type { LockHolder } from './owner-lock.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { lockClass, schemaVersion } from './postgres-migrations.ts';
import { parsePostgresUrl } from './postgres-url.ts';
import { noteOf } from './records.ts';
import type { Row } from './sql-driver.ts';

/** Reads the states of a database from outside, on one connection. Changes nothing and takes no lock. */
export class PostgresInspection {
  readonly #url: string;
  #connection: Promise<PostgresConnection> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /**
   * All states of projects in the database, or those of these names, each with the note of this name.
   *
   * @throws StateError where the server cannot be reached or used. The next call opens another connection.
   */
  async states({
    note,
    names,
  }: {
    readonly note?: string;
    readonly names?: readonly string[] | undefined;
  }): Promise<readonly ReturnType<typeof inspected>[]> {
    const opening = this.#connection ?? PostgresConnection.open(parsePostgresUrl(this.#url), 'read');
    this.#connection = opening;
    try {
      const connection = await opening;
      return await connection.exclusive(() =>
        connection.failingAs('be read', async () => {
          if ((await schemaVersion(connection)) === 'missing') return [];
          return (await connection.query(states, lockClass, note ?? null, names ?? null)).map(inspected);
        }),
      );
    } catch (error) {
      if (this.#connection === opening) this.#connection = undefined;
      await opening.then((connection) => connection.close()).catch(() => undefined);
      throw error;
    }
  }

  async close(): Promise<void> {
    const opening = this.#connection;
    this.#connection = undefined;
    await opening?.then((connection) => connection.close()).catch(() => undefined);
  }
}

/**
 * All states with their owners. The row of an owner counts only while the server shows that the owner's lock exists.
 */
const states = `
  SELECT s.name, s.project_id, s.service, l.pid AS backend, o.pid, o.host, o.since, n.value
  FROM vdcsync.states s
  LEFT JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted
    AND l.classid = $1::bigint::oid AND l.objid = s.id::bigint::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  LEFT JOIN vdcsync.owners o ON o.state_id = s.id
  LEFT JOIN vdcsync.notes n ON n.state_id = s.id AND n.name = $2
  WHERE s.project_id IS NOT NULL AND ($3::text[] IS NULL OR s.name = ANY($3::text[]))
  ORDER BY s.name`;

/** One of the states in a database, from outside. */
function inspected({ name, project_id: projectId, service, backend, value, ...row }: Row) {
  const { pid, host, since } = row;
  const holder: LockHolder = { pid: Number(pid), host: String(host), since: Number(since) };
  return {
    name: String(name),
    projectId: Number(projectId),
    service: service === null ? null : String(service),
    /** Who owns it at this moment. */
    owner: backend === null || pid === null ? undefined : holder,
    note: noteOf(value === null ? undefined : { value }),
  };
}
