import type { Clock } from '../core/clock.ts';
import { type HttpRequest, type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import type { Call } from './call.ts';
import { control, isControl } from './control.ts';
import { deliver, deliverWithoutEffect, type Exchange } from './delivery.ts';
import type { FaultAction } from './faults.ts';
import type { EmulatorOptions, HandleOptions } from './options.ts';
import { attempt, MOST_BODY_BYTES, openCall } from './pipeline.ts';
import { problemResponse, Refusal } from './problem.ts';
import { Service } from './service.ts';
import { authenticate } from './tokens.ts';

export type { EmulatorOptions } from './options.ts';

/** Builds an emulator. Throws `EmulatorInputError` for options that cannot be used. */
export function createEmulator(options: EmulatorOptions): Emulator {
  return new Emulator(options);
}

/** The whole API, in process. No part of it waits for a timer: time passes at each request and each read of the world. */
export class Emulator extends Service {
  /** Answers one request, faults included. */
  async handle(request: HttpRequest, { remote, tooLarge = false }: HandleOptions = {}): Promise<Exchange> {
    if (!isControl(request.url)) return serve(this, request, tooLarge);
    const nowMs = this.settle();
    return { kind: 'answer', response: this.dated(control(this, request, remote), nowMs) };
  }

  /** A transport whose requests end here. */
  transport(): Transport {
    return inProcessTransport(this, this.caller);
  }
}

/**
 * The emulator as a transport, without a network. Time-outs run on the caller's
 * clock. When the caller gives a request up, the request continues inside the emulator, as it would
 * on the other side of a network.
 */
function inProcessTransport(emulator: Emulator, clock: Clock): Transport {
  let closed = false;
  return {
    send: async (request, { timeoutMs, signal }) => {
      if (closed) throw new TransportError('the transport is closed', 'none', 'ERR_CLOSED');
      if (signal?.aborted === true) {
        throw new TransportError('given up before it was sent', 'none', 'ABORT_ERR', signal.reason);
      }
      const answer = emulator.handle(request).then((exchange): HttpResponse => {
        switch (exchange.kind) {
          case 'answer':
            return exchange.response;
          case 'truncated':
            throw new TransportError('the connection broke inside the answer', 'unknown', 'ECONNRESET');
          case 'reset':
            throw new TransportError('the connection was reset', 'unknown', 'ECONNRESET');
          case 'refused':
            throw new TransportError('the connection was refused', 'none', 'ECONNREFUSED');
        }
      });
      return await Promise.race([answer, giveUp(answer, clock, timeoutMs, signal)]);
    },
    close: async () => {
      closed = true;
    },
  };
}

/** Resolves with the answer. Rejects if the time-out or the signal of the caller comes first. */
async function giveUp(
  answer: Promise<HttpResponse>,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<HttpResponse> {
  const done = new AbortController();
  // Without a reason, each request would create an error with its stack.
  const finished = () => done.abort('answered');
  answer.then(finished, finished);
  const stop = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal]);
  try {
    await clock.sleep(timeoutMs, stop);
  } catch (error) {
    if (!done.signal.aborted) throw new TransportError('given up', 'unknown', 'ABORT_ERR', error);
    return answer;
  }
  throw new TransportError(`no answer within ${timeoutMs} ms`, 'unknown', 'ETIMEDOUT');
}

/** One request, from its arrival to the answer that reaches the client, faults included. */
async function serve(service: Service, request: HttpRequest, tooLarge: boolean): Promise<Exchange> {
  let nowMs = service.settle();
  const call = openCall(request, service.current, service);
  const untouched =
    tooLarge || Buffer.byteLength(request.body ?? '') > MOST_BODY_BYTES
      ? tooLong(call)
      : withoutEffect(service, call, nowMs);
  if (untouched !== null) return sent(service, call, untouched, nowMs);
  let result = attempt(call, service.current, nowMs, service);
  while ('waitUntilMs' in result) {
    await service.clock.sleep(result.waitUntilMs - nowMs);
    nowMs = Math.max(service.settle(), result.waitUntilMs);
    result = attempt(call, service.current, nowMs, service);
  }
  service.releaseKeys(call);
  if (call.method !== 'GET') service.remember(nowMs);
  const exchange = deliver(call.fault, service.dated(result.response, nowMs));
  service.log.add(call, nowMs, result.response, exchange.kind);
  if (call.fault?.do === 'slow') await service.clock.sleep(call.fault.ms);
  return exchange;
}

function tooLong({ requestId }: Call): Exchange {
  const refusal = new Refusal(413, 'payload_too_large', 'Bodies have at most 1 MiB.');
  return { kind: 'answer', response: problemResponse(refusal, requestId) };
}

function withoutEffect(service: Service, call: Call, nowMs: number): Exchange | null {
  if (call.fault?.do !== 'late') return deliverWithoutEffect(call.fault);
  putOff(service, call, nowMs, call.fault);
  return { kind: 'reset' };
}

/** The client loses the connection now; the request has its effect later. */
function putOff(
  { current: world }: Service,
  { request }: Call,
  nowMs: number,
  { ms, holdsKey = true }: FaultAction & { do: 'late' },
): void {
  const atMs = nowMs + ms;
  const { method, url, headers, body = null } = request;
  try {
    const { projectId } = authenticate(world, headers.authorization, nowMs);
    world.late.push({ atMs, projectId, method, url, headers: { ...headers }, body, holdsKey });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

/** The exchange of a request that the service did not process. */
function sent(service: Service, call: Call, exchange: Exchange, nowMs: number): Exchange {
  const response: HttpResponse | null = exchange.kind === 'answer' ? exchange.response : null;
  service.log.add(call, nowMs, response, exchange.kind);
  return response === null ? exchange : { kind: 'answer', response: service.dated(response, nowMs) };
}
