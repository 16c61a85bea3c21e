import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import type { HiddenTexts } from '../core/hidden-texts.ts';
import { member } from '../core/json.ts';
import type { Span, SpanAttributes, Tracing } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { RequestCounts } from '../core/progress.ts';
import { type HttpRequest, type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import { traced } from '../core/work.ts';
import { type ApiAnswer, type ApiClock, readAnswer } from './answer.ts';
import { Budget, type BudgetWait, type Slot } from './budget.ts';
import type { ApiLogger, Call } from './call.ts';
import { type Budgets, type PooledToken, type ProjectCheck, TokenPool } from './token-pool.ts';
import type { TokenLevel, UseMemory } from './token-record.ts';

/** Requests sent so far. */
type Counters = { -readonly [Sort in keyof RequestCounts]: number };

/** The surroundings of a client. */
export interface Surroundings {
  /** As `parseBaseUrl` takes it. */
  readonly baseUrl: string;
  /** Asked before every request, so that a token that was exchanged is used at once. Several share the work. */
  readonly token: () => string | readonly string[];
  /** The project that each of several tokens has to belong to. */
  readonly projectId?: number;
  readonly transport: Transport;
  /** Already scaled by `profile.timeScale`. */
  readonly clock: Clock;
  readonly profile: ApiProfile;
  /** Remembers budget use and small facts across processes; see `readOnlyMemory` for a dry run. */
  readonly uses: UseMemory;
  /** Called once for each long wait for a budget. Without `onWait` the client logs the waits that the API asks for. */
  readonly onWait?: (wait: BudgetWait) => void;
  /** Receives the span of each request. */
  readonly tracing?: Tracing;
}

/** The surroundings of a client, and the parts that its reads, writes and tasks share. `realTimeoutMs`: real ms. */
export interface PipelineOptions extends Surroundings {
  /** The level of a token as writes have shown it, by its name. */
  readonly level: (name: string) => Promise<TokenLevel>;
  readonly logger: ApiLogger;
  readonly userAgent: string;
  readonly realTimeoutMs: number;
  readonly counters: Counters;
  readonly apiClock: ApiClock;
  readonly hidden: HiddenTexts;
}

/** An answer, and the token that it answers. */
export type Exchanged = ApiAnswer & {
  /** Name of the token. */
  readonly sentUnder: string;
  /** A refusal of this token alone: another one may be allowed the same. */
  readonly ofToken?: true;
};

/** The most tokens that a refused read is tried with. After that the refusal is final. */
const mostTokensTried = 16;
const anyWrite: Call = { method: 'POST', path: '', bucket: 'writes', priority: 'operation' };

/** A 429 that does not say how long closes its bucket for one window. */
const unsaidRetryAfter = (profile: ApiProfile) => profile.limits.windowMs;

/**
 * The path of every request, in one piece:
 *
 * 1. **budget**: wait for a slot of the bucket that belongs to the current token; of several tokens, the first
 *    that has room (`token-pool.ts`)
 * 2. **auth**: the same token, read from its source each time, so that a new one is used at once
 * 3. **send**: once, under a time-out; this class repeats nothing and follows no redirect
 * 4. **429**: closes the whole bucket for `Retry-After`, before the end of the slot admits another request
 * 5. **slot**: given back as answered, lost or unsent; how long it cools depends on it
 * 6. **clock**: the API's own time, from the answer's `Date`
 * 7. **answer**: classified as success, problem or unidentified; its request id goes to the log
 *
 * Retries belong to the callers that know whether a repetition is safe: reads in `reads.ts`, writes in the engine.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #tokens: TokenPool;
  #reached = false;
  #identified = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    const { baseUrl, token, projectId, clock, logger, level } = options;
    this.#tokens = new TokenPool({
      ...{ baseUrl, secrets: token, projectId, clock, logger, level },
      budgets: (name) => newBudgets(options, name, () => this.#tokens.isShared),
      check: (each) => this.#projectOf(each),
    });
  }

  /**
   * Sends once; a read that is refused to one of several tokens is asked under the next one. Resolves
   * with any complete answer. Rejects with `TransportError` once something may have been
   * sent; with anything else, nothing was.
   */
  async exchange(call: Call): Promise<Exchanged> {
    const tried = new Set<PooledToken>();
    for (;;) {
      const grant = await this.#acquire(call, tried);
      // Another request's 429 may have arrived since the budget gave the slot.
      if (grant.budget.isClosed()) {
        grant.slot.unsent();
        continue;
      }
      const answer = await this.#exchangeUnder(call, grant);
      const { token } = grant;
      tried.add(token);
      const ofToken = this.#tokens.learn(token, call, answer);
      if (ofToken && call.bucket === 'reads' && tried.size < mostTokensTried) continue;
      return { ...answer, sentUnder: token.name, ...(ofToken ? { ofToken } : {}) };
    }
  }

  #exchangeUnder(call: Call, grant: Grant): Promise<ApiAnswer> {
    if (call.mayGo?.() === false) {
      grant.slot.unsent();
      return Promise.reject(new Error('the values that the request depends on are too old by now'));
    }
    this.#count(call);
    return traced(this.#options.tracing, ...spanOf(call), (span) => this.#exchanged(call, grant, span));
  }

  async #exchanged(call: Call, { slot, token, budget }: Grant, span: Span): Promise<ApiAnswer> {
    const { clock, apiClock, hidden } = this.#options;
    const startedAt = clock.monotonic();
    const response = await this.#sendOnce(httpRequest(this.#options, call, token.secret), slot, call);
    try {
      const answer = hidden.inAnswer(readAnswer(withoutToken(response, token)));
      this.#identified ||= answer.sort !== 'unidentified';
      const closing = answer.status === 429 ? this.#limited(answer, budget) : undefined;
      slot.answered();
      apiClock.see(response);
      this.#log(call, answer, clock.monotonic() - startedAt);
      span.set(answerAttributes(answer));
      await closing;
      return answer;
    } catch (error) {
      // The request was sent, no matter which step fails here.
      throw new TransportError('the answer could not be processed', 'unknown', 'UNKNOWN', error);
    }
  }

  /** Resolves once a write budget has room. `isWriteWaiting`: other reads leave slots to the reads of further writes. */
  async room(signal?: AbortSignal, isWriteWaiting = false): Promise<void> {
    this.#tokens.refresh();
    this.#tokens.reserveReads(isWriteWaiting);
    await this.#room(signal);
    this.#tokens.reserveReads(isWriteWaiting);
  }

  roomMs(writes: number): number {
    return this.#tokens.roomMs(writes);
  }

  writesPerWindow(): number {
    return this.#tokens.writesPerWindow();
  }

  async #room(signal?: AbortSignal): Promise<void> {
    if (!this.#tokens.isShared) return this.#tokens.only.budgets.writes.room(signal);
    for (;;) {
      let token: PooledToken;
      try {
        await this.#tokens.ready(anyWrite, new Set());
        token = this.#tokens.claim(anyWrite);
      } catch (error) {
        // No token may write now: the fence and the send name the cause.
        if (error instanceof ConfigError) return;
        throw error;
      }
      const { writes } = token.budgets;
      if (await unlessClosed(writes, signal, (stop) => writes.room(stop).then(() => true))) return;
    }
  }

  /** Names the current token or tokens: equal names, equal tokens. */
  token(): string {
    try {
      this.#tokens.refresh();
    } catch {
      // The next request names the cause.
      return '';
    }
    return this.#tokens.mark;
  }

  /** Names each of the tokens. */
  tokens(): readonly string[] {
    this.#tokens.refresh();
    return this.#tokens.names;
  }

  /** Whether any request of this process has got through, with an answer or without. */
  reached(): boolean {
    return this.#reached;
  }

  /** Whether the API itself has ever answered this process, and not something in its place. */
  identified(): boolean {
    return this.#identified;
  }

  /** The tokens may change while their request waits; then it waits again, in the budget of one of the new ones. */
  async #acquire(call: Call, tried: ReadonlySet<PooledToken>): Promise<Grant> {
    const tokens = this.#tokens;
    for (;;) {
      tokens.refresh();
      if (call.token !== undefined && tokens.mark !== call.token) {
        throw new ConfigError('the token has changed since its project was read');
      }
      if (tokens.isShared) await tokens.ready(call, tried);
      const token = tokens.isShared ? tokens.choose(call, tried) : tokens.only;
      const slot = await this.#slotOf(token, call);
      if (slot === undefined) continue;
      try {
        tokens.refresh();
      } catch (error) {
        slot.unsent();
        throw error;
      }
      const isSame = call.token === undefined || tokens.mark === call.token;
      if (isSame && tokens.holds(token, call)) return { slot, token, budget: token.budgets[call.bucket] };
      slot.unsent();
    }
  }

  async #slotOf({ budgets }: PooledToken, { bucket, priority, signal }: Call): Promise<Slot | undefined> {
    const budget = budgets[bucket];
    if (!this.#tokens.isShared) return budget.acquire(priority, signal);
    return unlessClosed(budget, signal, (stop) => budget.acquire(priority, stop));
  }

  /** The project of one of several tokens; a failed read decides nothing. */
  async #projectOf(token: PooledToken): Promise<ProjectCheck> {
    const call: Call = { method: 'GET', path: '/project', bucket: 'reads', priority: 'operation' };
    try {
      const slot = await token.budgets.reads.acquire(call.priority);
      const answer = await this.#exchangeUnder(call, { slot, token, budget: token.budgets.reads });
      if (answer.sort === 'problem' && answer.status === 401) return 'refused';
      if (answer.sort !== 'success' || answer.status !== 200) return 'unknown';
      const id = member(member(answer.body, 'data'), 'id');
      return typeof id === 'number' ? id : 'unknown';
    } catch {
      return 'unknown';
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

  #count({ bucket, priority, isProbe = false }: Call): void {
    const { counters } = this.#options;
    if (isProbe) counters.probes += 1;
    if (priority === 'poll') counters.polls += 1;
    counters[bucket] += 1;
  }

  #log({ method, path }: Call, answer: ApiAnswer, durationMs: number): void {
    const result = 'requestId' in answer ? { requestId: answer.requestId } : { reason: answer.reason };
    const fields = { method, path, status: answer.status, durationMs: Math.round(durationMs), ...result };
    this.#options.logger.debug(fields, 'answered');
  }

  /**
   * `Retry-After` is real seconds on both sides, and the clock here may run faster than
   * real time: the wait in its milliseconds is as many times longer. A replayed 429 belongs
   * to a minute in the past. @assumption A1
   */
  async #limited(answer: ApiAnswer, budget: Budget): Promise<void> {
    const { counters, profile, logger, onWait } = this.#options;
    counters.throttled += 1;
    if (answer.replayed) return;
    const { retryAfterMs } = answer;
    const waitMs = retryAfterMs === undefined ? unsaidRetryAfter(profile) : retryAfterMs * profile.timeScale;
    // Requests that were in flight together cause one message.
    if (!budget.isClosed()) {
      const level = onWait === undefined ? 'warn' : 'debug';
      logger[level]({ bucket: budget.bucket, waitMs }, 'the API limits requests: waiting');
    }
    await budget.close(waitMs);
  }
}

