import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { StateStore } from '../../src/core/state.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { PostgresSessions } from '../../src/state/postgres-sessions.ts';
import { parsePostgresUrl } from '../../src/state/postgres-url.ts';
import { sampleBinding, sampleIntent, web } from '../conformance/state-samples.ts';
import { postgresServer } from '../support/postgres.ts';

const server = postgresServer();
const write = { mode: 'write', now: 1_700_000_000_000, lineage: 'test' } as const;
const at = 1_700_000_001_000;

/** Every method that changes a state, in an order in which all of them succeed. */
const script: readonly ((store: StateStore) => Promise<unknown>)[] = [
  (store) => store.claimProject(7),
  (store) => store.beginIntent(sampleIntent('a', web)),
  (store) => store.updateIntent('a', { sends: 2 }, at),
  (store) =>
    store.closeIntent(
      'a',
      { outcome: 'done', text: 'done' },
      [{ type: 'bind', binding: sampleBinding(web) }],
      at,
    ),
  (store) => store.change([{ type: 'release', key: web, gone: true, reason: 'gone' }] as never, at),
  (store) => store.putNote('n', 1),
];

/** Another process of the operator's, on a connection of its own. */
let other: pg.Client;
beforeAll(async () => {
  other = new pg.Client(server.url());
  await other.connect();
  const store = await openPostgresState(`${server.url()}?state=first`, write);
  await store.close();
});
afterAll(() => other.end());

/** All that a state holds, but for its owner. */
async function contentOf(name: string): Promise<string> {
  const tables = ['intents', 'journal', 'incarnations', 'notes'];
  const all = (table: string) =>
    `(SELECT json_agg(t ORDER BY t::text) FROM vdcsync.${table} t WHERE t.state_id = s.id) AS ${table}`;
  const { rows } = await other.query(
    `SELECT serial, project_id, ${tables.map(all).join(', ')} FROM vdcsync.states s WHERE name = '${name}'`,
  );
  return JSON.stringify(rows);
}

let count = 0;

/**
 * Plays the script, stops the process before one of its statements, lets `happen` happen, and has the process go
 * on. Gives what the state held then and at the end, or `undefined` where the script has no such statement.
 */
async function stoppedAt(
  statement: number,
  happen: (name: string) => Promise<(() => Promise<void>) | undefined>,
) {
  count += 1;
  const name = `fence-${count}`;
  const url = `${server.url()}?state=${name}`;
  const sessions = new PostgresSessions(parsePostgresUrl(url), 1);
  const store = await openPostgresState(url, {
    ...write,
    replica: { id: 'hung', isAlive: () => true, sessions },
  });
  const connection = await sessions.take();
  const spy = vi.spyOn(pg.Client.prototype, 'query');
  await connection.query('SELECT 1');
  const client = spy.mock.contexts[0] as unknown as { query: (...args: unknown[]) => Promise<unknown> };
  spy.mockRestore();
  const query = client.query.bind(client);
  let seen = 0;
  let stopped: { readonly content: string; readonly end: (() => Promise<void>) | undefined } | undefined;
  client.query = async (...args) => {
    seen += 1;
    if (seen === statement) {
      const end = await happen(name);
      stopped = { content: await contentOf(name), end };
    }
    return query(...args);
  };
  let begunAfter = 0;
  let doneAfter = 0;
  for (const step of script) {
    const isAfter = stopped !== undefined;
    if (isAfter) begunAfter += 1;
    await step(store).then(
      () => {
        if (isAfter) doneAfter += 1;
      },
      () => undefined,
    );
  }
  client.query = query;
  // The end of a connection arrives a moment later.
  await pause(5);
  const isOwned = store.isOwned?.();
  const content = await contentOf(name);
  await stopped?.end?.();
  await store.close();
  await sessions.close();
  return (
    stopped && {
      before: stopped.content,
      after: content,
      isOwned,
      begunAfter,
      doneAfter,
      hasTaken: stopped.end !== undefined,
    }
  );
}

describe('src/state/postgres-driver.ts: the fence', () => {
  test('a process suspended at any statement changes nothing after another process takes over the state', async () => {
    const takeOver = async (name: string) => {
      const url = `${server.url()}?state=${name}`;
      const sessions = new PostgresSessions(parsePostgresUrl(url), 1);
      const replica = { id: 'next', isAlive: () => true, sessions };
      const next = await openPostgresState(url, { ...write, replica });
      return async () => {
        await next.close();
        await sessions.close();
      };
    };
    let [statements, refused] = [0, 0];
    // A process sends nothing between two statements, so before the second one is after the first one.
    for (let at = 1; ; at += 1) {
      const end = await stoppedAt(at, takeOver);
      if (end === undefined) break;
      expect(end, `statement ${at}`).toMatchObject({ after: end.before, doneAfter: 0, isOwned: false });
      statements += 1;
      refused += end.begunAfter;
    }
    expect(statements).toBeGreaterThan(17);
    expect(refused).toBeGreaterThan(50);
  });

  test('an owner that lost its lock but not its connection is refused once another process owns the state', async () => {
    // Of a lock that is gone nothing is seen on the connection, and the next owner may have written nothing yet.
    const newEpoch = async (name: string) => {
      await other.query("SET lock_timeout = '20ms'");
      const taken = await other
        .query(`UPDATE vdcsync.states SET epoch = epoch + 1 WHERE name = '${name}'`)
        // In the middle of a transaction nobody can take the state over.
        .catch(() => undefined);
      return taken && (async () => {});
    };
    let taken = 0;
    for (let at = 1; ; at += 1) {
      const end = await stoppedAt(at, newEpoch);
      if (end === undefined) break;
      if (!end.hasTaken) continue;
      taken += 1;
      expect(end, `statement ${at}`).toMatchObject({ after: end.before, doneAfter: 0, isOwned: false });
    }
    expect(taken).toBeGreaterThanOrEqual(script.length);
  });
});
