import { isIPv4, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import { StateError } from '../core/errors.ts';
import { SerialQueue } from '../core/work.ts';
import type { PostgresLocation } from './postgres-url.ts';
import type { Row } from './sql-driver.ts';

/**
 * One connection to PostgreSQL. All statements on it run one after the other.
 *
 * An owner's lock belongs to the server's end of this connection, and every write of its state goes through the
 * connection: an owner that loses the lock also loses the way to write. So a lost connection is never opened again. To
 * continue, the caller opens the state again. Several states may be owned on one connection.
 */
export class PostgresConnection {
  readonly label: string;
  /** The server's process on the other end: another one would not have our locks. */
  backendPid = 0;
  readonly #client: pg.Client;
  readonly #queue = new SerialQueue();
  /** Why nothing goes through any more. */
  #broken: string | undefined;
  readonly #loss = new AbortController();
  #ended = false;

  /** @throws StateError where the server cannot be reached or used. No message holds a password. */
  static async open(location: PostgresLocation, mode: 'read' | 'write'): Promise<PostgresConnection> {
    let connection: PostgresConnection | undefined;
    try {
      connection = new PostgresConnection(location);
      if (!location.allowInsecure) refuseUnverified(connection.#client, location.label);
      await connection.#client.connect();
      await connection.#configure(mode);
      return connection;
    } catch (error) {
      if (connection !== undefined) connection.#abandon();
      throw postgresFailure(error, location.label, 'be opened');
    }
  }

  private constructor({ connectionString, label }: PostgresLocation) {
    this.label = label;
    this.#client = new pg.Client({
      application_name: 'vdcsync',
      connectionTimeoutMillis: connectMs,
      query_timeout: longestAnswerMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      connectionString,
    });
    // Without a listener an error on an idle connection would end the process.
    this.#client.on('error', (error) => void this.#lose(error));
    this.#client.on('end', () => void this.#lose(new Error('it was closed')));
  }

  /**
   * Runs `work` when all earlier requests are done, and nothing else at the same time: no other statement runs between
   * a check and the change that the check guards.
   */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.take(work);
  }

  /** Runs one statement. Only inside `exclusive`, or while no other caller has the connection. */
  async query(sql: string, ...values: readonly Value[]): Promise<readonly Row[]> {
    const { rows } = await this.#send(() => this.#client.query(sql, [...values]));
    return rows as Row[];
  }

  /** Several statements without values. Where one fails, the rest is not run. */
  async script(sql: string): Promise<void> {
    await this.#send(() => this.#client.query(sql));
  }

  /**
   * Runs `changes` as one durable change, or not at all. `doing`: "be written".
   *
   * @throws StateError where it was not made durable, or where that is not known.
   */
  async transaction<T>(doing: string, changes: () => Promise<T>): Promise<T> {
    let result: T;
    try {
      await this.query('BEGIN');
      result = await changes();
    } catch (error) {
      await this.#rollBack();
      throw postgresFailure(error, this.label, doing);
    }
    await this.#commit();
    return result;
  }

  /**
   * One statement that is durable when it resolves, or did nothing. `doing`: "be written".
   *
   * @throws StateError where it was not made durable, or where that is not known.
   */
  async durable(doing: string, sql: string, ...values: readonly Value[]): Promise<readonly Row[]> {
    const rows = await this.failingAs(doing, () => this.query(sql, ...values));
    await this.#heardOut();
    return rows;
  }

  /** Runs `work`, and turns its error into a message that names the failed action. */
  async failingAs<T>(doing: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw postgresFailure(error, this.label, doing);
    }
  }

  /**
   * Receives the notifications on a channel, until the connection ends. Only while no other caller has the connection.
   */
  async listen(channel: string, onCall: (text: string) => void): Promise<void> {
    this.#client.on('notification', ({ payload = '' }) => onCall(payload));
    await this.script(`LISTEN ${channel}`);
  }

  /** Aborts with a `StateError` when the connection ends by anything but `close`. */
  get lost(): AbortSignal {
    return this.#loss.signal;
  }

  /** Whether no end of the connection is known. The lock ends with the connection. */
  isOpen(): boolean {
    return this.#broken === undefined;
  }

  /** Closes the connection after all earlier requests. */
  async close(): Promise<void> {
    if (this.#ended) return;
    await this.#queue.end();
    this.#ended = true;
    this.#broken ??= `The connection to the state ${this.label} is closed.`;
    await this.#hangUp();
  }

  /** Closes without a farewell, which the server may never answer. */
  #abandon(): void {
    this.#client.end().catch(() => undefined);
    const { stream } = this.#client.connection;
    if (stream instanceof Socket) stream.destroy();
  }

  /** A silent server does not close its end, and the driver alone would wait for that end forever. */
  async #hangUp(): Promise<void> {
    const ended = this.#client.end().catch(() => undefined);
    const { stream } = this.#client.connection;
    if (stream instanceof Socket) stream.setTimeout(goodbyeMs, () => stream.destroy());
    await ended;
  }

  async #configure(mode: 'read' | 'write'): Promise<void> {
    // First, and without a function: the database may name a schema in which another user has made functions.
    await this.script('SET search_path TO pg_catalog');
    const [server] = await this.query(
      "SELECT current_setting('server_version_num')::integer AS version, current_setting('server_encoding') AS encoding, pg_backend_pid() AS pid",
    );
    if (Number(server?.version) < 120_000 || server?.encoding !== 'UTF8') {
      throw new Error(`it needs PostgreSQL 12 or later and a database in UTF8, not ${server?.encoding}`);
    }
    this.backendPid = Number(server.pid);
    // A provider turns writes off for a database whose disk is full. That stays.
    const wanted = mode === 'read' ? { ...settings, default_transaction_read_only: 'on' } : settings;
    // The join skips settings that this server does not know: some settings came later than PostgreSQL 12.
    await this.query(
      `SELECT set_config(name, value, false)
       FROM unnest($1::text[], $2::text[]) AS wanted (name, value) JOIN pg_settings USING (name)
       WHERE NOT (name = 'synchronous_commit' AND setting = 'remote_apply')`,
      Object.keys(wanted),
      Object.values(wanted),
    );
  }

  async #send<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#broken !== undefined) throw new StateError(this.#broken);
    try {
      return await ask();
    } catch (error) {
      if (!endsConnection(error)) throw error;
      throw new StateError(this.#lose(error), { cause: error });
    }
  }

  async #commit(): Promise<void> {
    try {
      const { command } = await this.#send(() => this.#client.query('COMMIT'));
      // A transaction that has failed inside ends in ROLLBACK, without an error.
      if (command !== 'COMMIT') throw new Error(`the server answered ${command}`);
      await this.#heardOut();
    } catch (error) {
      const { message } = postgresFailure(error, this.label, 'be written');
      this.#broken = `${message} Whether the last change was recorded is not known: start again to continue from the recorded state.`;
      const failure = new StateError(this.#broken, { cause: error });
      this.#loss.abort(failure);
      throw failure;
    }
  }

  /**
   * Handles messages that arrived after an answer. A process that was stopped in between would otherwise act on a
   * change that is older than the end of its lock.
   */
  async #heardOut(): Promise<void> {
    await setImmediate();
    if (this.#broken !== undefined) throw new StateError(this.#broken);
  }

  async #rollBack(): Promise<void> {
    if (this.#broken !== undefined) return;
    try {
      await this.query('ROLLBACK');
    } catch (error) {
      this.#lose(error);
    }
  }

  /** Returns the reason. If there are several reasons, returns the first. */
  #lose(error: unknown): string {
    if (this.#broken !== undefined) return this.#broken;
    const { message } = postgresFailure(error, this.label, 'be reached any more');
    this.#broken = `${message} The lock is gone with the connection, so nothing more is recorded; start again to continue.`;
    this.#loss.abort(new StateError(this.#broken, { cause: error }));
    // After a time-out the server may still answer. No later question may take that answer for its own.
    void this.#hangUp();
    return this.#broken;
  }
}

