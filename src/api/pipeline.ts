import { createHash } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import { maskerOf } from '../core/masking.ts';
import type { ApiProfile } from '../core/profile.ts';
import { type Span, type SpanAttributes, type Tracing, traced } from '../core/tracing.ts';
import { type HttpRequest, type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import { type Answer, readAnswer } from './answer.ts';
import type { ApiClock } from './api-clock.ts';
import { Budget, type BudgetWait, type Slot, type UseMemory } from './budget.ts';
import type { ApiLogger } from './logging.ts';
import type { ReadPriority } from './waiting-line.ts';

/** Requests sent so far; `reads` does not hold the `polls`, and `limited` are answers 429 among them all. */
export interface Counters {
  reads: number;
  writes: number;
  polls: number;
  limited: number;
}

/** One request before it has a token, an address and a slot. */
export interface Call {
  readonly method: string;
  /** Below the base URL, starting with a slash. */
  readonly path: string;
  readonly bucket: 'reads' | 'writes';
  readonly priority: ReadPriority;
  /** The exact text; none: no body and no content type. @assumption A21 */
  readonly body?: string;
  readonly idempotencyKey?: string;
  /** Name of the only token it may go out under. */
  readonly token?: string;
  readonly signal?: AbortSignal | undefined;
  /** Asked right before it is sent, and by the transport once more with a connection in hand. */
  readonly mayGo?: (() => boolean) | undefined;
}

export interface PipelineOptions {
  readonly baseUrl: string;
  readonly token: () => string;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly profile: ApiProfile;
  readonly uses: UseMemory;
  readonly logger: ApiLogger;
  readonly userAgent: string;
  readonly realTimeoutMs: number;
  readonly counters: Counters;
  readonly apiClock: ApiClock;
  readonly onWait?: (wait: BudgetWait) => void;
  readonly tracing?: Tracing | undefined;
}

/** A 429 that does not say how long closes its bucket for one window. */
const unsaidRetryAfter = (profile: ApiProfile) => profile.limits.windowMs;

/**
 * The way of every request, in one piece:
 *
 * 1. **budget**: wait for a slot of the bucket that belongs to the token as it is now
 * 2. **auth**: the same token, read from its source each time, so that a new one is used at once
 * 3. **send**: once, under a time-out; nothing is repeated and no redirect followed here
 * 4. **429**: closes the whole bucket for `Retry-After`, before the slot's end lets another request go
 * 5. **slot**: given back as answered, lost or unsent; how long it cools depends on it
 * 6. **clock**: the API's own time, from the answer's `Date`
 * 7. **answer**: told apart as success, problem or unidentified; its request id goes to the log
 *
 * Repeating is left to those who know what it means: reads in `reads.ts`, writes in the engine.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #budgets: (token: string) => Budgets;
  #reached = false;
  #identified = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#budgets = budgetsByToken(options);
  }

  /**
   * Sends once. Resolves with whatever complete answer came. Rejects with `TransportError`
   * once something may have been sent; with anything else, nothing was.
   */
  async exchange(call: Call): Promise<Answer> {
    const { slot, token, budget } = await this.#acquire(call);
    if (call.mayGo?.() === false) {
      slot.unsent();
      throw new Error('what it was decided on is too old by now');
    }
    this.#count(call);
    return traced(this.#options.tracing, ...spanOf(call), (span) =>
      this.#exchanged(call, { slot, token, budget }, span),
    );
  }

  async #exchanged(call: Call, { slot, token, budget }: Pass, span: Span): Promise<Answer> {
    const { clock, apiClock } = this.#options;
    const startedAt = clock.monotonic();
    const response = await this.#sendOnce(httpRequest(this.#options, call, token), slot, call);
    try {
      const answer = readAnswer(withoutToken(response, token));
      this.#identified ||= answer.sort !== 'unidentified';
      const closing = answer.status === 429 ? this.#limited(answer, budget) : undefined;
      slot.answered();
      apiClock.see(response);
      this.#log(call, answer, clock.monotonic() - startedAt);
      span.set(answerAttributes(answer));
      await closing;
      return answer;
    } catch (error) {
      // Whatever fails here, the request was sent.
      throw new TransportError('the answer could not be taken in', 'unknown', 'UNKNOWN', error);
    }
  }

  /** Resolves once the write budget has room. */
  room(signal?: AbortSignal): Promise<void> {
    return this.#budgets(usableToken(this.#options.token())).writes.room(signal);
  }

  /** Names the token as it is now: equal names, equal tokens. */
  token(): string {
    return nameOf(this.#options.baseUrl, this.#options.token());
  }

  /** Whether any request of this process has got through, with an answer or without. */
  reached(): boolean {
    return this.#reached;
  }

  /** Whether the API itself has ever answered this process, and not something in its place. */
  identified(): boolean {
    return this.#identified;
  }

  /** The token may change while its request waits; then it waits again, in the new token's budget. */
  async #acquire(call: Call): Promise<Pass> {
    const tokenNow = () => usableToken(this.#options.token());
    for (;;) {
      const before = tokenNow();
      if (call.token !== undefined && nameOf(this.#options.baseUrl, before) !== call.token) {
        throw new ConfigError('the token has been exchanged since its project was read');
      }
      const budget = this.#budgets(before)[call.bucket];
      const slot = await budget.acquire(call.priority, call.signal);
      try {
        if (tokenNow() === before) return { slot, token: before, budget };
      } catch (error) {
        slot.unsent();
        throw error;
      }
      slot.unsent();
    }
  }

  async #sendOnce(request: HttpRequest, slot: Slot, { signal, mayGo }: Call): Promise<HttpResponse> {
    const { transport, realTimeoutMs } = this.#options;
    try {
      const response = await transport.send(request, {
        timeoutMs: realTimeoutMs,
        ...(signal === undefined ? {} : { signal }),
        mayGo,
      });
      this.#reached = true;
      return response;
    } catch (error) {
      const failure =
        error instanceof TransportError
          ? error
          : new TransportError('the exchange failed', 'unknown', 'UNKNOWN', error);
      if (failure.effect === 'unknown') this.#reached = true;
      if (failure.effect === 'none') slot.unsent();
      else slot.lost();
      throw failure;
    }
  }

  #count({ bucket, priority }: Call): void {
    const { counters } = this.#options;
    if (bucket === 'writes') counters.writes += 1;
    else if (priority === 'poll') counters.polls += 1;
    else counters.reads += 1;
  }

  #log({ method, path }: Call, answer: Answer, durationMs: number): void {
    const told = 'requestId' in answer ? { requestId: answer.requestId } : { reason: answer.reason };
    const fields = { method, path, status: answer.status, durationMs: Math.round(durationMs), ...told };
    this.#options.logger.debug(fields, 'answered');
  }

  /**
   * `Retry-After` is real seconds on both sides, and the clock here may run faster than
   * real time: the wait in its milliseconds is as many times longer. A replayed 429 tells
   * of a minute long gone. @assumption A1
   */
  async #limited(answer: Answer, budget: Budget): Promise<void> {
    const { counters, profile, logger, onWait } = this.#options;
    counters.limited += 1;
    if (answer.replayed) return;
    const { retryAfterMs } = answer;
    const waitMs = retryAfterMs === undefined ? unsaidRetryAfter(profile) : retryAfterMs * profile.timeScale;
    // Told once of all that were under way together.
    if (!budget.isClosed()) {
      const level = onWait === undefined ? 'warn' : 'debug';
      logger[level]({ bucket: budget.bucket, waitMs }, 'the API limits requests: waiting');
    }
    await budget.close(waitMs);
  }
}

