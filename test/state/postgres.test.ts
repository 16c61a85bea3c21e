import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { StateError, StateInUseError } from '../../src/core/errors.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { StateStore } from '../../src/core/state.ts';
import { type OpenPostgresOptions, openPostgresState } from '../../src/state/postgres.ts';
import { PostgresInspection } from '../../src/state/postgres-inspection.ts';
import { PostgresSessions } from '../../src/state/postgres-sessions.ts';
import { parsePostgresUrl, shownLocation } from '../../src/state/postgres-url.ts';
import { ownerConformance, quickClock } from '../conformance/owner.ts';
import { expectReplayed, seen } from '../conformance/state-checks.ts';
import { sampleBinding, sampleIntent, web } from '../conformance/state-samples.ts';
import { postgresServer, sql as sqlAt } from '../support/postgres.ts';
import { wayTo } from './postgres-way.ts';
import { ownedElsewhere } from './processes.ts';

const server = postgresServer();
const write = { mode: 'write', now: 1_700_000_000_000, lineage: 'test' } as const;
const read = { mode: 'read', now: 2, lineage: 'nobody' } as const;

let count = 0;
/** A URL of a state that does not exist yet. */
function newUrl(): string {
  count += 1;
  return `${server.url()}?state=state-${count}`;
}

async function open(url: string, options: OpenPostgresOptions = write): Promise<StateStore> {
  const store = await openPostgresState(url, options);
  onTestFinished(() => store.close());
  return store;
}

/** One statement by somebody else. */
function sql(text: string, database?: string): Promise<Record<string, unknown>[]> {
  return sqlAt(server.url(database), text);
}

/** Ends every connection that vdcsync has, as an administrator or a failing network would. */
async function cutConnections(): Promise<void> {
  await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'vdcsync'");
}

/** Opens what somebody else has just lost: the server sees the end of their connection a moment later. */
function openAfter(url: string): Promise<StateStore> {
  const clock = quickClock(() => sql('SELECT pg_sleep(0.05)'));
  return open(url, { ...write, waitMs: 10_000, clock });
}

describe('src/state/postgres-url.ts: names', () => {
  test('one database contains several independent states', async () => {
    const [shop, lab] = [await open(newUrl()), await open(newUrl(), { ...write, lineage: 'other' })];
    await shop.claimProject(1);
    await lab.claimProject(2);
    await shop.beginIntent(sampleIntent('a', web));
    expect(await lab.openIntents()).toEqual([]);
    await lab.beginIntent(sampleIntent('a', web, { attempt: 7 }));
    expect(await shop.lastAttempt(web, 'create', '0')).toBe(0);
    expect(await lab.info()).toMatchObject({ lineage: 'other', projectId: 2, serial: 2 });
    expect(await shop.journal({ limit: 9 })).toHaveLength(1);
  });

  test('an inspection lists the projects, their current owners and a note', async () => {
    const [url, other] = [newUrl(), newUrl()];
    const [shop, lab] = [await open(url), await open(other)];
    await open(newUrl());
    await shop.claimProject(71);
    await shop.putNote('daemon', { of: 'shop' });
    await lab.claimProject(72);
    const inspection = new PostgresInspection(server.url());
    onTestFinished(() => inspection.close());
    const observeAll = async () =>
      (await inspection.states({ note: 'daemon' }))
        .filter(({ projectId }) => projectId === 71 || projectId === 72)
        .map(({ projectId, owner, note }) => [projectId, owner?.pid, note]);
    expect(await observeAll()).toEqual([
      [71, process.pid, { of: 'shop' }],
      [72, process.pid, undefined],
    ]);
    await shop.close();
    expect((await observeAll())[0]).toEqual([71, undefined, { of: 'shop' }]);
    // As kill -9 leaves it: what the owner wrote down is still there, the lock is not.
    await sql("INSERT INTO vdcsync.owners SELECT id, 1, 'gone', 1 FROM vdcsync.states WHERE project_id = 71");
    expect((await observeAll())[0]).toEqual([71, undefined, { of: 'shop' }]);
  });

  test("the URL names the state, or the state is 'default'; the URL may begin with postgresql:", async () => {
    await (await open(server.url().replace('postgres:', 'postgresql:'))).putNote('n', 2);
    expect(await (await open(`${server.url()}?state=default`, read)).note('n')).toBe(2);
  });

  test('shows a location without user, password and settings', () => {
    expect(shownLocation('postgres://me:secret@db:6543/vdc?state=shop&sslmode=require')).toBe(
      'postgres://db:6543/vdc?state=shop',
    );
    expect(shownLocation('postgresql://me:secret@/vdc?host=/run/pg&password=secret')).toBe(
      'postgres:///vdc?host=/run/pg',
    );
    expect(shownLocation('state.db')).toBe('state.db');
  });

  test.each([
    ['postgres://me:secret/1@db/vdc', /cannot be read/],
    ['postgres://me:12/secret@db/vdc', /%2F/],
    ['postgres://me:12#secret@db/vdc', /cannot be read/],
    ['postgres://me:12?secret@db/vdc', /cannot be read/],
    ['postgres://me:secret@db/vdc?state=a%20b', /name in the PostgreSQL URL/],
    ['postgres://me:secret@db/vdc?state=', /name in the PostgreSQL URL/],
  ])('refuses %s without printing the URL', async (url, message) => {
    const error = await openPostgresState(url, write).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StateError);
    expect(String(error)).toMatch(message);
    expect(String(error)).not.toMatch(/secret/);
  });
});

