import { beforeAll, describe, expect, test } from 'vitest';
import { urgencies } from '../../src/core/fleet.ts';
import type { StateStore } from '../../src/core/state.ts';
import { systemRandom } from '../../src/platform/system.ts';
import { JobQueue } from '../../src/state/job-queue.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { PostgresInspection } from '../../src/state/postgres-inspection.ts';
import { sampleBinding, sampleIntent, web } from '../conformance/state-samples.ts';
import { postgresServer, sql } from '../support/postgres.ts';

const server = postgresServer();
const write = { mode: 'write', now: 1_700_000_000_000, lineage: 'test' } as const;
const read = { mode: 'read', now: 2, lineage: 'nobody' } as const;

/** `vdcsync` in a database where `mallory` may create objects, but may not read what vdcsync writes. */
function urlOf(role: 'app' | 'mallory', database: string): string {
  return server.url(database).replace(/\/\/.*@/, `//${role}:hunter2@`);
}

async function database(name: string, ...grants: readonly string[]): Promise<void> {
  await sql(server.url(), `CREATE DATABASE ${name}`);
  for (const grant of [`CREATE ON DATABASE ${name} TO app`, 'ALL ON SCHEMA public TO mallory', ...grants])
    await sql(server.url(name), `GRANT ${grant}`);
}

async function used(url: string): Promise<void> {
  const store: StateStore = await openPostgresState(url, write);
  try {
    await store.claimProject(4711);
    await store.change([{ type: 'bind', binding: sampleBinding(web) }], 1);
    await store.beginIntent(sampleIntent('a', web));
    await store.putNote('n', 1);
    expect(await store.note('n')).toBe(1);
    expect(await store.intents({ limit: 5 })).toHaveLength(1);
    expect(await store.journal({ limit: 5 })).not.toEqual([]);
    await store.prune(10);
  } finally {
    await store.close();
  }
  expect(await new PostgresInspection(url).states({})).toHaveLength(1);
}

async function worked(url: string): Promise<void> {
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const queue = await JobQueue.open(url, { instance: 'one', as: 'replica', random: systemRandom, onError });
  try {
    await queue.ask(['1'], 'start', urgencies.time);
    const jobs = await queue.take(2, { leastUrgency: 0, fullTenants: [] });
    expect(jobs.map(({ key }) => key).sort()).toEqual(['1', 'source']);
    for (const job of jobs) await queue.end(job, undefined);
  } finally {
    await queue.close();
  }
  expect(errors).toEqual([]);
}