type Value = string | number | null | readonly string[];

/** How long to wait for the server at the beginning. */
const connectMs = 10_000;

/** How long to wait for the server's end of the connection, once this end has said goodbye. */
const goodbyeMs = 2_000;

/** Longer than the server's own limit below, so that a slow answer is its error, and silence is ours. */
const longestAnswerMs = 40_000;

const settings = {
  // A commit is on the disk when it returns, and on a synchronous standby if there is one.
  synchronous_commit: 'on',
  // Defaults of the database must not change the meaning of a statement.
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  extra_float_digits: '1',
  lock_timeout: '10s',
  statement_timeout: '30s',
  // The connection that holds the lock is quiet for as long as there is nothing to do.
  idle_session_timeout: '0',
  // How soon the server sees that an owner's machine is gone, and frees its lock. Default: hours.
  tcp_keepalives_idle: '15',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
};

/**
 * A state decides which resources are bought and deleted, and its URL holds a password. So a connection to another
 * machine needs TLS with a certificate that is checked for that machine's name.
 *
 * The check reads the driver's result from URL and environment (`PGHOST`, `PGSSLMODE`) and not their text, so that no
 * spelling escapes it.
 *
 * @throws StateError if the server is on another machine and would not be verified.
 */
function refuseUnverified(client: pg.Client, label: string): void {
  const { host, ssl } = client as { readonly host: string; readonly ssl: unknown };
  if (isThisMachine(host) || verifiesFully(ssl)) return;
  throw new StateError(
    `The state ${label} is on another machine, and the connection does not verify that machine. ` +
      'An attacker on the network could read the password and change the state. ' +
      'Add sslmode=verify-full to the URL, and sslrootcert=FILE if you use your own certificate authority. ' +
      'To accept the risk instead, add allow_insecure=true to the URL.',
  );
}