describe('src/state/postgres.ts: owners that are replicas of a fleet', () => {
  const replicaOf = (id: string, isAlive = () => true) => ({ replica: { id, isAlive } });

  test('lose the state to the replica that has the job of the project now, and stop writing', async () => {
    const url = newUrl();
    const hung = await open(url, { ...write, ...replicaOf('hung') });
    await hung.putNote('n', 1);

    const next = await open(url, { ...write, ...replicaOf('next') });

    await expect(hung.putNote('n', 2)).rejects.toThrow(StateError);
    expect(hung.isOwned?.()).toBe(false);
    expect(hung.lost?.aborted).toBe(true);
    expect(await next.note('n')).toBe(1);
    await next.putNote('n', 3);
  });

  test('do not give their state to a process that is no replica, and do not take its state', async () => {
    const [owned, command] = [newUrl(), newUrl()];
    await open(owned, { ...write, ...replicaOf('late') });
    await open(command);
    await expect(open(owned)).rejects.toThrow(StateInUseError);
    await expect(open(command, { ...write, ...replicaOf('late') })).rejects.toThrow(StateInUseError);
  });

  test('stop being owners once their jobs are not confirmed', async () => {
    let alive = true;
    const store = await open(newUrl(), { ...write, ...replicaOf('own', () => alive) });
    expect(store.isOwned?.()).toBe(true);
    alive = false;
    expect(store.isOwned?.()).toBe(false);
  });

  test('own each state once on a few shared connections, and lose the states of a lost connection', async () => {
    const sessions = new PostgresSessions(parsePostgresUrl(server.url()), 2);
    const replica = { ...replicaOf('many').replica, sessions };
    const urls = [newUrl(), newUrl(), newUrl(), newUrl()];
    const openAll = () => Promise.all(urls.map((url) => open(url, { ...write, replica })));
    const count = async () =>
      (
        await sql("SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = 'vdcsync'")
      )[0];
    await cutConnections();
    const stores = await openAll();
    expect(await count()).toEqual({ count: 2 });
    await expect(open(urls[0] as string, { ...write, replica })).rejects.toThrow(StateInUseError);
    await expect(open(urls[0] as string)).rejects.toThrow(StateInUseError);
    await stores[0]?.close();
    await (await open(urls[0] as string)).close();
    await stores[1]?.putNote('n', 1);

    await cutConnections();

    await expect(stores[1]?.putNote('n', 2)).rejects.toThrow(StateError);
    await expect.poll(() => stores.slice(1).map((store) => store.lost?.aborted)).toEqual([true, true, true]);
    for (const store of stores) await store.close();
    const again = await openAll();
    expect(await again[1]?.note('n')).toBe(1);
    expect(await count()).toEqual({ count: 2 });
    for (const store of again) await store.close();
    await sessions.close();
  });
});

