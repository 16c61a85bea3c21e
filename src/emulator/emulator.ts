import type { HttpRequest, HttpResponse } from '../core/transport.ts';
import type { Call, Settings } from './call.ts';
import { DEFAULT_DURATIONS } from './context.ts';
import { control, isControl } from './control.ts';
import { deliver, deliverWithoutEffect, type Exchange } from './delivery.ts';
import { History } from './history.ts';
import { billed, type LoggedRequest } from './inspection.ts';
import { mutate } from './mutations.ts';
import type { Emulator, EmulatorOptions, HandleOptions } from './options.ts';
import { allRoutes, attempt, MOST_BODY_BYTES, openCall } from './pipeline.ts';
import { problemResponse, Refusal } from './problem.ts';
import { DEFAULT_PROFILE } from './profile.ts';
import { defaultReadings, EmulatorInputError, parseReadings, type Readings } from './readings.ts';
import { advance } from './schedule.ts';
import { createWorld, DEFAULT_PROJECTS } from './seed.ts';
import { emulatorClock } from './time.ts';
import { authenticate, projectTokens } from './tokens.ts';
import { inProcessTransport } from './transport.ts';
import type { Durations, World } from './world.ts';

export type { Emulator, EmulatorOptions } from './options.ts';

/** Requests kept in the log. */
const MOST_LOGGED = 10_000;