/** What a request goes out with. */
interface Pass {
  readonly slot: Slot;
  readonly token: string;
  readonly budget: Budget;
}

/** The span of a request: its path without ids, so that requests of one sort have one name. */
function spanOf({ method, path, bucket }: Call): [name: string, attributes: SpanAttributes] {
  const route = (path.split('?')[0] ?? '').replace(/\/[^/]*\d[^/]*/g, '/{id}');
  const attributes = { 'http.request.method': method, 'url.template': route, 'vdcsync.budget': bucket };
  return [`${method} ${route}`, attributes];
}

function answerAttributes(answer: Answer): SpanAttributes {
  return {
    'http.response.status_code': answer.status,
    ...('requestId' in answer ? { 'vdcsync.request_id': answer.requestId } : {}),
  };
}

type Budgets = Readonly<Record<Call['bucket'], Budget>>;

/** Budgets belong to a token, so a new token has new ones. Only the current token's are kept. */
function budgetsByToken({
  baseUrl,
  clock,
  profile,
  uses,
  onWait,
}: PipelineOptions): (token: string) => Budgets {
  let current: { readonly name: string; readonly budgets: Budgets } | undefined;
  return (token) => {
    const name = nameOf(baseUrl, token);
    if (current?.name === name) return current.budgets;
    const { windowMs, reads, writes } = profile.limits;
    const common = { windowMs, clock, timeScale: profile.timeScale, memory: uses };
    const told = (of: BudgetWait['of']) =>
      onWait === undefined ? {} : { onWait: (wait: Omit<BudgetWait, 'of'>) => onWait({ ...wait, of }) };
    const budgets = {
      reads: new Budget({ ...common, ...told('reads'), bucket: `${name}:reads`, limit: reads }),
      writes: new Budget({ ...common, ...told('writes'), bucket: `${name}:writes`, limit: writes }),
    };
    current = { name, budgets };
    return budgets;
  };
}

/** The hash, not the token, names the budget: the name stands in the state and in logs. */
function nameOf(baseUrl: string, token: string): string {
  return createHash('sha256').update(`${baseUrl}\n${token}`).digest('hex').slice(0, 16);
}

function httpRequest(options: PipelineOptions, call: Call, token: string): HttpRequest {
  return {
    method: call.method,
    url: `${options.baseUrl}${call.path}`,
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, application/problem+json',
      'user-agent': options.userAgent,
      ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
    },
    ...(call.body === undefined ? {} : { body: call.body }),
  };
}

/** What the API repeats of the request that it got is passed on to reports, logs and the state: but the token is not. */
function withoutToken({ status, headers, body }: HttpResponse, token: string): HttpResponse {
  const masked = maskerOf([token]);
  return {
    status,
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, masked(text)])),
    body: masked(body),
  };
}

/** The token as a header can carry it. What it is stands in no message. */
function usableToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ConfigError(
    token === ''
      ? 'The API token is empty: set VDC_TOKEN or VDC_TOKEN_FILE.'
      : 'The API token has spaces, line breaks or characters that no header can carry.',
  );
}
