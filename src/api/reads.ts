import { z } from 'zod';
import type { Random } from '../core/clock.ts';
import { ApiProblem } from '../core/errors.ts';
import type { HiddenTexts } from '../core/hidden-texts.ts';
import { given } from '../core/json.ts';
import type { ReadPort } from '../core/ports.ts';
import type { UndocumentedOperation } from '../core/profile.ts';
import type { Task, TaskId } from '../core/resources.ts';
import { fitsPath } from '../core/text.ts';
import { TransportError } from '../core/transport.ts';
import { type ApiAnswer, excerptOf } from './answer.ts';
import type { ReadPriority } from './budget.ts';
import type { Pipeline, PipelineOptions } from './pipeline.ts';
import {
  backupPolicySchema,
  backupSchema,
  firewallSchema,
  imageEntrySchema,
  ipSchema,
  isoSchema,
  networkInterfaceSchema,
  networkSchema,
  parseKeepingDecimals,
  pricingSchema,
  projectSchema,
  readData,
  serverSchema,
  serverTypeSchema,
  taskSchema,
} from './wire.ts';
import { pathSegment } from './writes.ts';

interface ReadsOptions
  extends Pick<PipelineOptions, 'baseUrl' | 'clock' | 'profile' | 'apiClock' | 'logger' | 'hidden'> {
  readonly pipeline: Pipeline;
  readonly random: Random;
}

/** A read is sent this often at most; then its last failure is the answer. */
export const maxTries = 5;
/** As long as the API has never answered, the address is more likely wrong than the service away: some 4 s. */
const maxFirstTries = 3;
/** The longest wait that the answer to a read can demand, in real ms. */
const mostRetryAfterMs = 600_000;
/** The first wait between two tries, and the longest, in ms; each is four times the last. */
const backOff = { firstMs: 1_000, longestMs: 60_000, factor: 4 } as const;

/** The reads of the client. In addition to the port, a poll can end early: each task has a signal of its own. */
export interface Reads extends ReadPort {
  findTask(id: TaskId, signal?: AbortSignal): Promise<Task | undefined>;
}

/**
 * Every documented read, at one priority, and the reads of servers that the profile enables.
 *
 * A read is repeated if the cause may disappear: no answer, an answer that is not the API's own, an
 * unreadable one, 5xx, 429. A refusal is final. A readable answer without the documented shape
 * is final too, because a repetition does not change the shape.
 *
 * A `find…` returns `undefined` only for the API's own 404. For a resource inside a
 * server the 404 must be `server_not_found`: any other 404 there may be about something else.
 */
export function createReads(options: ReadsOptions, priority: ReadPriority, halt?: AbortSignal): Reads {
  const { pipeline, clock, random, profile, logger } = options;

  async function read<T>(path: string, schema: z.ZodType<T>, signal = halt): Promise<T> {
    for (let tries = 1; ; tries++) {
      const outcome = await readOnce(path, schema, signal);
      if ('data' in outcome) return outcome.data;
      signal?.throwIfAborted();
      const { error } = outcome;
      const lasting = error instanceof TransportError && error.lasting;
      if (lasting || tries >= maxFirstTries) refuseWrongAddress(outcome);
      if (lasting || outcome.final || tries >= maxTries) throw error;
      const pause = waitMs(tries, outcome.retryAfterMs ?? 0);
      // The pipeline has logged the limit already.
      const level = error instanceof ApiProblem && error.status === 429 ? 'debug' : 'warn';
      logger[level](
        { path, attempt: tries, waitMs: Math.round(pause), error },
        'a read failed: trying again',
      );
      await clock.sleep(pause, signal);
    }
  }

  function refuseWrongAddress({ error, elsewhere }: Failure): void {
    if (!(error instanceof TransportError)) return;
    const { code, message } = error;
    if (error.effect === 'none' && !pipeline.reached()) {
      const text = `no connection to ${options.baseUrl}: ${excerptOf(message)}`;
      throw new TransportError(text, 'none', code, error);
    }
    if (elsewhere === true && !pipeline.identified()) {
      const text = `the service at ${options.baseUrl} is not the API: ${message}`;
      throw new TransportError(text, 'unknown', code, error);
    }
  }

  async function readOnce<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<Decoded<T>> {
    let answer: ApiAnswer;
    try {
      answer = await pipeline.exchange({ method: 'GET', path, bucket: 'reads', priority, signal });
    } catch (error) {
      const closed = !(error instanceof TransportError) || error.code === 'CLOSED';
      return { error, final: closed || (signal?.aborted ?? false) };
    }
    return judge(path, answer, schema, options.hidden);
  }

  /** Jittered, so that clients that failed together do not come back together. */
  function waitMs(tries: number, retryAfterMs: number): number {
    const step = Math.min(backOff.longestMs, backOff.firstMs * backOff.factor ** (tries - 1));
    // `Retry-After` is real time; the clock here may run faster.
    return Math.max(
      step * (0.5 + random.next() / 2),
      Math.min(retryAfterMs, mostRetryAfterMs) * profile.timeScale,
    );
  }

  /** `code`: the one 404 that means absence; without it every one of the API's own does. */
  async function find<T>(reading: Promise<T>, code?: string): Promise<T | undefined> {
    try {
      return await reading;
    } catch (error) {
      const absent = error instanceof ApiProblem && error.status === 404 && error.requestId !== null;
      if (absent && (code === undefined || error.code === code)) return undefined;
      throw error;
    }
  }

  const ofServer = <T>(server: number, what: string, schema: z.ZodType<T>) =>
    find(read(`/servers/${pathSegment(server)}/${what}`, schema), 'server_not_found');
  const ofType = <T>(type: number, what: string, schema: z.ZodType<T>) =>
    read(`/server-types/${pathSegment(type)}/${what}`, schema);

  const { list_servers: listing, read_server: reading } = profile.operations;
  const undocumented: Pick<Reads, 'servers' | 'findServer'> = {
    ...(listing && {
      servers: () => asEnabled('list_servers', read(listing.path ?? '/servers', lists.servers)),
    }),
    ...(reading && {
      findServer: (id) => {
        const path = (reading.path ?? '/servers/{id}').replace(/\{\w+\}/, pathSegment(id));
        return asEnabled('read_server', find(read(path, serverSchema), 'server_not_found'));
      },
    }),
  };

  return {
    ...undocumented,
    project: () => read('/project', projectSchema),
    ips: () => read('/ips', lists.ips),
    findIp: async (id) => find(read(`/ips/${pathSegment(id)}`, ipSchema)),
    networks: () => read('/networks', lists.networks),
    isos: () => read('/isos', lists.isos),
    findIso: async (id) => find(read(`/isos/${asked(id)}`, isoSchema)),
    findNetworkInterfaces: async (server) => ofServer(server, 'network-interfaces', lists.networkInterfaces),
    findFirewall: async (server) => ofServer(server, 'firewall', firewallSchema),
    findBackups: async (server) => ofServer(server, 'backups', lists.backups),
    findBackupPolicy: async (server) => ofServer(server, 'backup-policy', backupPolicySchema),
    serverTypes: () => read('/server-types', lists.serverTypes),
    pricing: async (type) => ofType(type, 'pricing', pricingSchema),
    images: async (type) => ofType(type, 'images', lists.images),
    findTask: async (id, signal) => find(read(`/tasks/${asked(id)}`, taskSchema, signal)),
    apiNow: () => options.apiClock.now(),
    now: () => clock.now(),
  };
}

