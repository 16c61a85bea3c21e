import type { HttpRequest, HttpResponse } from '../core/transport.ts';
import type { Call } from './call.ts';
import { deliver, deliverWithoutEffect, type Exchange } from './delivery.ts';
import type { FaultAction } from './faults.ts';
import { attempt, MOST_BODY_BYTES, openCall } from './pipeline.ts';
import { problemResponse, Refusal } from './problem.ts';
import type { Service } from './service.ts';
import { authenticate } from './tokens.ts';

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
