import { Agent, type Dispatcher, errors, request } from 'undici';
import { isLoopbackHost } from '../core/text.ts';
import {
  type Effect,
  type HttpRequest,
  type HttpResponse,
  type SendOptions,
  type Transport,
  TransportError,
} from '../core/transport.ts';

/** All optional; times are milliseconds of real time. */
export interface UndiciTransportOptions {
  /** Name resolution, connection and TLS handshake together. Default 10,000. */
  readonly connectTimeoutMs?: number;
  /** Bytes of one answer; a longer one is cut off as a failure. Default 8 MiB. */
  readonly maxBodyBytes?: number;
  /** Connections open at once to one origin. Default 8. */
  readonly connections?: number;
}

const defaults = {
  connectTimeoutMs: 10_000,
  maxBodyBytes: 8 * 1024 * 1024,
  connections: 8,
} satisfies Required<UndiciTransportOptions>;

/**
 * The network, by undici: one pool of kept-alive HTTP/1.1 connections per origin. It
 * follows no redirect and repeats nothing, so that one `send` is at most one request.
 *
 * Rejects with `TransportError`. Its effect is `none` only where the request never had a
 * connection to itself (name resolution, refusal, TLS handshake, a time-out before that);
 * every later failure may have reached the API, and is `unknown`.
 *
 * HTTP/2 is off: there a client may resend a refused stream by itself.
 */
export function undiciTransport(options: UndiciTransportOptions = {}): Transport {
  const settings = { ...defaults, ...options };
  const agent = new Agent({
    connect: { timeout: settings.connectTimeoutMs },
    allowH2: false,
    pipelining: 1,
    connections: settings.connections,
    // From the request's end to the answer's headers, and between two pieces of the answer's body.
    ...{ headersTimeout: 30_000, bodyTimeout: 30_000 },
  });

  async function send(
    message: HttpRequest,
    { timeoutMs, signal, mayGo }: SendOptions,
  ): Promise<HttpResponse> {
    refuseInsecure(message.url);
    if (signal?.aborted) throw new TransportError('stopped before it was sent', 'none', 'ABORTED');
    let started = false;
    const effect = () => (started ? 'unknown' : 'none');
    const stop = new AbortController();
    function start(): void {
      stop.signal.throwIfAborted();
      if (started) throw new TransportError('it would have been sent twice', 'unknown', 'SENT_TWICE');
      if (mayGo?.() === false)
        throw new TransportError('the observation behind this request is too old', 'none', 'TOO_OLD');
      started = true;
    }
    const timer = setTimeout(() => stop.abort(timedOut(timeoutMs, effect())), timeoutMs);
    const forward = () => stop.abort(new TransportError('stopped while under way', effect(), 'ABORTED'));
    signal?.addEventListener('abort', forward, { once: true });
    try {
      // The library hears of a stop only once the request has a connection.
      return await Promise.race([exchange(message, stop.signal, start), aborted(stop.signal)]);
    } catch (error) {
      throw asTransportError(error, effect());
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
    }
  }

  async function exchange(
    { method, url, headers, body }: HttpRequest,
    signal: AbortSignal,
    start: () => void,
  ): Promise<HttpResponse> {
    const response = await request(url, {
      dispatcher: agent.compose(asking(start)),
      method: method as Dispatcher.HttpMethod,
      headers: { ...headers },
      body: body ?? null,
      signal,
    });
    const text = await readBody(response.body, settings.maxBodyBytes);
    return { status: response.statusCode, headers: flatHeaders(response.headers), body: text };
  }

  return { send, close: () => agent.destroy() };
}

/** Rejects with the signal's reason once it aborts, and never resolves. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/**
 * Calls `start` when the request has a connection, immediately before its first byte. If `start` throws, nothing is
 * sent.
 */
function asking(start: () => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart(controller, context) {
        start();
        handler.onRequestStart?.(controller, context);
      },
      onResponseStart: (...answer) => handler.onResponseStart?.(...answer),
      onResponseData: (...piece) => handler.onResponseData?.(...piece),
      onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
      onResponseError: (...failure) => handler.onResponseError?.(...failure),
    });
}

function refuseInsecure(text: string): void {
  const url = new URL(text);
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))) return;
  throw new TransportError(`${url.origin} is neither https nor this machine`, 'none', 'INSECURE_URL');
}

async function readBody(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // Leaving the loop destroys the stream and with it the connection.
    if (bytes > maxBytes) {
      throw new TransportError(`the answer is longer than ${maxBytes} bytes`, 'unknown', 'BODY_TOO_LARGE');
    }
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

function flatHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

function timedOut(timeoutMs: number, effect: Effect): TransportError {
  return new TransportError(`no complete answer within ${timeoutMs} ms`, effect, 'TIMEOUT');
}

const systemWords: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'the connection was refused'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was closed'],
  ['ETIMEDOUT', 'the connection timed out'],
  ['UND_ERR_CONNECT_TIMEOUT', 'the connection timed out'],
  ['EHOSTUNREACH', 'the network has no route to the host'],
  ['ENETUNREACH', 'the network has no route to the host'],
  ['ENOTFOUND', 'the name of the host has no address'],
  ['EAI_AGAIN', 'the name of the host cannot be resolved now'],
]);

/** Plain words for errors whose own text only names internals of the library. */
function wordsOf(code: string): string | undefined {
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG') {
    return 'the other side does not speak https';
  }
  if (code === 'DEPTH_ZERO_SELF_SIGNED_CERT') return 'its certificate is self-signed';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'its certificate is for another host';
  return code.startsWith('ERR_SSL_') ? 'no secure connection could be made' : systemWords.get(code);
}

function asTransportError(error: unknown, effect: Effect): TransportError {
  if (error instanceof TransportError) return error;
  if (!(error instanceof Error)) return new TransportError(String(error), effect, 'UNKNOWN', error);
  if (error instanceof errors.ClientDestroyedError)
    return new TransportError('the transport was closed', effect, 'CLOSED', error);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return new TransportError(wordsOf(code) ?? (error.message || code), effect, code, error);
}