/** The values that belong to one sending of a request. */
interface Grant {
  readonly slot: Slot;
  readonly token: PooledToken;
  readonly budget: Budget;
}

/** The span of a request: its path without ids, so that requests of one sort have one name. */
function spanOf({ method, path, bucket }: Call): [name: string, attributes: SpanAttributes] {
  const route = (path.split('?')[0] ?? '').replace(/\/[^/]*\d[^/]*/g, '/{id}');
  const attributes = { 'http.request.method': method, 'url.template': route, 'vdcsync.budget': bucket };
  return [`${method} ${route}`, attributes];
}

function answerAttributes(answer: ApiAnswer): SpanAttributes {
  return {
    'http.response.status_code': answer.status,
    ...('requestId' in answer ? { 'vdcsync.request_id': answer.requestId } : {}),
  };
}

/** Waits in the budget. Nothing: the API has closed it meanwhile, and the budget of another token may be open. */
async function unlessClosed<Result>(
  { closing }: Budget,
  signal: AbortSignal | undefined,
  wait: (stop: AbortSignal) => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await wait(signal === undefined ? closing : AbortSignal.any([signal, closing]));
  } catch (error) {
    if (!closing.aborted || signal?.aborted) throw error;
    return undefined;
  }
}

function newBudgets(
  { clock, profile, uses, onWait }: PipelineOptions,
  name: string,
  isShared: () => boolean,
): Budgets {
  const { timeScale, limits } = profile;
  const budgetOf = (of: BudgetWait['of']) =>
    new Budget({
      ...{ windowMs: limits.windowMs, clock, timeScale, memory: uses },
      ...{ bucket: `${name}:${of}`, limit: limits[of] },
      onWait: (wait) => {
        // The other tokens go on, so a wait of this one alone is not reported.
        if (!(isShared() && wait.limited && wait.waiting === 0)) onWait?.({ ...wait, of });
      },
    });
  return { reads: budgetOf('reads'), writes: budgetOf('writes') };
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

/** Reports, logs and the state contain text of the answer. The API may repeat the request in it, so the token is masked. */
function withoutToken({ status, headers, body }: HttpResponse, { mask }: PooledToken): HttpResponse {
  return {
    status,
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, mask(text)])),
    body: mask(body),
  };
}
