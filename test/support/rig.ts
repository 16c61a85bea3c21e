import { createClient } from '../../src/api/client.ts';
import type { Desired } from '../../src/core/desired.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import { type ApiProfile, documentedProfile } from '../../src/core/profile.ts';
import type { ApplyReport, ProgressEvent } from '../../src/core/progress.ts';
import type { StateStore } from '../../src/core/state.ts';
import {
  type HttpRequest,
  type HttpResponse,
  type SendOptions,
  type Transport,
  TransportError,
} from '../../src/core/transport.ts';
import type { EmulatorOptions } from '../../src/emulator/emulator.ts';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { type FaultAction, type FaultRule, faultRule } from '../../src/emulator/faults.ts';
import type { ApplyOptions, Repeating, Resolution } from '../../src/engine/deps.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createReadCache } from '../../src/engine/observe.ts';
import { createStopwatch } from '../../src/engine/timing.ts';
import { kinds } from '../../src/reconcilers/registry.ts';
import { chance } from '../../src/simulation/chance.ts';
import { issueToken } from '../../src/simulation/tokens.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { documented } from './documented.ts';

/** The fields of the smallest server. */
export const sliders = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';

export interface RigOptions {
  readonly emulator?: Partial<EmulatorOptions>;
  readonly profile?: ApiProfile;
  readonly store?: StateStore;
  /** Stands between client and emulator. */
  readonly wrap?: (transport: Transport) => Transport;
  /** Asked before every request; the first project's, for reading and writing, by default. */
  readonly token?: () => string | readonly string[];
  /** So many tokens for reading and writing share the work. */
  readonly tokens?: number;
  /** Beside being kept in `events`. */
  readonly onEvent?: (event: ProgressEvent) => void;
}

/** A request as the client sent it, whatever became of it. */
export interface Sent {
  readonly method: string;
  /** Below the base URL. */
  readonly path: string;
  readonly body: string | undefined;
  readonly key: string | undefined;
  /** Real time passed, in ms: no clock that jumps. */
  readonly at: number;
  /** Not a byte of it arrived. */
  unsent: boolean;
}

/** The real engine, kinds, client and state against the emulator in process, under a virtual clock. */
export type Rig = ReturnType<typeof rig>;