/** By a Unix socket or over loopback. */
function isThisMachine(host: string): boolean {
  return (
    host.startsWith('/') ||
    host === 'localhost' ||
    host === '::1' ||
    (isIPv4(host) && host.startsWith('127.'))
  );
}

/**
 * Whether the driver's TLS settings, in the form of Node's `tls.connect`, check everything. Missing settings mean a
 * full check.
 */
function verifiesFully(ssl: unknown): boolean {
  if (ssl === true) return true;
  if (typeof ssl !== 'object' || ssl === null) return false;
  const { rejectUnauthorized, checkServerIdentity } = ssl as Record<string, unknown>;
  return rejectUnauthorized !== false && checkServerIdentity === undefined;
}

/**
 * Turns an error of PostgreSQL or of the connection into a message: the cause, the state, and a remedy. `doing`: "be
 * written".
 */
function postgresFailure(error: unknown, label: string, doing: string): StateError {
  if (error instanceof StateError) return error;
  return new StateError(`The state ${label} could not ${doing}: ${explain(error)}`, { cause: error });
}

/** The SQLSTATE of an answer from the server; `undefined` where it is not the server that speaks. */
function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  return String(error.code);
}

/** Is the connection gone with this error? Without it the lock is gone, too. */
function endsConnection(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return true;
  return state.startsWith('08') || severityOf(error) === 'FATAL' || severityOf(error) === 'PANIC';
}

function severityOf(error: unknown): string {
  return error instanceof Error && 'severity' in error ? String(error.severity) : '';
}

function explain(error: unknown): string {
  const said = saidBy(error);
  const state = sqlState(error);
  if (state === undefined) return explainNetwork(error, said);
  const [cause, remedy] = answers[state] ?? [];
  return cause === undefined ? `${said} (SQLSTATE ${state}).` : `${cause} (${said}). ${remedy}`;
}

const refused = [
  'the server refuses user or password',
  'Check them in the URL, or in PGUSER and PGPASSWORD.',
];
const restarting = ['the server is stopping or starting', 'Start again when it is up.'];
const locked = [
  'it took too long',
  'Nothing was recorded. Check for another session that holds locks in the schema vdcsync.',
];

/** The cause and the way out, by the SQLSTATE of the server's answer. */
const answers: Readonly<Record<string, readonly string[]>> = {
  '25006': [
    'the server is read-only',
    'Name the primary, not a standby. If it is the primary, its disk may be full: free some space, then set default_transaction_read_only to off.',
  ],
  '28000': refused,
  '28P01': refused,
  '3D000': ['the database does not exist', 'Create it first; vdcsync makes the tables in it.'],
  '42501': ['the user lacks a right', 'It needs to own the schema vdcsync, or to be allowed to create it.'],
  '53100': ["the server's disk is full", 'Free some space; nothing was recorded.'],
  '53300': ['the server has no connection free', 'Close other connections, or raise max_connections.'],
  '55P03': locked,
  '57014': locked,
  '57P01': restarting,
  '57P02': restarting,
  '57P03': restarting,
};

function explainNetwork(error: unknown, said: string): string {
  if (/password/i.test(said)) {
    return `the server asks for a password (${said}). Put it into the URL or into PGPASSWORD.`;
  }
  const call = error instanceof Error && 'syscall' in error ? error.syscall : undefined;
  if (call === 'open') return `a file that the URL names cannot be read (${said}).`;
  if (/certificate|SSL|TLS|altnames/i.test(said)) {
    return `no trusted TLS connection could be made (${said}). Check sslmode and sslrootcert in the URL.`;
  }
  if (call !== undefined || error instanceof AggregateError || /timeout|terminated/i.test(said)) {
    return `the server cannot be reached, or has gone (${said}). Check host and port, and that it runs.`;
  }
  return `${said}.`;
}

/** An error of several addresses has no message of its own. */
function saidBy(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== '') return error.message.replace(/\.$/, '');
  const parts = error instanceof AggregateError ? error.errors.map(saidBy) : [];
  return parts.join('; ') || ('code' in error ? String(error.code) : error.name);
}
