import type { Random } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import { HiddenTexts } from '../core/hidden-texts.ts';
import type { ReadPort, TaskWatch, WritePort } from '../core/ports.ts';
import type { RequestCounts } from '../core/progress.ts';
import { isLoopbackHost } from '../core/text.ts';
import { type ApiAnswer, createApiClock } from './answer.ts';
import type { ReadPriority } from './budget.ts';
import { type ApiLogger, silent } from './call.ts';
import { Pipeline, type Surroundings } from './pipeline.ts';
import { createReads } from './reads.ts';
import { createTaskWatch } from './tasks.ts';
import { createTokenLevels, type TokenLevel } from './token-record.ts';
import { createWrites } from './writes.ts';

interface ClientOptions extends Surroundings {
  /** For the jitter of retried reads. */
  readonly random: Random;
  readonly logger?: ApiLogger;
  /** Of vdcsync, for the `User-Agent`. */
  readonly version?: string;
  /** One whole exchange, in ms of the API's time; at least 2 s real. Default 30,000. */
  readonly timeoutMs?: number;
}

/** The API as the engine sees it. Every request goes through the budget of the token that the request carries. */
export interface Client {
  /** Every documented read, waiting for the budget at the given priority; `halt` gives up on all of them. */
  reads(priority: ReadPriority, halt?: AbortSignal): ReadPort;
  readonly writes: WritePort;
  readonly tasks: TaskWatch;
  /** The values of the environment that the client sends and takes out of the answers. */
  readonly hidden: HiddenTexts;
  /**
   * One GET of any path below the base URL, within the read budget and without a retry. Diagnosis uses it
   * to find out which paths a deployment serves. Rejects with `TransportError`.
   */
  probe(path: string): Promise<ApiAnswer>;
  /** The level of each current token as writes have shown it, those of earlier processes included. */
  tokenLevels(): Promise<readonly TokenLevel[]>;
  /** Since the client was made. */
  counts(): RequestCounts;
  /** How long one exchange can last, in ms of the client's clock: a lost answer is not known before. */
  readonly requestTimeoutMs: number;
}

/** The time-out of an exchange without `timeoutMs`. */
const defaultTimeoutMs = 30_000;

/**
 * The client for one token of one API, or several of one project: everything behind its ports shares each token's
 * two budgets. Two clients of one token in one process would not know of each other.
 *
 * @throws ConfigError for a base URL that cannot be used.
 */
export function createClient(options: ClientOptions): Client {
  const { clock, profile, logger = silent } = options;
  const counters = { reads: 0, writes: 0, polls: 0, probes: 0, throttled: 0 };
  const apiClock = createApiClock(clock);
  const realTimeoutMs = scaledTimeout(options.timeoutMs ?? defaultTimeoutMs, profile.timeScale);
  const baseUrl = parseBaseUrl(options.baseUrl);
  const levels = createTokenLevels(options.uses, clock);
  const hidden = new HiddenTexts();
  const own = { ...options, baseUrl, logger, apiClock, hidden };
  const userAgent = `vdcsync/${options.version ?? 'unknown'}`;
  const pipeline = new Pipeline({ ...own, level: levels.known, userAgent, realTimeoutMs, counters });
  const readsOptions = { ...own, pipeline };
  return {
    reads: (priority, halt) => createReads(readsOptions, priority, halt),
    writes: createWrites(pipeline, profile, hidden, levels.learn),
    hidden,
    tokenLevels: () => Promise.all(pipeline.tokens().map(levels.known)),
    tasks: createTaskWatch({
      reads: createReads(readsOptions, 'poll'),
      urgentReads: createReads(readsOptions, 'urgent'),
      clock,
      memory: options.uses,
      limits: profile.limits,
      logger,
    }),
    probe: (path) => pipeline.exchange({ method: 'GET', path, bucket: 'reads', priority: 'operation' }),
    counts: () => ({ ...counters }),
    requestTimeoutMs: realTimeoutMs * profile.timeScale,
  };
}

/** A faster API has shorter time-outs. The machine and the network are not faster, so time-outs have a minimum. */
const shortestTimeoutMs = 2_000;

function scaledTimeout(timeoutMs: number, timeScale: number): number {
  return Math.max(Math.min(timeoutMs, shortestTimeoutMs), timeoutMs / timeScale);
}

/**
 * Reads the address of the API: https, or http on this machine, with the API's version as
 * the last segment of its path. Returns the address without a slash at its end.
 *
 * @throws ConfigError with the error of the address. The message never repeats a part that may be a credential.
 * @source API §9
 */
export function parseBaseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (url === null) throw new ConfigError('It is not a URL. Example: https://api.example.com/v1');
  if (url.username !== '' || url.password !== '') {
    throw new ConfigError(
      'The base URL holds a user name or password: the token alone identifies the project.',
    );
  }
  const shown = `${url.origin}${url.pathname}`;
  if (url.search !== '' || url.hash !== '') {
    throw new ConfigError(`The base URL has a query or fragment: remove the part after ${shown}.`);
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopbackHost(url.hostname))) {
    throw new ConfigError(`The base URL ${shown} is not https: others on the network could read the token.`);
  }
  const path = url.pathname.replace(/\/$/, '');
  if (!/\/v\d+$/.test(path)) {
    throw new ConfigError(`The base URL ${shown} does not end in the API's version, such as /v1.`);
  }
  return `${url.origin}${path}`;
}
