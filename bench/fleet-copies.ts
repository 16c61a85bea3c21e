import type pg from 'pg';

/**
 * Gives these projects the state of another one that has converged, and makes the fleet forget its specs, so that all
 * specs come into force at once at its next start. Only while no replica runs.
 */
export async function copyState(db: pg.Client, from: number, to: readonly number[]): Promise<void> {
  const pairs = `FROM vdcsync.states f JOIN vdcsync.states t ON f.project_id = $1 AND t.project_id = ANY($2::bigint[])`;
  const statements = [
    `INSERT INTO vdcsync.states (name, lineage, serial, created_at, project_id, service, epoch)
     SELECT copy::text, lineage || copy, serial, created_at, copy, service, epoch
     FROM vdcsync.states, unnest($2::bigint[]) AS copy WHERE project_id = $1`,
    `INSERT INTO vdcsync.claims (state_id, object, key, body)
     SELECT t.id, object, key, body ${pairs} JOIN vdcsync.claims c ON c.state_id = f.id`,
    `INSERT INTO vdcsync.intents (state_id, id, key, verb, incarnation, attempt, phase, outcome, body)
     SELECT t.id, i.id, key, verb, incarnation, attempt, phase, outcome, body
     ${pairs} JOIN vdcsync.intents i ON i.state_id = f.id ORDER BY i.seq`,
    `INSERT INTO vdcsync.notes (state_id, name, value)
     SELECT t.id, n.name, value ${pairs} JOIN vdcsync.notes n ON n.state_id = f.id`,
  ];
  for (const sql of statements) await db.query(sql, [from, to]);
  await db.query('DELETE FROM vdcsync.specs');
  await db.query("DELETE FROM vdcsync.notes WHERE name IN ('publication', 'asked')");
  await db.query('ANALYZE');
}
