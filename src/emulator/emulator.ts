import type { Clock } from '../core/clock.ts';
import { type HttpRequest, type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import type { Call } from './call.ts';
import { control, isControl } from './control.ts';
import { deliver, deliverWithoutEffect, type Exchange } from './delivery.ts';
import type { FaultAction } from './faults.ts';
import { billed } from './inspection.ts';
import { mutate } from './mutations.ts';
import type { Emulator, EmulatorOptions } from './options.ts';
import { attempt, MOST_BODY_BYTES, openCall } from './pipeline.ts';
import { problemResponse, Refusal } from './problem.ts';
import { EmulatorInputError, parseReadings } from './readings.ts';
import { Service } from './service.ts';
import { authenticate, projectTokens } from './tokens.ts';
import type { World } from './world.ts';

export type { Emulator, EmulatorOptions } from './options.ts';

/** Builds an emulator. Throws `EmulatorInputError` for options that cannot be used. */
export function createEmulator(options: EmulatorOptions): Emulator {
  const service = new Service(options);

  function worldNow(): World {
    service.settle();
    return service.world;
  }

  async function controlled(request: HttpRequest, remote: string | undefined): Promise<Exchange> {
    const nowMs = service.settle();
    return { kind: 'answer', response: service.dated(control(emulator, request, remote), nowMs) };
  }

  const emulator: Emulator = {
    handle: (request, { remote, tooLarge = false } = {}) =>
      isControl(request.url) ? controlled(request, remote) : serve(service, request, tooLarge),
    transport: () => inProcessTransport(emulator, options.clock),
    get world() {
      return worldNow();
    },
    get readings() {
      return service.readings;
    },
    get faults() {
      return service.faults;
    },
    requests: service.log.requests,
    billed: () => billed(worldNow()),
    now: () => service.clock.now(),
    tokens: (projectId) => {
      const { seed, projects } = service.world;
      const project = projects.find(({ id }) => projectId === undefined || id === projectId);
      if (project === undefined) throw new EmulatorInputError(`project ${projectId}: there is none`);
      return projectTokens(seed, project.id);
    },
    mutate: (mutation) => {
      const result = mutate(worldNow(), mutation, service.clock.now());
      service.remember(service.settle());
      return result;
    },
    setFaults: (rules) => {
      service.faults = rules;
    },
    setReadings: (changed) => {
      service.readings = { ...service.readings, ...parseReadings(changed) };
    },
    get durations() {
      return service.durations;
    },
    setDurations: (changed) => {
      service.durations = { ...service.durations, ...changed };
    },
    snapshot: () => structuredClone(worldNow()),
    restore: (saved) => service.restore(saved),
  };
  return emulator;
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
export async function serve(service: Service, request: HttpRequest, tooLarge: boolean): Promise<Exchange> {
  let nowMs = service.settle();
  const call = openCall(request, service.world, service);
  const untouched =
    tooLarge || Buffer.byteLength(request.body ?? '') > MOST_BODY_BYTES
      ? tooLong(call)
      : withoutEffect(service, call, nowMs);
  if (untouched !== null) return sent(service, call, untouched, nowMs);
  let result = attempt(call, service.world, nowMs, service);
  while ('waitUntilMs' in result) {
    await service.clock.sleep(result.waitUntilMs - nowMs);
    nowMs = Math.max(service.settle(), result.waitUntilMs);
    result = attempt(call, service.world, nowMs, service);
  }
  service.releaseKeys(call);
  if (call.method !== 'GET') service.remember(nowMs);
  const exchange = deliver(call.fault, service.dated(result.response, nowMs));
  service.log.add(call, nowMs, result.response, exchange.kind);
  if (call.fault?.do === 'slow') await service.clock.sleep(call.fault.ms);
  return exchange;
}

function tooLong({ requestId }: Call): Exchange {
  const refusal = new Refusal(413, 'payload_too_large', { detail: 'Bodies have at most 1 MiB.' });
  return { kind: 'answer', response: problemResponse(refusal, requestId) };
}

function withoutEffect(service: Service, call: Call, nowMs: number): Exchange | null {
  if (call.fault?.do !== 'late') return deliverWithoutEffect(call.fault);
  putOff(service, call, nowMs, call.fault);
  return { kind: 'reset' };
}

/** The client loses the connection now; the request has its effect later. */
function putOff(
  { world }: Service,
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