/** Builds an emulator. Throws `EmulatorInputError` for options that cannot be used. */
export function createEmulator(options: EmulatorOptions): Emulator {
  const speed = options.speed ?? 1;
  if (!(speed > 0 && Number.isFinite(speed))) throw new EmulatorInputError('speed: must be a number over 0');
  const profile = options.profile ?? DEFAULT_PROFILE;
  let world = options.world === undefined ? newWorld(options) : structuredClone(options.world);
  let readings: Readings = { ...defaultReadings, ...parseReadings(options.readings) };
  let faults = options.faults ?? [];
  const clock = emulatorClock(options.clock, speed, () => world);
  const durations: Durations = { ...DEFAULT_DURATIONS, ...options.durations };
  const routes = allRoutes(profile);
  const history = new History();
  const held = new Map<string, { call: Call; untilMs: number }>();
  const requests: LoggedRequest[] = [];
  reanchor();

  const settings: Settings = {
    routes,
    profile,
    limits: profile.limits,
    durations,
    clock,
    get readings() {
      return readings;
    },
    get faults() {
      return faults;
    },
    worldForRead: (call, nowMs) => {
      const agoMs = call.fault?.do === 'stale' ? call.fault.ms : readings.staleReadsMs;
      return agoMs === 0 ? world : (history.at(nowMs - agoMs) ?? world);
    },
    keyBusyUntil: (projectId, key, call) => {
      const holder = held.get(`${projectId}:${key}`);
      if (holder !== undefined && holder.call !== call) return holder.untilMs;
      if (call.late) return null;
      const late = world.late.find(
        (one) => one.projectId === projectId && one.headers['idempotency-key'] === key,
      );
      return late?.atMs ?? null;
    },
    holdKey: (projectId, key, call, untilMs) => void held.set(`${projectId}:${key}`, { call, untilMs }),
  };

  /** With another speed or after a restart, the clock goes on from here and not from where a new start would put it. */
  function reanchor(): void {
    const saved = world.clock;
    const callerMs = options.clock.now();
    const ranFor = Math.max(0, callerMs - saved.callerMs);
    world.clock = {
      callerMs,
      emulatorMs: saved.emulatorMs + Math.floor(ranFor * (saved.speed ?? speed)),
      speed,
    };
  }

  /** Lets everything due happen, late requests in their turn. */
  function settle(): number {
    const nowMs = clock.now();
    for (;;) {
      const next = world.late.toSorted((one, other) => one.atMs - other.atMs)[0];
      if (next === undefined || next.atMs > nowMs) break;
      world.late = world.late.filter((one) => one !== next);
      advance(world, next.atMs);
      runLate(next);
    }
    advance(world, nowMs);
    return nowMs;
  }

  function runLate(late: World['late'][number]): void {
    const request: HttpRequest = {
      method: late.method,
      url: late.url,
      headers: late.headers,
      ...(late.body === null ? {} : { body: late.body }),
    };
    const call: Call = {
      ...openCall(request, world, { ...settings, faults: [] }),
      late: true,
      charged: true,
    };
    const result = attempt(call, world, late.atMs, settings);
    if ('waitUntilMs' in result) world.late.push({ ...late, atMs: result.waitUntilMs });
    else log(call, late.atMs, result.response, 'late');
    remember(late.atMs);
  }

  /** Copies for stale reads are made only where somebody may ask for them. */
  function remember(nowMs: number): void {
    if (readings.staleReadsMs > 0 || faults.some((rule) => rule.then.do === 'stale'))
      history.record(world, nowMs);
  }

  function log(
    call: Call,
    atMs: number,
    response: HttpResponse | null,
    delivery: LoggedRequest['delivery'],
  ): void {
    requests.push({
      atMs,
      requestId: call.requestId,
      method: call.method,
      url: call.request.url,
      operation: call.operation,
      ...call.trace,
      body: call.request.body ?? null,
      status: response?.status ?? null,
      fault: call.fault?.do ?? null,
      delivery,
    });
    if (requests.length > MOST_LOGGED) requests.shift();
  }

  async function handle(
    request: HttpRequest,
    { remote, tooLarge = false }: HandleOptions = {},
  ): Promise<Exchange> {
    let nowMs = settle();
    if (isControl(request.url))
      return { kind: 'answer', response: dated(control(emulator, request, remote), nowMs) };
    const call = openCall(request, world, settings);
    if (tooLarge || Buffer.byteLength(request.body ?? '') > MOST_BODY_BYTES) {
      const refusal = new Refusal(413, 'payload_too_large', { detail: 'Bodies have at most 1 MiB.' });
      const response = problemResponse(refusal, call.requestId);
      log(call, nowMs, response, 'answer');
      return { kind: 'answer', response: dated(response, nowMs) };
    }
    const lost =
      call.fault?.do === 'late' ? putOff(call, call.fault.ms, nowMs) : deliverWithoutEffect(call.fault);
    if (lost !== null) {
      log(call, nowMs, lost.kind === 'answer' ? lost.response : null, lost.kind);
      return lost.kind === 'answer' ? { ...lost, response: dated(lost.response, nowMs) } : lost;
    }
    let result = attempt(call, world, nowMs, settings);
    while ('waitUntilMs' in result) {
      await clock.sleep(result.waitUntilMs - nowMs);
      nowMs = Math.max(settle(), result.waitUntilMs);
      result = attempt(call, world, nowMs, settings);
    }
    for (const [key, holder] of held) if (holder.call === call) held.delete(key);
    if (call.method !== 'GET') remember(nowMs);
    const exchange = deliver(call.fault, dated(result.response, nowMs));
    log(call, nowMs, result.response, exchange.kind);
    if (call.fault?.do === 'slow') await clock.sleep(call.fault.ms);
    return exchange;
  }

  /** The client loses the connection now; the request has its effect later. */
  function putOff(call: Call, ms: number, nowMs: number): Exchange {
    const { method, url, headers, body } = call.request;
    try {
      const { projectId } = authenticate(world, headers.authorization, nowMs);
      world.late.push({
        atMs: nowMs + ms,
        projectId,
        method,
        url,
        headers: { ...headers },
        body: body ?? null,
      });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    return { kind: 'reset' };
  }

  /** `@assumption A35` */
  function dated(response: HttpResponse, nowMs: number): HttpResponse {
    if (!readings.dateHeader) return response;
    return { ...response, headers: { ...response.headers, date: new Date(nowMs).toUTCString() } };
  }

  const emulator: Emulator = {
    handle,
    transport: () => inProcessTransport(emulator, options.clock),
    get world() {
      settle();
      return world;
    },
    get readings() {
      return readings;
    },
    get faults() {
      return faults;
    },
    requests,
    billed: () => {
      settle();
      return billed(world);
    },
    now: () => clock.now(),
    tokens: (projectId) => {
      const project = world.projects.find(
        (candidate) => projectId === undefined || candidate.id === projectId,
      );
      if (project === undefined) throw new EmulatorInputError(`project ${projectId}: there is none`);
      return projectTokens(world.seed, project.id);
    },
    mutate: (mutation) => {
      settle();
      const result = mutate(world, mutation, clock.now());
      settle();
      remember(clock.now());
      return result;
    },
    setFaults: (rules) => {
      faults = rules;
      world.faultHits = {};
      remember(settle());
    },
    setReadings: (changed) => {
      readings = { ...readings, ...parseReadings(changed) };
      remember(settle());
    },
    snapshot: () => {
      settle();
      return structuredClone(world);
    },
    restore: (saved) => {
      world = structuredClone(saved);
      held.clear();
      history.clear();
      reanchor();
      remember(settle());
    },
  };
  remember(settle());
  return emulator;
}

function newWorld({ clock, random, seed, projects }: EmulatorOptions): World {
  const drawn = seed ?? Math.floor((random?.next() ?? 0) * 0x1_0000_0000);
  return createWorld(String(drawn), projects ?? DEFAULT_PROJECTS, clock.now());
}