describe('src/state/postgres.ts: another user of the same server', () => {
  beforeAll(async () => {
    for (const role of ['app', 'mallory'])
      await sql(
        server.url(),
        `CREATE ROLE ${role} LOGIN PASSWORD 'hunter2' NOSUPERUSER NOCREATEDB NOCREATEROLE`,
      );
  });

  test('uses no functions, operators or tables of the same name from a schema earlier in the search path', async () => {
    await database('shadows');
    const body = "LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION 'called as %', current_user; END $f$";
    const functions = [
      ...['current_setting(text) RETURNS text', 'set_config(text, text, boolean) RETURNS text'],
      ...[
        'now() RETURNS timestamptz',
        'gen_random_uuid() RETURNS uuid',
        'jsonb_array_length(jsonb) RETURNS integer',
      ],
      ...['pg_backend_pid() RETURNS integer', 'pg_advisory_xact_lock(integer, integer) RETURNS void'],
      ...['pg_try_advisory_lock(integer, integer) RETURNS boolean', 'max(integer) RETURNS integer'],
      ...[
        'count(oid) RETURNS bigint',
        'same(text, text) RETURNS boolean',
        'same(bigint, bigint) RETURNS boolean',
      ],
    ];
    const operators = ['text', 'bigint'].map(
      (type) => `CREATE OPERATOR public.= (LEFTARG = ${type}, RIGHTARG = ${type}, FUNCTION = public.same)`,
    );
    const tables = ['states', 'claims', 'pg_namespace', 'pg_settings', 'pg_locks', 'pg_class', 'pg_roles'];
    for (const each of [
      ...functions.map((signature) => `CREATE FUNCTION public.${signature} ${body}`),
      ...operators,
      ...tables.map((table) => `CREATE TABLE public.${table} (id integer)`),
    ])
      await sql(urlOf('mallory', 'shadows'), each);
    await sql(server.url('shadows'), 'ALTER DATABASE shadows SET search_path = public, pg_catalog');
    await used(urlOf('app', 'shadows'));
    await worked(urlOf('app', 'shadows'));
  });

  test('refuses a schema `vdcsync` of another role with tables that run functions', async () => {
    await database('squatted', 'CREATE ON DATABASE squatted TO mallory');
    const own = server.url('squatted');
    await used(`${own}?state=first`);
    // The tables of a real state, with a trigger, in the hands of mallory.
    await sql(own, 'ALTER SCHEMA vdcsync OWNER TO mallory');
    const tables = await sql(
      own,
      "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'vdcsync' AND relkind = 'r'",
    );
    for (const { relname } of tables) await sql(own, `ALTER TABLE vdcsync.${relname} OWNER TO mallory`);
    const mallory = urlOf('mallory', 'squatted');
    await sql(
      mallory,
      'GRANT ALL ON SCHEMA vdcsync TO app; GRANT ALL ON ALL TABLES IN SCHEMA vdcsync TO app',
    );
    await sql(mallory, 'CREATE TABLE public.seen (who text); GRANT ALL ON public.seen TO PUBLIC');
    await sql(
      mallory,
      'CREATE FUNCTION public.take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.seen VALUES (current_user); RETURN NEW; END $$',
    );
    await sql(
      mallory,
      'CREATE TRIGGER t BEFORE INSERT OR UPDATE ON vdcsync.states FOR EACH ROW EXECUTE FUNCTION public.take()',
    );
    for (const options of [write, read])
      await expect(openPostgresState(urlOf('app', 'squatted'), options)).rejects.toThrow(
        /belongs? to mallory/,
      );
    await expect(new PostgresInspection(urlOf('app', 'squatted')).states({})).rejects.toThrow(/mallory/);
    expect(await sql(mallory, 'SELECT * FROM public.seen')).toEqual([]);
  });

  test('refuses an empty schema `vdcsync` of another role', async () => {
    await database('empty', 'CREATE ON DATABASE empty TO mallory');
    await sql(urlOf('mallory', 'empty'), 'CREATE SCHEMA vdcsync; GRANT ALL ON SCHEMA vdcsync TO app');
    await expect(openPostgresState(urlOf('app', 'empty'), write)).rejects.toThrow(/belongs? to mallory/);
  });

  test('another role can neither read nor change the records of the role of vdcsync', async () => {
    await database('closed');
    await used(urlOf('app', 'closed'));
    for (const each of [
      'SELECT * FROM vdcsync.intents',
      "UPDATE vdcsync.states SET lineage = 'x'",
      'CREATE TABLE vdcsync.more (x integer)',
      'DROP TABLE vdcsync.states CASCADE',
    ])
      await expect(sql(urlOf('mallory', 'closed'), each)).rejects.toThrow(/permission denied|must be owner/);
  });

  test('the error names a missing right; rights on the schema alone are enough', async () => {
    await database('rights');
    await sql(server.url('rights'), 'REVOKE CREATE ON DATABASE rights FROM app');
    await expect(openPostgresState(urlOf('app', 'rights'), write)).rejects.toThrow(
      /lacks a right .*to own the schema vdcsync/,
    );
    await sql(server.url('rights'), 'CREATE SCHEMA vdcsync AUTHORIZATION app');
    await used(urlOf('app', 'rights'));
  });
});
