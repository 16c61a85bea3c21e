import { createClient } from '../api/client.ts';
import { readOnlyMemory } from '../api/token-record.ts';
import type { Desired } from '../core/desired.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { ProgressEvent } from '../core/progress.ts';
import type { Transport } from '../core/transport.ts';
import type { EngineDeps, Repeating } from '../engine/deps.ts';
import { createEngine } from '../engine/engine.ts';
import { createReadCache } from '../engine/observe.ts';
import { Approval } from '../engine/run/approval.ts';
import { createStopwatch } from '../engine/timing.ts';
import { kinds } from '../reconcilers/registry.ts';
import type { Chance } from './chance.ts';
import type { Controller, Running } from './controller.ts';
import { Crashable } from './crashable.ts';
import { type Mirror, mirrorOf, noted, type StateWatch, watchedStore } from './durable.ts';
import type { Trace } from './observer.ts';
import { projectId } from './tokens.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The client's own; evidence waits for it. */
const timeoutMs = 30_000;

/** A new process on a machine, and those who watch it. */
export interface Starting {
  readonly controller: Controller;
  readonly desired: Desired;
  readonly dry: boolean;
  readonly clock: VirtualClock;
  /** By the rules. */
  watch(running: Running): StateWatch;
  /** Called at each boundary; may kill the process. */
  crosses(running: Running, boundaries: readonly string[]): void;
  /** Called at the start with the state on disk. */
  found(mirror: Mirror): void;
}

/** Starts a process on the state of its predecessor. Nothing else of the predecessor survives. */
export async function startProcess(starting: Starting): Promise<Running> {
  const { controller, desired, dry, clock } = starting;
  controller.runs += 1;
  const machine = clock.machine();
  machine.jump(controller.skewMs);
  const inner = await controller.box.open(machine.now());
  const mirror = await mirrorOf(inner);
  starting.found(mirror);
  const name = `${controller.name}${controller.runs}${dry ? 'd' : ''}`;
  const process: Running = {
    name,
    controller,
    mirror,
    desired,
    dry,
    destroys: false,
    done: new Set(),
    answered: new Set(),
    byOperator: false,
    plan: undefined,
    firstPlan: undefined,
    stop: new AbortController(),
    halt: new AbortController(),
    crashable: new Crashable(machine, (boundaries) => starting.crosses(process, boundaries)),
    get store() {
      return store;
    },
    get approval() {
      return approval;
    },
  };
  const store = watchedStore(inner, {
    crashable: process.crashable,
    mirror,
    watch: noted(starting.watch(process), process.done, mirror.bindings),
    disk: controller.disk,
  });
  const approval = new Approval(store);
  return process;
}

export type Ports = Pick<EngineDeps, 'writes' | 'tasks'>;

export interface EngineOptions {
  readonly transport: Transport;
  readonly random: Chance;
  readonly trace: Trace;
  readonly profile: ApiProfile;
  readonly onEvent: (event: ProgressEvent) => void;
  /** The ports of the engine, where they are watched. */
  readonly ports?: ((ports: Ports, controller: Controller) => Ports) | undefined;
}

export type Program = ReturnType<typeof engineOf>;

/** The program of the process: the real client and engine. */
export function engineOf(
  process: Running,
  { transport, random, trace, profile, onEvent, ports = (each) => each }: EngineOptions,
) {
  const { crashable, store, controller, dry, approval } = process;
  const client = createClient({
    baseUrl: 'http://127.0.0.1/v1',
    token: () => controller.tokens(),
    projectId,
    transport,
    clock: crashable.clock,
    random,
    profile,
    uses: dry ? readOnlyMemory(store) : store,
    logger: {
      debug: () => {},
      warn: (fields, message) => trace.add(process.name, `log ${message} ${JSON.stringify(fields)}`),
    },
    timeoutMs,
  });
  // A daemon's, with the approval of the process.
  const repeating: Repeating = {
    cache: createReadCache(client.reads('operation'), crashable.clock, () => client.writes.token()),
    // Each run is a new process, so it tries the refused writes at once.
    probeMs: 0,
    stopwatch: createStopwatch(crashable.clock, profile.timeScale),
    // No later run of this process continues a wait.
    settleMs: 7_200_000,
    isPaused: (operation) => approval.isPaused(operation),
  };
  const engine = createEngine({
    ...client,
    ...ports(client, controller),
    store,
    clock: crashable.clock,
    random,
    kinds,
    profile,
    onEvent: (event) => {
      if (event.type === 'planned') {
        process.plan = event.plan;
        process.firstPlan ??= event.plan;
      }
      if (event.type === 'ended' && event.result.outcome === 'done') approval.consume(event.result);
      onEvent(event);
    },
  });
  return { engine, repeating };
}
