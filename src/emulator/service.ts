import type { Clock } from '../core/clock.ts';
import type { HttpRequest, HttpResponse } from '../core/transport.ts';
import type { Call, Route, Settings } from './call.ts';
import { DEFAULT_DURATIONS } from './durations.ts';
import type { FaultRule } from './faults.ts';
import { type Billed, billed, type LoggedRequest, RequestLog } from './inspection.ts';
import { meter } from './metering.ts';
import { type Mutation, mutate } from './mutations.ts';
import type { EmulatorOptions } from './options.ts';
import { allRoutes, attempt, openCall } from './pipeline.ts';
import { DEFAULT_PROFILE, type Profile } from './profile.ts';
import { defaultReadings, EmulatorInputError, parseReadings, type Readings } from './readings.ts';
import { advance } from './schedule.ts';
import { createWorld, DEFAULT_PROJECTS } from './seed.ts';
import { type EmulatorClock, emulatorClock, reanchor } from './time.ts';
import { type ProjectTokens, projectTokens } from './tokens.ts';
import type { Durations, World } from './world.ts';

/** The emulated service: its world and its settings. Time passes at each request and each read of the world. */
export class Service implements Settings {
  readonly profile: Profile;
  readonly routes: readonly Route[];
  readonly clock: EmulatorClock;
  readonly log = new RequestLog();
  readonly caller: Clock;
  readonly #speed: number;
  readonly #history = new History();
  /** Idempotency keys of requests that wait inside the service, and until when. */
  readonly #held = new Map<string, { readonly call: Call; readonly untilMs: number }>();
  #world: World;
  #readings: Readings;
  #faults: readonly FaultRule[];
  #durations: Durations;