describe('src/state/postgres.ts: reading', () => {
  test('a missing state is read as empty, and nothing is created', async () => {
    await sql('CREATE DATABASE untouched');
    const store = await open(server.url('untouched'), read);
    expect(await store.info()).toEqual({
      lineage: 'nobody',
      serial: 0,
      createdAt: 2,
      projectId: null,
      service: null,
    });
    await expect(store.putNote('n', 1)).rejects.toThrow(/reading only/);
    expect(await sql("SELECT 1 FROM pg_namespace WHERE nspname = 'vdcsync'", 'untouched')).toEqual([]);
    const owner = await open(newUrl());
    await owner.putNote('n', 1);
    expect(await (await open(newUrl(), read)).note('n')).toBeUndefined();
  });

  test('works next to a writer in another process and shows its writes', async () => {
    const url = newUrl();
    const owner = await ownedElsewhere(url, 'write');
    await owner.said('3');
    const reader = await open(url, read);
    expect((await reader.bindings()).length).toBeGreaterThanOrEqual(3);
    const { serial } = await reader.info();
    await owner.said(String(owner.lines().length + 5));
    expect((await reader.info()).serial).toBeGreaterThan(serial);
  });
});

describe('src/state/postgres.ts: one owner', () => {
  ownerConformance({ newLocation: newUrl, open: openPostgresState });

  test('of many processes that start on an empty database at once, one becomes the owner', async () => {
    await sql('CREATE DATABASE race');
    const opened = await Promise.allSettled(Array.from({ length: 6 }, () => open(server.url('race'), write)));
    const refused = opened.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
    expect(refused).toHaveLength(5);
    for (const message of refused) expect(message).toMatch(/in use by/);
    expect(await sql("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'")).toEqual([]);
  });

  test('a change after another process increased the serial is refused completely', async () => {
    const url = newUrl();
    const store = await open(url);
    await store.claimProject(1);
    const name = url.slice(url.lastIndexOf('=') + 1);
    await sql(`UPDATE vdcsync.states SET serial = serial + 1 WHERE name = '${name}'`);
    const before = await seen(store);
    await expect(store.beginIntent(sampleIntent('a', web))).rejects.toThrow(
      /Another process has taken or changed/,
    );
    await expect(store.putNote('n', 1)).rejects.toThrow(StateError);
    expect(await seen(store)).toEqual(before);
  });

  test('a later version of the schema, or the removal of the state, fences the owner', async () => {
    await sql('CREATE DATABASE fenced');
    const store = await open(server.url('fenced'));
    await store.putNote('n', 1);
    await sql('UPDATE vdcsync.schema_version SET version = version + 1', 'fenced');
    await expect(store.putNote('n', 2)).rejects.toThrow(/later version/);
    await sql('UPDATE vdcsync.schema_version SET version = version - 1', 'fenced');
    await store.putNote('n', 3);
    await sql('TRUNCATE vdcsync.states CASCADE', 'fenced');
    await expect(store.putNote('n', 4)).rejects.toThrow(StateError);
  });
});

