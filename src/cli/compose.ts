import { randomUUID } from 'node:crypto';
import type { BudgetWait } from '../api/budget.ts';
import { type ApiLogger, silent } from '../api/call.ts';
import { type Client, createClient, parseBaseUrl } from '../api/client.ts';
import { readOnlyMemory, type UseMemory } from '../api/token-record.ts';
import type { TokenPlace } from '../core/desired.ts';
import { ConfigError, StateError } from '../core/errors.ts';
import { given } from '../core/json.ts';
import type { ReadPort } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { ProgressEvent } from '../core/progress.ts';
import type { StateStore } from '../core/state.ts';
import { span } from '../core/text.ts';
import { timeOfDay } from '../core/time.ts';
import type { Transport } from '../core/transport.ts';
import type { ProjectSession } from '../daemon/ports.ts';
import type { EngineDeps } from '../engine/deps.ts';
import { createEngine } from '../engine/engine.ts';
import type { OpenTelemetryTracing } from '../platform/open-telemetry.ts';
import { scaledClock } from '../platform/system.ts';
import { kinds } from '../reconcilers/registry.ts';
import type { LockHolder } from '../state/owner-lock.ts';
import type { Replica } from '../state/postgres-sessions.ts';
import { openSqliteState } from '../state/sqlite-driver.ts';
import { type CommonFlags, isUrl } from './flags.ts';
import {
  baseUrlOf,
  clockOf,
  logSettings,
  profileOf,
  randomOf,
  stateLocation,
  tokenSource,
} from './settings/config.ts';
import { type Io, version } from './terminal.ts';

/** Everything a command works with, put together for one project. */
export interface Session
  extends Omit<ProjectSession, 'reads' | 'onCommand'>,
    Pick<Client, 'writes' | 'hidden' | 'probe' | 'tokenLevels'> {
  readonly reads: ReadPort;
  /** How many times faster than real time `clock` runs. */
  readonly timeScale: number;
  /** Reads at another priority than `reads`, which has the lowest. */
  readonly readsAs: EngineDeps['reads'];
}

export interface SessionOptions {
  /** `read` changes nothing on disk: neither the state, nor the budgets in it, nor the emulator's world. */
  readonly mode: 'read' | 'write';
  readonly projectId: number;
  readonly onEvent?: (event: ProgressEvent) => void;
  /** Where log lines go; standard error where left out. */
  readonly writeLog?: (line: string) => void;
  /** Takes the place of the log that the environment asks for. */
  readonly logger?: ApiLogger;
  /** The place of the token, according to the spec. */
  readonly token?: TokenPlace | undefined;
  /** Wait for a state that another process owns, instead of refusing. Called once with the owner. */
  readonly onWait?: (holder: string) => void;
  /** This process as one of a fleet: waits for moments only, since another project may be free. */
  readonly replica?: Replica | undefined;
}

/** Over https the API; over http a local service in place of the API, or a proxy to it; else the embedded emulator. */
const serviceNames = ['api', 'local', 'emulator'] as const;
type ServiceName = (typeof serviceNames)[number];

/** An API, and the client side of it. */
interface Service {
  readonly name: ServiceName;
  readonly baseUrl: string;
  readonly tokens: () => readonly string[];
  readonly transport: Transport;
  readonly profile: ApiProfile;
}

/** Connects client, state and engine. If a later part fails, the parts that are already open are closed. */
export async function openSession(flags: CommonFlags, io: Io, options: SessionOptions): Promise<Session> {
  const service = await openService(flags, io, options);
  try {
    const store = await openStore(flags, io, options.mode, options);
    try {
      await checkService(store, service.name, options.mode);
      return await assemble(service, store, io, options);
    } catch (error) {
      await store.close();
      throw error;
    }
  } catch (error) {
    await service.transport.close();
    throw error;
  }
}

