import type { HttpRequest, HttpResponse } from '../core/transport.ts';
import type { Call, Route, Settings, Step } from './call.ts';
import { hex } from './dice.ts';
import { executeOrRefuse, IMAGE_OPERATIONS, refused, refusedBody, refuseSpending } from './execute.ts';
import { type FaultAction, meetFault } from './faults.ts';
import { backupRoutes } from './handlers/backups.ts';
import { firewallRoutes } from './handlers/firewall.ts';
import { ipRoutes } from './handlers/ips.ts';
import { isoRoutes } from './handlers/isos.ts';
import { networkInterfaceRoutes } from './handlers/network-interfaces.ts';
import { networkRoutes } from './handlers/networks.ts';
import { projectRoutes } from './handlers/project.ts';
import { serverTypeRoutes } from './handlers/server-types.ts';
import { serverRoutes } from './handlers/servers.ts';
import { undocumentedRoutes } from './handlers/undocumented.ts';
import { findAnswer, holdsAnother, isKey, isStored, readKey, replay, storeAnswer } from './idempotency.ts';
import { charge, refund } from './limits.ts';
import { Refusal } from './problem.ts';
import type { Profile } from './profile.ts';
import type { Readings } from './readings.ts';
import { findRoute, matchPath } from './router.ts';
import { authenticate, authorise, knownToken } from './tokens.ts';
import type { Project, StoredAnswer, World } from './world.ts';

/** Bodies beyond this are refused unread. */
export const MOST_BODY_BYTES = 1_048_576;

type Attempt = { readonly response: HttpResponse } | { readonly waitUntilMs: number };

/** Every operation: the document's, and those the profile adds. */
export function allRoutes(profile: Profile): Route[] {
  return [
    ...projectRoutes,
    ...ipRoutes,
    ...isoRoutes,
    ...networkRoutes,
    ...serverRoutes,
    ...networkInterfaceRoutes,
    ...firewallRoutes,
    ...backupRoutes,
    ...serverTypeRoutes,
    ...undocumentedRoutes(profile),
  ];
}

/** Reads the request line and draws the request's id and fault. */
export function openCall(
  request: HttpRequest,
  world: World,
  settings: Pick<Settings, 'routes' | 'faults'>,
): Call {
  const url = new URL(request.url, 'http://emulator');
  const method = request.method.toUpperCase();
  const path = url.pathname.startsWith('/v1/') ? url.pathname.slice(3) : null;
  const operation =
    settings.routes.find(
      (route) => route.method === method && path !== null && matchPath(route.path, path) !== null,
    )?.name ?? null;
  return {
    request,
    method,
    path,
    query: url.searchParams,
    requestId: `req_${hex(world, 20)}`,
    operation,
    fault: path === null ? null : meetFault(settings.faults, world, { method, path, operation }),
    late: false,
    charged: false,
    libraryDeadlineMs: null,
    trace: { project: null, token: null, key: null, replayed: false },
  };
}

/**
 * Takes the request through every gate, in this order: token, path and method,
 * budget, idempotency key, then the operation itself. Gives the answer, or the
 * moment to try again where another request must end first.
 */
export function attempt(call: Call, world: World, nowMs: number, settings: Settings): Attempt {
  try {
    const token = authenticate(world, call.request.headers.authorization, nowMs);
    const project = world.projects.find((candidate) => candidate.id === token.projectId) as Project;
    call.trace.project = project.id;
    call.trace.token = token.name;
    const routed = findRoute(settings.routes, call.method, call.path ?? '');
    const { readings } = settings;
    const step: Step = { call, world, project, token, ...routed, nowMs, settings, readings };
    return call.method === 'GET' ? read(step) : write(step);
  } catch (error) {
    const response = refused(error, call.requestId);
    if (response.status === 401) keepUnauthenticated(call, world, response, nowMs, settings);
    return { response };
  }
}

/** A token that is known but not valid any more still names a project, and so whose key it is. `@assumption A58` */
function keepUnauthenticated(
  call: Call,
  world: World,
  response: HttpResponse,
  nowMs: number,
  { readings }: Settings,
): void {
  const key = call.request.headers['idempotency-key'] ?? '';
  const projectId = knownToken(world, call.request.headers.authorization)?.projectId;
  const project = world.projects.find(({ id }) => id === projectId);
  if (!readings.stored401 || call.method === 'GET' || project === undefined || !isKey(key)) return;
  if (!project.answers.some((answer) => answer.key === key))
    storeAnswer({ call, project, nowMs, readings }, key, response);
}

/** Shows the current world, or an older copy if reads are stale. `@assumption A9` */
function read(step: Step): Attempt {
  charge(step);
  const world = step.settings.worldForRead(step.call, step.nowMs);
  const project = world.projects.find((candidate) => candidate.id === step.project.id) ?? step.project;
  return { response: executeOrRefuse({ ...step, world, project }, null) };
}

