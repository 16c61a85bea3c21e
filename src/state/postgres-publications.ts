import type { Publications, PublishedFor, PublishedSpec, WaitingChange, WaitingSpec } from '../core/fleet.ts';
import type { Json } from '../core/json.ts';
import type { OpenPostgresOptions } from './postgres.ts';
import { openPostgresDriver } from './postgres.ts';
import type { PostgresDriver } from './postgres-driver.ts';
import type { Row } from './sql-driver.ts';
import { SqlStore } from './sql-store.ts';

const columns = 'name, project, body';

/**
 * Opens the state of a fleet, to publish or to read; `undefined` where there is nothing to be read yet.
 *
 * @throws StateError as `openPostgresState` does.
 */
export async function openPublications(
  url: string,
  options: OpenPostgresOptions,
): Promise<PostgresPublications | undefined> {
  const driver = await openPostgresDriver(url, options);
  return driver && new PostgresPublications(driver);
}

/** The specs that a fleet has published: one row each, with the serial of the state at its last change. */
export class PostgresPublications implements Publications {
  readonly #driver: PostgresDriver;
  readonly #store: SqlStore;

  constructor(driver: PostgresDriver) {
    this.#driver = driver;
    this.#store = new SqlStore(driver);
  }

  isOwned(): boolean {
    return this.#driver.isOwned();
  }

  /** The version of the last publication, and its head. `undefined` if there was no publication. */
  async publication(): Promise<{ readonly version: number; readonly head: Json } | undefined> {
    const [row] = await this.#read(
      `SELECT value FROM vdcsync.notes WHERE state_id = $1 AND name = 'publication'`,
    );
    return row && JSON.parse(String(row.value));
  }

  /** The specs that changed after one version, and up to another. */
  async published(after: number, upTo: number): Promise<readonly PublishedSpec[]> {
    const sql = `SELECT ${columns} FROM vdcsync.specs WHERE state_id = $1 AND version > $2 AND version <= $3`;
    return (await this.#read(sql, after, upTo)).map(publishedSpec);
  }

  /** The spec of one project, with the commit in force. */
  async publishedFor(project: number): Promise<PublishedFor | undefined> {
    const sql = `SELECT version, body, (SELECT value::json #>> '{head,commit}' FROM vdcsync.notes n
        WHERE n.state_id = $1 AND n.name = 'publication') AS commit
      FROM vdcsync.specs WHERE state_id = $1 AND project = $2 AND body IS NOT NULL`;
    const [row] = await this.#read(sql, project);
    if (row === undefined) return undefined;
    const { version, commit, body } = row;
    return { version: Number(version), body: String(body), commit: commit === null ? null : String(commit) };
  }

  /** The projects that have a spec. */
  async projects(): Promise<readonly number[]> {
    const sql = `SELECT project FROM vdcsync.specs
      WHERE state_id = $1 AND project IS NOT NULL AND body IS NOT NULL ORDER BY project`;
    return (await this.#read(sql)).map(({ project }) => Number(project));
  }

  /** Those of the projects whose spec has another version. */
  async changed(versions: ReadonlyMap<number, number>): Promise<readonly number[]> {
    const sql = `SELECT project FROM vdcsync.specs
      JOIN json_each_text($2::json) AS known (id, known) ON project = id::bigint AND version <> known::bigint
      WHERE state_id = $1`;
    const known = JSON.stringify(Object.fromEntries(versions));
    return (await this.#read(sql, known)).map(({ project }) => Number(project));
  }

  /** The version up to which the projects of changed specs were asked to reconcile. */
  async asked(): Promise<number> {
    return Number((await this.#store.note('asked')) ?? 0);
  }

  /** Only for the owner. */
  setAsked(version: number): Promise<void> {
    return this.#store.putNote('asked', version);
  }

  /** The specs that projects wait for. */
  async waiting(): Promise<readonly WaitingSpec[]> {
    const sql =
      'SELECT project, rollout, body FROM vdcsync.waiting_specs WHERE state_id = $1 ORDER BY project';
    return (await this.#read(sql)).map(({ project, rollout, body }) => {
      return {
        project: Number(project),
        rollout: String(rollout),
        body: body === null ? null : String(body),
      };
    });
  }

  /**
   * Publishes these specs in addition to the earlier ones, and changes the specs that projects wait for, all at once.
   * Returns the version. Only for the owner.
   */
  async publish(specs: readonly PublishedSpec[], head: Json, { put, gone }: WaitingChange): Promise<number> {
    let version = 0;
    await this.#driver.writing(async () => {
      await this.#driver.run(
        `INSERT INTO vdcsync.specs (state_id, name, version, project, body)
         SELECT id, spec ->> 'name', serial, (spec ->> 'project')::bigint, spec ->> 'body'
         FROM vdcsync.states, json_array_elements($2::json) AS spec WHERE id = $1
         ON CONFLICT (state_id, name) DO UPDATE SET version = excluded.version, project = excluded.project, body = excluded.body`,
        JSON.stringify(specs),
      );
      if (put.length + gone.length > 0)
        await this.#driver.run(
          `WITH gone AS (
             DELETE FROM vdcsync.waiting_specs WHERE state_id = $1
               AND project IN (SELECT value::bigint FROM json_array_elements_text($3::json)))
           INSERT INTO vdcsync.waiting_specs (state_id, project, rollout, body)
           SELECT $1, (spec ->> 'project')::bigint, spec ->> 'rollout', spec ->> 'body'
           FROM json_array_elements($2::json) AS spec
           ON CONFLICT (state_id, project) DO UPDATE SET rollout = excluded.rollout, body = excluded.body`,
          JSON.stringify(put),
          JSON.stringify(gone),
        );
      const [row] = await this.#driver.run(
        `INSERT INTO vdcsync.notes (state_id, name, value)
         SELECT id, 'publication', json_build_object('version', serial, 'head', $2::json)::text FROM vdcsync.states WHERE id = $1
         ON CONFLICT (state_id, name) DO UPDATE SET value = excluded.value
         RETURNING value::json ->> 'version' AS version`,
        JSON.stringify(head),
      );
      version = Number(row?.version);
    });
    return version;
  }

  close(): Promise<void> {
    return this.#driver.close();
  }

  #read(sql: string, ...values: readonly (number | string)[]): Promise<readonly Row[]> {
    return this.#driver.reading(() => this.#driver.run(sql, ...values));
  }
}

function publishedSpec({ name, project, body }: Row): PublishedSpec {
  return {
    name: String(name),
    project: project === null ? null : Number(project),
    body: body === null ? null : String(body),
  };
}
