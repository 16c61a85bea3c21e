import type { HttpResponse } from '../core/transport.ts';
import type { Context, Reply, Step } from './call.ts';
import { spend } from './context.ts';
import { between } from './dice.ts';
import type { FaultAction } from './faults.ts';
import { invalid, problemResponse, Refusal } from './problem.ts';
import { authorise } from './tokens.ts';
import { readQuery } from './validate.ts';
import { taskView } from './views.ts';
import type { Server } from './world.ts';

/** Carries the operation out and words its answer; a refusal is an answer too. */
export function executeOrRefuse(step: Step, key: string | null): HttpResponse {
  const { call } = step;
  const { fault } = call;
  try {
    const response = withoutEffect(fault) ? null : execute(step, key);
    if (fault?.do === 'stored_429') throw rateRefusal(fault.retryAfter ?? 30);
    if (fault?.do === 'answer') return faultyAnswer(fault, call.requestId);
    return response as HttpResponse;
  } catch (error) {
    return refused(error, call.requestId);
  }
}

/** The refusal as an answer. Anything else is a mistake of the emulator and goes up. */
export function refused(error: unknown, requestId: string): HttpResponse {
  if (error instanceof Refusal) return problemResponse(error, requestId);
  throw error;
}

function withoutEffect(fault: FaultAction | null): boolean {
  return fault?.do === 'stored_429' || (fault?.do === 'answer' && fault.effect !== 'done');
}

function rateRefusal(seconds: number): Refusal {
  return new Refusal(429, 'rate_limit_exceeded', undefined, { headers: { 'retry-after': String(seconds) } });
}

function faultyAnswer(fault: FaultAction & { do: 'answer' }, requestId: string): HttpResponse {
  const headers = {
    ...(fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }),
    ...fault.headers,
  };
  const { status, code = defaultCode(status), detail } = fault;
  return problemResponse(new Refusal(status, code, detail, { headers }), requestId);
}

function defaultCode(status: number): string {
  if (status === 429) return 'rate_limit_exceeded';
  return status >= 500 ? 'service_unavailable' : status === 422 ? 'invalid_request' : `injected_${status}`;
}

/** Operations on images, of which a project has one at a time. `@source API §8` */
export const IMAGE_OPERATIONS: readonly string[] = ['add_iso', 'delete_iso', 'take_server_image'];

function execute(step: Step, key: string | null): HttpResponse {
  const { call, world, project, token, route, nowMs, settings } = step;
  authorise(token, route.name, call.method);
  const context = { ...step, key, body: readRequest(step) };
  changeStanding(step);
  const reply = route.handle(context, route.read?.(context) ?? {});
  if (IMAGE_OPERATIONS.includes(route.name)) {
    project.libraryBusyUntilMs = nowMs + between(world, settings.durations.image_submission);
  }
  return success(reply, context);
}

/** The refusal of a body that is not JSON, has unknown fields or wrong types; null: accepted. This check comes first. */
export function refusedBody(step: Step): HttpResponse | null {
  try {
    step.route.read?.({ ...step, key: null, body: readRequest(step) });
    return null;
  } catch (error) {
    return refused(error, step.call.requestId);
  }
}

/** Throws 402 for an operation that is new spending, before any other check of the operation. `@assumption A57` */
export function refuseSpending(step: Step): void {
  changeStanding(step);
  if (step.route.spends?.(step.readings) === true) spend(step);
}

function changeStanding({ call, project }: Step): void {
  if (call.fault?.do === 'standing') project.standing = call.fault.standing;
}

/** The parsed body; undefined if the request has none. Throws the refusal of a malformed request. */
function readRequest(step: Step): unknown {
  const { call, route } = step;
  if (call.method !== 'GET') refuseMediaType(step);
  readQuery(call.query, route.query ?? []);
  const body = call.method === 'GET' ? undefined : parseBody(call.request.body);
  if (route.read === undefined) refuseMembers(body);
  return body;
}

/** Accepts only JSON. A body without a content type is refused as well. `@source API §4` `@assumption A21` */
function refuseMediaType({ call, readings, route }: Step): void {
  const type = call.request.headers['content-type'];
  const hasBody = (call.request.body ?? '') !== '';
  const json = type !== undefined && /^application\/(?:[\w.-]+\+)?json\s*(;|$)/i.test(type.trim());
  const post = route.method === 'POST';
  const mayBeBare = !hasBody && !(post && readings.bodilessContentType === 'required');
  if (json || (type === undefined && mayBeBare)) return;
  throw new Refusal(415, 'unsupported_media_type', 'Bodies are application/json.');
}

function parseBody(text: string | undefined): unknown {
  if (text === undefined || text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, 'malformed_json', 'The body is not JSON.');
  }
}

/** An operation without a body knows no field. */
function refuseMembers(body: unknown): void {
  if (body === undefined) return;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalid({ name: 'body', reason: 'must be an object' });
  }
  const names = Object.keys(body);
  if (names.length > 0) throw invalid(...names.map((name) => ({ name, reason: 'is not a known field' })));
}

/** `@source API §4` `@assumption A8` `@assumption A34` */
function success(reply: Reply, { readings, call, nowMs }: Context): HttpResponse {
  const { fault, requestId } = call;
  const omits = readings.omitTaskField || fault?.do === 'omit_task';
  const task =
    reply.task === undefined || omits
      ? {}
      : { task: reply.task === null ? null : taskView(reply.task, nowMs) };
  const cut = [readings.pageSize, fault?.do === 'truncate_list' ? fault.keep : null].filter(
    (size) => size !== null,
  );
  const data = Array.isArray(reply.data)
    ? reply.data.slice(0, Math.min(...cut, reply.data.length))
    : reply.data;
  const payload = { data, ...task };
  return {
    status: reply.status,
    headers: {
      'content-type': 'application/json',
      'x-request-id': requestId,
      ...(reply.location === undefined ? {} : { location: reply.location }),
    },
    body: JSON.stringify(fault?.do === 'decorate' ? decorate(payload, fault) : payload),
  };
}

function decorate(
  payload: Record<string, unknown>,
  fault: FaultAction & { do: 'decorate' },
): Record<string, unknown> {
  const add = (value: unknown, status: string | undefined): unknown => {
    if (Array.isArray(value)) return value.map((member) => add(member, status));
    if (typeof value !== 'object' || value === null) return value;
    const known = value as Partial<Server>;
    return { ...known, ...fault.fields, ...(status !== undefined && 'status' in known ? { status } : {}) };
  };
  return {
    ...payload,
    data: add(payload.data, fault.status),
    ...(payload.task === undefined ? {} : { task: add(payload.task, fault.taskStatus) }),
  };
}