  /** Throws `EmulatorInputError` for options that cannot be used. */
  constructor(options: EmulatorOptions) {
    const { clock, speed = 1, profile = DEFAULT_PROFILE, world, faults = [] } = options;
    if (!(speed > 0 && Number.isFinite(speed)))
      throw new EmulatorInputError('speed: must be a number over 0');
    this.profile = profile;
    this.routes = allRoutes(profile);
    this.#durations = { ...DEFAULT_DURATIONS, ...options.durations };
    this.clock = emulatorClock(clock, speed, () => this.#world);
    this.caller = clock;
    this.#speed = speed;
    this.#world = world === undefined ? newWorld(options) : structuredClone(world);
    this.#readings = { ...defaultReadings, ...parseReadings(options.readings) };
    this.#faults = faults;
    reanchor(this.#world, clock, speed);
    this.remember(this.settle());
  }

  /** The live world, brought up to now. Read only; changes go through `mutate`. */
  get world(): World {
    this.settle();
    return this.#world;
  }

  /** The world at the last request or read. This getter does not advance time. */
  get current(): World {
    return this.#world;
  }

  get readings(): Readings {
    return this.#readings;
  }

  setReadings(changed: Partial<Readings>): void {
    this.#readings = { ...this.#readings, ...parseReadings(changed) };
    this.remember(this.settle());
  }

  get faults(): readonly FaultRule[] {
    return this.#faults;
  }

  setFaults(faults: readonly FaultRule[]): void {
    this.#faults = faults;
    this.#world.faultHits = {};
    this.remember(this.settle());
  }

  get durations(): Durations {
    return this.#durations;
  }

  /** The durations of work that begins from now on. A duration that is not named does not change. */
  setDurations(changed: Partial<Durations>): void {
    this.#durations = { ...this.#durations, ...changed };
  }

  /** The last requests, oldest first. */
  get requests(): readonly LoggedRequest[] {
    return this.log.requests;
  }

  /** Everything that costs money now. */
  billed(): Billed[] {
    return billed(this.world);
  }

  /** Emulator milliseconds since the Unix epoch. */
  now(): number {
    return this.clock.now();
  }

  /** The secrets of a project's tokens; of the first project when none is named. */
  tokens(projectId?: number): ProjectTokens {
    const { seed, projects } = this.#world;
    const project = projects.find(({ id }) => projectId === undefined || id === projectId);
    if (project === undefined) throw new EmulatorInputError(`project ${projectId}: there is none`);
    return projectTokens(seed, project.id);
  }

  /** Changes the world directly, without a request. Throws `EmulatorInputError` for a resource that does not exist. */
  mutate(mutation: Mutation): unknown {
    const result = mutate(this.world, mutation, this.now());
    this.remember(this.settle());
    return result;
  }

  /** A copy of the world; requests that wait inside the emulator are not in it. */
  snapshot(): World {
    return structuredClone(this.world);
  }

  restore(saved: World): void {
    this.#world = structuredClone(saved);
    this.#held.clear();
    this.#history.clear();
    reanchor(this.#world, this.caller, this.#speed);
    this.remember(this.settle());
  }

  /** Lets everything due happen, late requests in their turn. Gives the present moment. */
  settle(): number {
    const nowMs = this.clock.now();
    for (;;) {
      const next = this.#world.late.toSorted((one, other) => one.atMs - other.atMs)[0];
      if (next === undefined || next.atMs > nowMs) break;
      this.#world.late = this.#world.late.filter((one) => one !== next);
      advance(this.#world, next.atMs);
      this.#runLate(next);
    }
    advance(this.#world, nowMs);
    return nowMs;
  }

  #runLate(late: World['late'][number]): void {
    const { method, url, headers, body, atMs } = late;
    const request: HttpRequest = { method, url, headers, ...(body === null ? {} : { body }) };
    const call: Call = {
      ...openCall(request, this.#world, { routes: this.routes, faults: [] }),
      late: true,
      charged: true,
    };
    const result = attempt(call, this.#world, atMs, this);
    if ('waitUntilMs' in result) this.#world.late.push({ ...late, atMs: result.waitUntilMs });
    else this.log.add(call, atMs, result.response, 'late');
    this.remember(atMs);
  }

  /** Meters the world, and copies it for stale reads, only if a reading or a fault asks for stale reads. */
  remember(nowMs: number): void {
    for (const project of this.#world.projects) meter(project, nowMs);
    if (this.#readings.staleReadsMs > 0 || this.#faults.some((rule) => rule.then.do === 'stale'))
      this.#history.record(this.#world, nowMs);
  }

  worldForRead(call: Call, nowMs: number): World {
    const agoMs = call.fault?.do === 'stale' ? call.fault.ms : this.#readings.staleReadsMs;
    return agoMs === 0 ? this.#world : (this.#history.at(nowMs - agoMs) ?? this.#world);
  }

  keyBusyUntil(projectId: number, key: string, call: Call): number | null {
    const holder = this.#held.get(`${projectId}:${key}`);
    if (holder !== undefined && holder.call !== call) return holder.untilMs;
    if (call.late) return null;
    const late = this.#world.late.find(
      (one) =>
        one.holdsKey !== false && one.projectId === projectId && one.headers['idempotency-key'] === key,
    );
    return late?.atMs ?? null;
  }

  holdKey(projectId: number, key: string, call: Call, untilMs: number): void {
    this.#held.set(`${projectId}:${key}`, { call, untilMs });
  }

  releaseKeys(call: Call): void {
    for (const [key, holder] of this.#held) if (holder.call === call) this.#held.delete(key);
  }

  /** `@assumption A35` */
  dated(response: HttpResponse, nowMs: number): HttpResponse {
    if (!this.#readings.dateHeader) return response;
    return { ...response, headers: { ...response.headers, date: new Date(nowMs).toUTCString() } };
  }
}

function newWorld({ clock, random, seed, projects }: EmulatorOptions): World {
  const drawn = seed ?? Math.floor((random?.next() ?? 0) * 0x1_0000_0000);
  return createWorld(String(drawn), projects ?? DEFAULT_PROJECTS, clock.now());
}

/** A read is never staler than this: older copies are dropped. */
const MOST_AGE_MS = 600_000;
const MOST_COPIES = 500;

interface Copy {
  readonly atMs: number;
  readonly world: string;
}

/** Copies of the world after each change, from which stale reads are answered. `@assumption A9` */
class History {
  #copies: Copy[] = [];
  /** The world of the last stale read. The next read often asks for the same copy at a later moment. */
  #shown: { readonly copy: Copy; atMs: number; readonly world: World } | undefined;

  /** Keeps a copy of the current world. */
  record(world: World, nowMs: number): void {
    // Nothing of these is ever read from a copy, and they are most of its size.
    const slim = { ...world, executions: [], late: [], buckets: {} };
    this.#copies.push({ atMs: nowMs, world: JSON.stringify(slim) });
    const firstNeeded = this.#copies.findLastIndex((copy) => copy.atMs <= nowMs - MOST_AGE_MS);
    this.#copies = this.#copies.slice(Math.max(0, firstNeeded, this.#copies.length - MOST_COPIES));
  }

  /** The world at that moment, or the oldest copy if the moment is before all copies. */
  at(ms: number): World | null {
    const copy = this.#copies.findLast((candidate) => candidate.atMs <= ms) ?? this.#copies[0];
    if (copy === undefined) return null;
    if (this.#shown?.copy !== copy || this.#shown.atMs > ms)
      this.#shown = { copy, atMs: ms, world: JSON.parse(copy.world) as World };
    this.#shown.atMs = ms;
    advance(this.#shown.world, ms);
    return this.#shown.world;
  }

  clear(): void {
    this.#copies = [];
    this.#shown = undefined;
  }
}
