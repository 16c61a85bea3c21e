import { ApiProblem } from './errors.ts';

/** One HTTP exchange, as plain values: the client sends the request, and the emulator answers it. */
export interface HttpRequest {
  readonly method: string;
  /** Absolute URL. */
  readonly url: string;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact bytes of the body, as text; absent for none. */
  readonly body?: string;
}

/** A complete answer. Its sender may be a proxy, so `readAnswer` decides whether it is an answer of the API. */
export interface HttpResponse {
  readonly status: number;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The limits of one exchange. After a time-out or an abort, the request may still have an effect. */
export interface SendOptions {
  /** Whole-exchange time-out in milliseconds of real time. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Called with an open connection, right before the first byte: if it returns false, nothing is sent. */
  readonly mayGo?: (() => boolean) | undefined;
}

/**
 * Sends one request, without redirects and without retries.
 * Rejects with `TransportError` when no complete response arrived.
 */
export interface Transport {
  send(request: HttpRequest, options: SendOptions): Promise<HttpResponse>;
  close(): Promise<void>;
}

/** The possible effect of a failed exchange on the other side. */
export type Effect = 'none' | 'unknown';

/**
 * No complete response. `effect` is `none` only if the API cannot have acted on a byte of the
 * request: name resolution, refused connection, TLS handshake.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly effect: Effect;
  /**
   * The system's code, such as `ECONNREFUSED`, where there is one; `CLOSED` once this side has closed the transport.
   */
  readonly code: string;
  /** A retry does not help: the operator must remove the cause. */
  readonly lasting: boolean;

  constructor(message: string, effect: Effect, code: string, cause?: unknown) {
    super(message, { cause });
    this.effect = effect;
    this.code = code;
    this.lasting = effect === 'none' && certificateCodes.test(code);
  }
}

/**
 * Whether a read failed with this error, by a refusal or without an answer. Every other error is about something else.
 */
export function isFailedRead(error: unknown): error is ApiProblem | TransportError {
  return error instanceof ApiProblem || error instanceof TransportError;
}

/** The other side's certificate is not accepted, or it has none. */
const certificateCodes =
  /CERT|ISSUER|INVALID_CA|HOSTNAME_MISMATCH|ERR_SSL_WRONG_VERSION|ERR_SSL_PACKET_LENGTH/;