describe('src/state/postgres.ts: a lost connection', () => {
  test('while idle: every further call is rejected, and a new owner continues', async () => {
    const url = newUrl();
    const store = await open(url);
    await store.putNote('n', 1);
    expect(store.isOwned?.()).toBe(true);
    await cutConnections();
    while (store.isOwned?.()) await sql('SELECT pg_sleep(0.01)');
    for (let tries = 0; tries < 2; tries += 1) {
      const put = store.putNote('n', 2);
      await expect(put).rejects.toThrow(StateError);
      await expect(put).rejects.toThrow(/nothing more is recorded; start again/);
    }
    await expect(store.bindings()).rejects.toThrow(StateError);
    await store.close();
    const next = await openAfter(url);
    expect(await next.note('n')).toBe(1);
    await next.putNote('n', 3);
  });

  test('during a transaction: nothing is half-written, and the old owner never writes again', async () => {
    const url = newUrl();
    const store = await open(url);
    await store.beginIntent(sampleIntent('a', web));
    const name = url.slice(url.lastIndexOf('=') + 1);
    // Somebody locks the journal, so that the transaction stands still when half of it is done.
    const blocker = new pg.Client(server.url());
    await blocker.connect();
    await blocker.query('BEGIN; LOCK TABLE vdcsync.journal IN EXCLUSIVE MODE');
    const closing = store.closeIntent(
      'a',
      { outcome: 'done', text: '' },
      [{ type: 'bind', binding: sampleBinding(web) }],
      5,
    );
    const after = store.putNote('n', 1);
    const rejected = [
      expect(closing).rejects.toThrow(/lock is gone with the connection/),
      expect(after).rejects.toThrow(StateError),
    ];
    const stuck = `SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE application_name = 'vdcsync' AND wait_event_type = 'Lock'`;
    while ((await sql(stuck))[0]?.count !== 1) await sql('SELECT pg_sleep(0.01)');
    await cutConnections();
    await Promise.all(rejected);
    await blocker.query('ROLLBACK');
    await blocker.end();

    const next = await openAfter(url);
    expect(await next.info()).toMatchObject({ serial: 1 });
    expect(await next.openIntents()).toEqual([sampleIntent('a', web)]);
    expect(await next.bindings()).toEqual([]);
    expect(await next.note('n')).toBeUndefined();
    await expectReplayed(next);
    await next.closeIntent('a', { outcome: 'done', text: '' }, [], 6);
    await expect(store.putNote('n', 1)).rejects.toThrow(StateError);
    expect(await sql(`SELECT serial::int FROM vdcsync.states WHERE name = '${name}'`)).toEqual([
      { serial: 2 },
    ]);
  });

  test('after the commit, with a lost answer: the write is rejected, and found on the next open', async () => {
    for (const reached of [true, false]) {
      const url = newUrl();
      using way = await wayTo(server.port);
      const store = await open(way.url(url));
      await store.beginIntent(sampleIntent('a', web));
      way.breakAt('COMMIT', reached ? 'after' : 'before');
      const bind = { type: 'bind', binding: sampleBinding(web) } as const;
      await expect(store.closeIntent('a', { outcome: 'done', text: '' }, [bind], 5)).rejects.toThrow(
        /is not known: start again/,
      );
      await expect(store.putNote('n', 1)).rejects.toThrow(/is not known/);
      const next = await openAfter(url);
      expect(await next.openIntents()).toHaveLength(reached ? 0 : 1);
      expect(await next.bindings()).toHaveLength(reached ? 1 : 0);
      await expectReplayed(next);
    }
  });

  test('with the commit answer and the end of the connection together: the owner does not continue', async () => {
    const url = newUrl();
    using way = await wayTo(server.port);
    const store = await open(way.url(url));
    way.breakAt('COMMIT', 'behind');

    await expect(store.beginIntent(sampleIntent('a', web))).rejects.toThrow(
      /lock is gone with the connection/,
    );

    const next = await openAfter(url);
    expect(await next.openIntents()).toHaveLength(1);
  });

  test('through silence: the call fails after the time-out, and a late answer is dropped', async () => {
    const url = newUrl();
    using way = await wayTo(server.port);
    const store = await open(`${way.url(url)}&query_timeout=300`);
    await store.putNote('n', 1);
    way.fallSilent();
    await expect(store.putNote('n', 2)).rejects.toThrow(/timeout.*nothing more is recorded/);
    await expect(store.note('n')).rejects.toThrow(StateError);
    await store.close();
  });

  test.each([
    'fast',
    'crash',
  ] as const)('a restarted server (%s) keeps every acknowledged write', async (how) => {
    const url = newUrl();
    const store = await open(url);
    const reader = await open(url, read);
    for (let n = 1; n <= 20; n += 1)
      await store.beginIntent(sampleIntent(`i${n}`, `networks.n${n}` as ResourceKey));
    await server.stop(how);
    await expect(store.putNote('n', 1)).rejects.toThrow(StateError);
    await expect(reader.info()).rejects.toThrow(StateError);
    await expect(openPostgresState(url, write)).rejects.toThrow(/cannot be reached/);
    await server.start();
    await expect(store.putNote('n', 1)).rejects.toThrow(StateError);
    const next = await open(url);
    expect(await next.openIntents()).toHaveLength(20);
    await next.putNote('n', 2);
  });
});