export function rig(options: RigOptions = {}) {
  const clock = virtualClock();
  // The API's clock does not jump with ours.
  const born = clock.now();
  const apiClock = { ...clock, now: () => born + clock.monotonic() };
  const emulator = createEmulator({ clock: apiClock, seed: 1, ...options.emulator });
  const store = options.store ?? memoryState({ createdAt: clock.now(), lineage: 'test' });
  const further = Array.from({ length: (options.tokens ?? 1) - 1 }, (_, at) =>
    issueToken(emulator, 4711, `further-${at + 2}`),
  );
  const secrets = [emulator.tokens(4711).readWrite, ...further];
  const profile = options.profile ?? documentedProfile;
  const events: ProgressEvent[] = [];
  const random = chance(1);
  const sent: Sent[] = [];
  const service = documented(emulator);
  const transport = recording(options.wrap?.(service) ?? service);

  function recording(inner: Transport): Transport {
    return {
      close: () => inner.close(),
      async send(request, sendOptions) {
        const { method, body, headers } = request;
        const path = new URL(request.url).pathname.slice('/v1'.length);
        const key = headers['idempotency-key'];
        const entry = { method, path, body, key, at: clock.monotonic(), unsent: false };
        sent.push(entry);
        try {
          return await inner.send(request, sendOptions);
        } catch (error) {
          entry.unsent = error instanceof TransportError && error.effect === 'none';
          throw error;
        }
      },
    };
  }

  function clientOn(state: StateStore) {
    return createClient({
      baseUrl: 'http://127.0.0.1/v1',
      token: options.token ?? (() => secrets),
      projectId: 4711,
      transport,
      clock,
      random,
      profile,
      uses: state,
    });
  }

  function engineOn(state: StateStore): Engine {
    engineClient = clientOn(state);
    return createEngine({
      ...engineClient,
      ...{ store: state, clock, random, kinds, profile },
      onEvent: (event) => {
        events.push(event);
        options.onEvent?.(event);
      },
    });
  }

  function apply(spec: string, applyOptions: Partial<ApplyOptions> = {}): Promise<ApplyReport> {
    return clock.run(engine.apply(load(spec), { approve: async () => true, ...applyOptions }));
  }

  /** From now on the API fails so, and in no other way. A text: the first request of this operation. */
  function fail(when: FaultRule['when'] | string, action: FaultAction): void {
    const condition = typeof when === 'string' ? { path: when, nth: 1 } : when;
    emulator.setFaults([faultRule(condition, action)]);
  }

  let engineClient: ReturnType<typeof createClient>;
  let engine = engineOn(store);
  return {
    clock,
    emulator,
    store,
    events,
    sent,
    /** The writes among the sent requests. */
    writes: () => sent.filter(({ method }) => method !== 'GET'),
    /** The one that `plan` and `apply` use. */
    get engine() {
      return engine;
    },
    /** The engine of another process, from now on: same state, or another one. */
    restart: (other?: StateStore) => {
      engine = engineOn(other ?? store);
      return engine;
    },
    /** The client of the engine, with its counts. */
    get engineClient() {
      return engineClient;
    },
    /** A client of its own on the same state and transport. */
    client: () => clientOn(store),
    /** The project of the emulator. */
    get project() {
      const [project] = emulator.world.projects;
      if (project === undefined) throw new Error('the emulator has no project');
      return project;
    },
    /** The next process has an empty state, which this returns. */
    loseState: () => {
      const empty = memoryState({ createdAt: clock.now(), lineage: 'new' });
      engine = engineOn(empty);
      return empty;
    },
    /** Aborts once this time has passed. */
    signalAfter: (ms: number) => {
      const controller = new AbortController();
      void clock.sleep(ms).then(() => controller.abort(new Error('interrupted')));
      return controller.signal;
    },
    /** What a daemon keeps from pass to pass. */
    repeating: (): Repeating => ({
      cache: createReadCache(clientOn(store).reads('operation'), clock, () => clientOn(store).writes.token()),
      probeMs: 30 * 60_000,
      stopwatch: createStopwatch(clock, profile.timeScale),
      settleMs: 90_000,
    }),
    plan: (spec: string, planOptions?: Partial<ApplyOptions>) =>
      clock.run(engine.plan(load(spec), planOptions)),
    apply,
    /** The commands of an operator. */
    adopt: (spec: string, key: string, id: string) =>
      clock.run(engine.adopt(load(spec), key as ResourceKey, id)),
    forget: (spec: string, key: string) => clock.run(engine.forget(load(spec), key as ResourceKey)),
    resolve: (spec: string, key: string, resolution: Resolution) =>
      clock.run(engine.resolve(load(spec), key as ResourceKey, resolution)),
    ignore: (spec: string, ...names: readonly string[]) => clock.run(engine.ignore(load(spec), names)),
    unignore: (spec: string, ...names: readonly string[]) => clock.run(engine.unignore(load(spec), names)),
    fail,
    /** Applies the spec while the API fails so. */
    failing: async (
      when: FaultRule['when'] | string,
      action: FaultAction,
      ...of: Parameters<typeof apply>
    ) => {
      fail(when, action);
      const report = await apply(...of);
      emulator.setFaults([]);
      return report;
    },
  };
}

/** A rig to which these specs were applied, one after the other. */
export async function applied(...specs: readonly string[]): Promise<Rig> {
  const played = rig();
  for (const spec of specs) await played.apply(spec);
  return played;
}

/** A transport where `act` decides about each request; `send` passes the request on. */
export function around(
  act: (
    request: HttpRequest,
    send: () => Promise<HttpResponse>,
    options: SendOptions,
  ) => Promise<HttpResponse>,
) {
  return (inner: Transport): Transport => ({
    close: () => inner.close(),
    send: (request, options) => act(request, () => inner.send(request, options), options),
  });
}

export function load(spec: string, environment: Readonly<Record<string, string>> = {}): Desired {
  const text = spec.trimStart().startsWith('version:') ? spec : `version: 1\nproject: {id: 4711}\n${spec}`;
  return loadSpec([{ file: 'vdcsync.yaml', text }], environment);
}