/**
 * In which order a write meets budget, permission, payment, its body's check and its key.
 * `@source API §8` `@assumption A1` `@assumption A2` `@assumption A6` `@assumption A55` `@assumption A56` `@assumption A57`
 */
function write(step: Step): Attempt {
  const { call, project, token, route, settings, readings } = step;
  const header = call.request.headers['idempotency-key'];
  call.trace.key = header ?? null;
  if (!call.charged) {
    try {
      charge(step);
    } catch (error) {
      return { response: overBudget(step, error, header) };
    }
    call.charged = true;
  }
  const key = readKey(header);
  if (readings.scopeCheck === 'beforeKey') authorise(token, route.name, call.method);
  if (readings.paymentCheck === 'beforeKey') refuseSpending(step);
  const unfit = readings.bodyCheck === 'afterKey' ? null : refusedBody(step);
  if (unfit !== null && (key === null || readings.bodyCheck === 'beforeKeyUnstored'))
    return { response: unfit };
  if (key !== null) {
    if (unfit !== null && holdsAnother(step, key)) return { response: unfit };
    const answer = findAnswer(step, key);
    if (answer !== null) {
      if (!readings.replaysCost) refund(step);
      return { response: replayTo(step, answer) };
    }
    const waitUntilMs = inFlightWait(step, key);
    if (waitUntilMs !== null) return { waitUntilMs };
    if (unfit !== null) {
      storeAnswer(step, key, unfit);
      return { response: unfit };
    }
  }
  const untilMs = libraryWait(step);
  if (untilMs !== null) {
    if (key !== null) settings.holdKey(project.id, key, call, untilMs);
    return { waitUntilMs: untilMs };
  }
  const response = executeOrRefuse(step, key);
  if (key !== null && keepsAnswer(call.fault, response.status, readings)) storeAnswer(step, key, response);
  return { response };
}

/**
 * When the work on the first request under this key ends; null without a first request. Throws a refusal if the reading is not
 * to wait. `@assumption A2`
 */
function inFlightWait({ call, project, nowMs, settings, readings }: Step, key: string): number | null {
  const { inFlightKey } = readings;
  const busyUntilMs = settings.keyBusyUntil(project.id, key, call);
  if (busyUntilMs === null) return null;
  if (inFlightKey === 'wait') return Math.max(busyUntilMs, nowMs + 1);
  const seconds = settings.clock.realSeconds(busyUntilMs - nowMs);
  throw new Refusal(409, 'idempotency_key_in_flight', 'A request with this key is being worked on.', {
    ...(inFlightKey === 'conflict' ? {} : { headers: { 'retry-after': String(seconds) } }),
  });
}

/** A token does not get the replayed answer of a write that it may not do. `@source API §5.5` */
function replayTo({ call, token, route }: Step, answer: StoredAnswer): HttpResponse {
  if (answer.status < 400) authorise(token, route.name, call.method);
  call.trace.replayed = true;
  return replay(answer);
}

/** A 429, or the replay that costs nothing. `@assumption A1` `@assumption A6` */
function overBudget(step: Step, error: unknown, key: string | undefined): HttpResponse {
  const { call, project, readings } = step;
  const response = refused(error, call.requestId);
  if (key === undefined || !isKey(key)) return response;
  const known = project.answers.some((answer) => answer.key === key);
  if (known && !readings.replaysCost) {
    const answer = findAnswer(step, key);
    if (answer !== null) return replayTo(step, answer);
  }
  if (!known && readings.stored429) storeAnswer(step, key, response);
  return response;
}

const LIBRARY_WAIT_MS = 3000;

/** One image operation at a time: waits up to three seconds, then `409 server_busy`. `@source API §8` */
function libraryWait(step: Step): number | null {
  const { call, project, nowMs, settings, route } = step;
  if (!IMAGE_OPERATIONS.includes(route.name) || project.libraryBusyUntilMs <= nowMs) return null;
  call.libraryDeadlineMs ??= nowMs + LIBRARY_WAIT_MS;
  if (nowMs < call.libraryDeadlineMs) return Math.min(call.libraryDeadlineMs, project.libraryBusyUntilMs);
  const seconds = settings.clock.realSeconds(project.libraryBusyUntilMs - nowMs);
  throw new Refusal(409, 'server_busy', 'Another image operation of the project is being submitted.', {
    headers: { 'retry-after': String(seconds) },
  });
}

function keepsAnswer(fault: FaultAction | null, status: number, readings: Readings): boolean {
  if (fault?.do === 'stored_429') return true;
  if (fault !== null && 'stored' in fault && fault.stored !== undefined) return fault.stored;
  return isStored(status, readings);
}