describe('src/state/postgres.ts: refuses', () => {
  async function refusal(url: string, options: OpenPostgresOptions = write): Promise<string> {
    const error = await openPostgresState(url, options).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StateError);
    const everything = JSON.stringify([
      String(error),
      (error as StateError).stack,
      String((error as Error).cause),
    ]);
    expect(everything).not.toMatch(/canary|hunter2/);
    return String(error);
  }

  test('an unreachable server', async () => {
    expect(await refusal('postgres://me:hunter2@127.0.0.1:1/vdc')).toMatch(
      /postgres:\/\/127\.0\.0\.1:1\/vdc could not be opened: the server cannot be reached.*Check host and port/,
    );
    expect(await refusal('postgres://me:hunter2@no-such-host.invalid/vdc?sslmode=verify-full', read)).toMatch(
      /cannot be reached/,
    );
  });

  test('a wrong password, a missing password, and a missing database', async () => {
    const wrong = server.url().replace(encodeURIComponent(server.password), 'hunter2');
    expect(await refusal(wrong)).toMatch(/refuses user or password/);
    expect(await refusal(wrong.replace(':hunter2', ''))).toMatch(/asks for a password/);
    expect(await refusal(server.url('none'))).toMatch(/the database does not exist.*Create it first/);
  });

  test('TLS for a server without TLS, and a missing certificate', async () => {
    expect(await refusal(`${server.url()}?sslmode=require`)).toMatch(/no trusted TLS connection.*sslmode/);
    const noFile = `${server.url()}?sslmode=require&sslrootcert=missing.pem`;
    expect(await refusal(noFile)).toMatch(/a file that the URL names cannot be read.*missing\.pem/);
  });

  test('a schema `vdcsync` of another program or of a later version, without changing the schema', async () => {
    await sql('CREATE DATABASE foreigner');
    await sql('CREATE SCHEMA vdcsync; CREATE TABLE vdcsync.theirs (x int)', 'foreigner');
    for (const options of [write, read]) {
      expect(await refusal(server.url('foreigner'), options)).toMatch(
        /has a schema vdcsync of another program/,
      );
    }
    await sql('CREATE DATABASE future');
    await (await open(server.url('future'))).close();
    await sql('UPDATE vdcsync.schema_version SET version = 99', 'future');
    for (const options of [write, read]) {
      expect(await refusal(server.url('future'), options)).toMatch(/has version 99; .* It was not touched/);
    }
  });

  test('a database without the encoding UTF8', async () => {
    await sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    expect(await refusal(server.url('latin'))).toMatch(/a database in UTF8, not LATIN1/);
  });
});

describe('src/state/postgres.ts: settings', () => {
  beforeAll(async () => {
    await sql('CREATE DATABASE odd');
    for (const setting of [
      'synchronous_commit = off',
      "default_transaction_isolation = 'serializable'",
      "idle_session_timeout = '1s'",
      'extra_float_digits = -15',
    ]) {
      await sql(`ALTER DATABASE odd SET ${setting}`);
    }
  });

  test('the defaults of the database change neither durability nor the records', async () => {
    const url = server.url('odd');
    const store = await open(url);
    await store.change([{ type: 'bind', binding: sampleBinding(web) }], 1_700_000_000_000.125);
    await sql('SELECT pg_sleep(1.2)');
    expect((await store.journal({ limit: 1 }))[0]?.at).toBe(1_700_000_000_000.125);
    await store.change([{ type: 'release', key: web, gone: false, reason: 'forgotten' }], 0.1 + 0.2);
    expect((await (await open(url, read)).journal({ limit: 1 }))[0]?.at).toBe(0.1 + 0.2);
  });

  test('a database that its provider has made read-only, for example for a full disk, stays read-only', async () => {
    await sql('CREATE DATABASE full_disk');
    const url = server.url('full_disk');
    await (await open(url)).putNote('n', 1);
    await sql('ALTER DATABASE full_disk SET default_transaction_read_only = on');
    const refused = await open(url).catch((error: unknown) => String(error));
    expect(refused).toMatch(/is read-only .* its disk may be full/);
    expect(await (await open(url, read)).note('n')).toBe(1);
  });

  test('any JSON value is read as written', async () => {
    const store = await open(newUrl());
    const odd = { nul: 'a\u0000b', half: '\ud800', order: { b: 1, a: 2 }, big: 1e300, '': [], ips: [] };
    await store.putNote('n', odd);
    expect(await store.note('n')).toEqual(odd);
    await store.beginIntent(sampleIntent('a', web, { preimage: odd }));
    expect((await store.openIntents())[0]?.preimage).toEqual(odd);
  });
});
