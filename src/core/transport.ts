import { ApiProblem } from './errors.ts';

/** One HTTP exchange, as plain values: what the client sends and the emulator answers. */
export interface HttpRequest {
  readonly method: string;
  /** Absolute URL. */
  readonly url: string;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact bytes of the body, as text; absent for none. */
  readonly body?: string;
}

export interface HttpResponse {
  readonly status: number;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SendOptions {
  /** Whole-exchange time-out in milliseconds of real time. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Asked with a connection in hand, right before the first byte: where it says no, nothing is sent. */
  readonly mayGo?: (() => boolean) | undefined;
}

/**
 * Carries one request and follows nothing: no redirect, no retry.
 * Rejects with `TransportError` when no complete response arrived.
 */
export interface Transport {
  send(request: HttpRequest, options: SendOptions): Promise<HttpResponse>;
  close(): Promise<void>;
}

/** What a failed exchange may have done on the other side. */
export type Effect = 'none' | 'unknown';

/**
 * No complete response. `effect` is `none` only where not a byte of the request
 * can have been acted on: name resolution, refused connection, TLS handshake.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly effect: Effect;
  /** The system's code, such as `ECONNREFUSED`, where there is one; `CLOSED` once this side has closed the transport. */
  readonly code: string;
  /** Trying again does not help: somebody has to see to it. */
  readonly lasting: boolean;

  constructor(message: string, effect: Effect, code: string, cause?: unknown) {
    super(message, { cause });
    this.effect = effect;
    this.code = code;
    this.lasting = effect === 'none' && certificateCodes.test(code);
  }
}

/** Whether a read failed with this error, by a refusal or without an answer. Every other error is about something else. */
export function isFailedRead(error: unknown): error is ApiProblem | TransportError {
  return error instanceof ApiProblem || error instanceof TransportError;
}

/** The other side's certificate is not accepted, or it has none. */
const certificateCodes =
  /CERT|ISSUER|INVALID_CA|HOSTNAME_MISMATCH|ERR_SSL_WRONG_VERSION|ERR_SSL_PACKET_LENGTH/;
