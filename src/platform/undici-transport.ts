import { isIP } from 'node:net';
import { Agent, buildConnector, type Dispatcher, request } from 'undici';
import {
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
  /** From the request's end to the answer's headers. Default 30,000. */
  readonly headersTimeoutMs?: number;
  /** Between two pieces of the answer's body. Default 30,000. */
  readonly bodyTimeoutMs?: number;
  /** Bytes of one answer; a longer one is cut off as a failure. Default 8 MiB. */
  readonly maxBodyBytes?: number;
  /** Connections open at once to one origin. Default 8. */
  readonly connections?: number;
}

const defaults = {
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 30_000,
  bodyTimeoutMs: 30_000,
  maxBodyBytes: 8 * 1024 * 1024,
  connections: 8,
} satisfies Required<UndiciTransportOptions>;

/**
 * The network, by undici: one pool of kept-alive HTTP/1.1 connections per origin. It
 * follows no redirect and repeats nothing, so that one `send` is at most one request.
 *
 * Rejects with `TransportError`. Its effect is `none` only where the connection never
 * came about (name resolution, refusal, TLS handshake, connect time-out) or was not
 * tried; every later failure may have reached the API, and is `unknown`.
 *
 * HTTP/2 is off: there a client may resend a refused stream by itself.
 */
export function undiciTransport(options: UndiciTransportOptions = {}): Transport {
  const settings = { ...defaults, ...options };
  const neverConnected = new WeakSet<Error>();
  const agent = new Agent({
    connect: markingConnector(settings.connectTimeoutMs, neverConnected),
    allowH2: false,
    pipelining: 1,
    connections: settings.connections,
    headersTimeout: settings.headersTimeoutMs,
    bodyTimeout: settings.bodyTimeoutMs,
  });

  async function send(message: HttpRequest, { timeoutMs, signal }: SendOptions): Promise<HttpResponse> {
    refuseInsecure(message.url);
    if (signal?.aborted) throw new TransportError('stopped before it was sent', 'none', 'ABORTED');
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(timedOut(timeoutMs)), timeoutMs);
    const forward = () => stop.abort(new TransportError('stopped while under way', 'unknown', 'ABORTED'));
    signal?.addEventListener('abort', forward, { once: true });
    try {
      const response = await request(message.url, {
        dispatcher: agent,
        method: message.method as Dispatcher.HttpMethod,
        headers: { ...message.headers },
        body: message.body ?? null,
        signal: stop.signal,
      });
      const body = await readBody(response.body, settings.maxBodyBytes);
      return { status: response.statusCode, headers: flatHeaders(response.headers), body };
    } catch (error) {
      throw asTransportError(error, neverConnected);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
    }
  }

  return { send, close: () => agent.destroy() };
}

/** @returns whether the URL's host is this machine itself, so that plain http stays on it. */
export function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  return isIP(host) === 4 ? host.startsWith('127.') : host === '::1';
}

/** The connector that remembers which errors befell a request before it had a connection. */
function markingConnector(timeout: number, neverConnected: WeakSet<Error>): buildConnector.connector {
  const connect = buildConnector({ timeout, allowH2: false });
  return (target, callback) =>
    connect(target, (...outcome) => {
      if (outcome[0] !== null) neverConnected.add(outcome[0]);
      callback(...outcome);
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

function timedOut(timeoutMs: number): TransportError {
  return new TransportError(`no complete answer within ${timeoutMs} ms`, 'unknown', 'TIMEOUT');
}

/** What the library says of these is its own inside. */
function wordsOf(code: string): string | undefined {
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG') {
    return 'the other side does not speak https';
  }
  if (code === 'DEPTH_ZERO_SELF_SIGNED_CERT') return 'its certificate is self-signed';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'its certificate is for another host';
  return code.startsWith('ERR_SSL_') ? 'no secure connection could be made' : undefined;
}

function asTransportError(error: unknown, neverConnected: WeakSet<Error>): TransportError {
  if (error instanceof TransportError) return error;
  if (!(error instanceof Error)) return new TransportError(String(error), 'unknown', 'UNKNOWN', error);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const effect = neverConnected.has(error) ? 'none' : 'unknown';
  return new TransportError(wordsOf(code) ?? (error.message || code), effect, code, error);
}