/** Where the API does not know a path that the API profile enables, the profile is at fault. */
async function asEnabled<T>(operation: UndocumentedOperation, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof ApiProblem) || (error.status !== 404 && error.status !== 405)) throw error;
    const { status, code, requestId, message } = error;
    const advice = `the API profile enables ${operation} at this path: correct the path, or remove the operation`;
    throw new ApiProblem(status, code, requestId, `${message.replace(/\.$/, '')}; ${advice}`);
  }
}

/** Zod compiles a schema at its first use, which takes longer than reading an answer. */
const lists = {
  servers: z.array(serverSchema),
  ips: z.array(ipSchema),
  networks: z.array(networkSchema),
  isos: z.array(isoSchema),
  networkInterfaces: z.array(networkInterfaceSchema),
  backups: z.array(backupSchema),
  serverTypes: z.array(serverTypeSchema),
  images: z.array(imageEntrySchema),
};

type Decoded<T> = { readonly data: T } | Failure;

interface Failure {
  readonly error: unknown;
  readonly final: boolean;
  readonly retryAfterMs?: number;
  /** Another service answers at this address, with a page or a redirect. A repetition does not help. */
  readonly elsewhere?: boolean;
}

function judge<T>(path: string, answer: ApiAnswer, schema: z.ZodType<T>, hidden: HiddenTexts): Decoded<T> {
  const { status } = answer;
  const wait = given({ retryAfterMs: answer.retryAfterMs });
  const what = `GET ${path}`;
  switch (answer.sort) {
    case 'unidentified':
      return {
        error: unreadable(`${what}: ${answer.reason}`),
        final: false,
        elsewhere: status < 500 && status !== 408 && status !== 429,
        ...wait,
      };
    case 'malformed':
      return { error: unreadable(`${what}: ${status}, ${answer.malformed}`), final: false, ...wait };
    case 'problem': {
      // Absence is believed of the documented form alone.
      if (status === 404 && !answer.documented) {
        return { error: unreadable(`${what}: 404 without a problem document`), final: false };
      }
      const { code, title, detail } = answer.problem;
      // A detail says more than the title.
      const said = [code, detail ?? title].filter((each) => each !== null && each !== undefined).join(': ');
      const error = new ApiProblem(
        status,
        code,
        answer.requestId,
        `${what} answered ${status} ${said}`.trim(),
        status === 404 && path === '/project' ? 'no_project' : 'refusal',
      );
      return { error, final: status < 500 && status !== 429, ...wait };
    }
    case 'success': {
      // A 2xx other than 200, for example 206: part of a list is not the list.
      if (status !== 200) return { error: unreadable(`${what}: ${status} instead of 200`), final: false };
      const result = readData(hidden.inAnswer(parseKeepingDecimals(answer.text)), schema);
      if ('data' in result) return result;
      const { detail } = hidden.inAnswer({ detail: result.mismatch });
      const message = `the answer to ${what} is not as documented: ${excerptOf(detail)}`;
      return { error: new ApiProblem(status, null, answer.requestId, message, 'undocumented'), final: true };
    }
  }
}

/** The id as a path segment. If no path can carry the API's id, its resource cannot be read. */
function asked(id: string): string {
  if (fitsPath(id)) return pathSegment(id);
  throw new TransportError(
    `the id ${JSON.stringify(id)} cannot be part of a URL path`,
    'none',
    'UNUSABLE_ID',
  );
}

/** Complete, but not an answer of the API: as good as none. */
function unreadable(message: string): TransportError {
  return new TransportError(message, 'unknown', 'UNREADABLE_ANSWER');
}