/** Opens a session for the work, and closes it after the work. */
export async function inSession<Result>(
  flags: CommonFlags,
  io: Io,
  options: SessionOptions,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const session = await openSession(flags, io, options);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** The same for the state alone. */
export async function fromState<Result>(
  flags: CommonFlags,
  io: Io,
  read: (store: StateStore) => Promise<Result>,
): Promise<Result> {
  const store = await openStore(flags, io, 'read');
  try {
    return await read(store);
  } finally {
    await store.close();
  }
}

/** The state alone, for commands that do not talk to the API. */
export async function openStore(
  flags: CommonFlags,
  io: Io,
  mode: 'read' | 'write',
  { onWait, replica }: Pick<SessionOptions, 'onWait' | 'replica'> = {},
): Promise<StateStore> {
  const waiting =
    onWait === undefined
      ? {}
      : {
          waitMs: replica === undefined ? Number.POSITIVE_INFINITY : replicaWaitMs,
          clock: clockOf(io),
          onWait: (holder: LockHolder | undefined) =>
            onWait(holder === undefined ? 'another process' : `process ${holder.pid} on ${holder.host}`),
        };
  const [location, now, lineage] = [stateLocation(flags, io), clockOf(io).now(), randomUUID()];
  const options = { mode, now, lineage, ...waiting };
  if (!isUrl(location)) return openSqliteState(location, options);
  // Loaded only here: the driver would cost every start with a file its time.
  const { openPostgresState } = await import('../state/postgres.ts');
  return openPostgresState(location, { ...options, ...(replica === undefined ? {} : { replica }) });
}

/** How long a replica waits for a state before it takes another project, in real ms. */
const replicaWaitMs = 1_000;

async function assemble(
  service: Service,
  store: StateStore,
  io: Io,
  options: SessionOptions,
): Promise<Session> {
  const { profile, transport, baseUrl, tokens } = service;
  // The limits of all tokens together, for the estimates of time: the API's limits are per token. @source API §8
  const together = withLimits(profile, tokens().length);
  // Counted from the state's birth, so that every process with this state has the same accelerated time.
  const { createdAt } = await store.info();
  const clock = scaledClock(clockOf(io), profile.timeScale, createdAt);
  const tracing = await tracingOf(io, options);
  const client = createClient({
    baseUrl,
    token: tokens,
    projectId: options.projectId,
    transport,
    clock,
    random: randomOf(io),
    profile,
    uses: memoryOf(store, options),
    logger: await loggerOf(io, options),
    // A daemon has a log alone.
    ...(options.logger === undefined
      ? { onWait: (wait: BudgetWait) => lineWriterOf(io, options)(waitLine(wait, together, clock.now())) }
      : {}),
    version,
    ...(tracing === undefined ? {} : { tracing }),
  });
  const engine = createEngine({
    ...client,
    ...{ store, clock, random: randomOf(io), kinds, profile: together },
    ...given({ tracing, onEvent: options.onEvent }),
  });
  return {
    ...client,
    ...{ engine, store, clock, timeScale: profile.timeScale, profile: together },
    ...{ reads: client.reads('refresh'), readsAs: client.reads },
    tokenMark: () => client.writes.token(),
    close: async () => {
      await tracing?.flush();
      await transport.close();
      await store.close();
    },
  };
}

// One of the two sides is used, so one is loaded.

async function openService(flags: CommonFlags, io: Io, options: SessionOptions): Promise<Service> {
  if (flags.emulator !== true) return remoteService(flags, io, options);
  return (await import('./embedded.ts')).embeddedService(flags, io, options);
}

async function remoteService(flags: CommonFlags, io: Io, { token: place }: SessionOptions): Promise<Service> {
  const baseUrl = checkedBaseUrl(io);
  const tokens = tokenSource(io, place);
  const { profile } = profileOf(flags, io);
  const { undiciTransport } = await import('../platform/undici-transport.ts');
  const name = baseUrl.startsWith('https:') ? 'api' : 'local';
  const connections = connectionsOfToken * Math.min(tokens().length, mostTokensAtOnce);
  return { name, baseUrl, tokens, profile, transport: undiciTransport({ connections }) };
}

/** The limits of several tokens together. */
function withLimits(profile: ApiProfile, tokens: number): ApiProfile {
  const { windowMs, reads, writes } = profile.limits;
  return { ...profile, limits: { windowMs, reads: reads * tokens, writes: writes * tokens } };
}

/** The most requests of one budget that are in flight at once. */
const connectionsOfToken = 8;
const mostTokensAtOnce = 4;

function checkedBaseUrl(io: Io): string {
  const given = baseUrlOf(io);
  try {
    return parseBaseUrl(given);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(`VDC_BASE_URL cannot be used. ${error.message}`);
  }
}

const serviceNouns: Readonly<Record<ServiceName, string>> = {
  api: 'a real API',
  local: 'an API on this machine, such as `vdcsync emulator`',
  emulator: 'the embedded emulator',
};

/** An emulator gives out ids of its own: its state must never meet the real API, nor the other way round. */
async function checkService(store: StateStore, name: ServiceName, mode: 'read' | 'write'): Promise<void> {
  const { service } = await store.info();
  if (service !== null && service !== name) {
    const recorded = serviceNames.find((each) => each === service);
    const other = recorded === undefined ? `another API (\`${service}\`)` : serviceNouns[recorded];
    throw new StateError(
      `This state belongs to ${other}, so it cannot be used with ${serviceNouns[name]}. Name another state with --state.`,
    );
  }
  if (service === null && mode === 'write') await store.claimService(name);
}

function memoryOf(store: StateStore, { mode, replica }: SessionOptions): UseMemory {
  if (mode !== 'write') return readOnlyMemory(store);
  if (replica === undefined) return store;
  return {
    note: (name) => store.note(name),
    putNote: (name, value) => store.putNote(name, value),
    isShared: true,
  };
}

function lineWriterOf(io: Io, { writeLog }: Pick<SessionOptions, 'writeLog'>): (line: string) => void {
  return writeLog ?? ((line) => void io.stderr.write(line));
}

/** Traces, where the standard variables ask for them. A daemon's reconciliations are no part of the job that started it. */
async function tracingOf({ env }: Io, { logger }: SessionOptions): Promise<OpenTelemetryTracing | undefined> {
  if (!asksForTraces(env)) return undefined;
  const { openTelemetry } = await import('../platform/open-telemetry.ts');
  const isDaemon = logger !== undefined;
  return openTelemetry({ version, traceparent: isDaemon ? undefined : env.TRACEPARENT });
}

function asksForTraces(env: Io['env']): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return false;
  const known = traced.get(env);
  if (known !== undefined) return known;
  const asks = Object.entries(env).some(([name, value]) => name.startsWith('OTEL_') && value !== '');
  traced.set(env, asks);
  return asks;
}

/** A fleet has a variable for each project's token, and opens a session for each reconciliation. */
const traced = new WeakMap<Io['env'], boolean>();

/** Why nothing happens for a while. @param nowMs on the clock of all printed times */
function waitLine(
  { of, realMs, limited }: BudgetWait,
  { limits, timeScale }: ApiProfile,
  nowMs: number,
): string {
  const until = timeOfDay(nowMs + realMs * timeScale);
  const allowed = `${limits[of]} ${of} in ${span(limits.windowMs)}`;
  const why = limited ? 'the API answered 429' : `the API allows ${allowed}`;
  return `vdcsync: rate limited for ${span(realMs)}, until ${until}: ${why}\n`;
}

async function loggerOf(io: Io, options: SessionOptions): Promise<ApiLogger> {
  if (options.logger !== undefined) return options.logger;
  const { level, format } = logSettings(io);
  if (level === 'silent') return silent;
  const { createLogger } = await import('../platform/logger.ts');
  return createLogger({ level, format, write: lineWriterOf(io, options) });
}
