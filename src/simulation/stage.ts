import { readOnlyMemory } from '../api/budget.ts';
import { type Client, createClient } from '../api/client.ts';
import type { Desired } from '../core/desired.ts';
import type { OperationId } from '../core/plan.ts';
import { type ApiProfile, documentedProfile } from '../core/profile.ts';
import { type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import { createEmulator } from '../emulator/emulator.ts';
import type { Emulator } from '../emulator/options.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import { kinds } from '../reconcilers/registry.ts';
import { loadSpec } from '../spec/load.ts';
import { type Chance, chance } from './chance.ts';
import type { Controller, Running } from './controller.ts';
import { type Coverage, watchedWrites } from './coverage.ts';
import { mirrorOf, noted, watchedStore } from './durable.ts';
import { boundariesOf, describe, isConclusive, isEndedTask } from './exchanges.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { createMortal } from './mortal.ts';
import { clientProfile, serviceProfile } from './operations.ts';
import { createRules, type Rules } from './rules/rules.ts';
import { memoryBox, sqliteBox } from './state-box.ts';
import { type SpecModel, type Story, specText } from './story.ts';
import { told, traced } from './told.ts';
import { createTrace, type Trace } from './trace.ts';
import { type VirtualClock, virtualClock } from './virtual-clock.ts';

const projectId = 4711;
const foreignId = 4712;
/** The client's own; evidence waits for it. */
const timeoutMs = 30_000;
/** A run that is not over by then does not end. */
const longestRunMs = 12 * 24 * 3_600_000;
const mostBoundaries = 60_000;

/** A rule that was broken, and where the story stood. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
}

/** Everything that a scenario plays on: service, clock, machines, and those who watch. */
export interface Stage {
  readonly story: Story;
  readonly clock: VirtualClock;
  readonly emulator: Emulator;
  readonly ledger: Ledger;
  readonly rules: Rules;
  readonly trace: Trace;
  readonly coverage: Coverage;
  readonly chance: Chance;
  readonly tokens: Readonly<Record<TokenName, string>>;
  readonly violation: Violation | undefined;
  /** Boundaries crossed so far, by name. */
  readonly crossed: ReadonlyMap<string, number>;
  /** What plans have said stays billed on purpose. */
  readonly leftBilled: ReadonlySet<string>;
  /** The person has written `unmanaged: ignore`: what nobody knows is theirs. */
  vouched: boolean;
  /** Called at each boundary with its name and how often it was crossed. */
  onCrossed: ((running: Running, name: string, nth: number) => void) | undefined;
  fail(rule: string, message: string): void;
  /** Ends the story without a verdict: a known limit, which the figures count. */
  giveUp(limit: string): void;
  readonly givenUp: boolean;
  /** Every machine so far. */
  readonly controllers: readonly Controller[];
  controller(name: string, token: TokenName): Controller & { tokenName: TokenName };
  load(spec: SpecModel): Desired;
  /** A new process on the machine: the same state, and nothing else of its predecessor's. */
  start(
    controller: Controller,
    desired: Desired,
    dry?: boolean,
  ): Promise<{ running: Running; engine: Engine }>;
  end(running: Running): Promise<void>;
  remove(): void;
}

export type TokenName = 'readWrite' | 'member' | 'read' | 'revoked' | 'foreign';

export function createStage(story: Story, coverage: Coverage): Stage {
  const clock = virtualClock(Date.UTC(2026, 0, 1), 1);
  const dice = chance(story.seed ^ 0x5eed);
  const emulator = createEmulator({
    clock,
    seed: story.seed,
    projects: [
      { id: projectId, name: 'shop' },
      { id: foreignId, name: 'other' },
    ],
    readings: story.readings,
    faults: story.faults,
    ...(story.profile === true ? { profile: serviceProfile } : {}),
  });
  const serversAreListed = story.profile === true && 'list_servers' in clientProfile.operations;
  const ledger = createLedger(emulator, projectId, serversAreListed);
  const trace = createTrace(() => clock.monotonic());
  const running = new Set<Running>();
  const crossed = new Map<string, number>();
  const tokens = secrets(emulator);
  const names = new Map(Object.values(tokens).map((secret) => [secret, nameOf(emulator, secret)]));
  let violation: Violation | undefined;
  let givenUp = false;
  const leftBilled = new Set<string>();
  const controllers: Controller[] = [];

  function fail(rule: string, message: string): void {
    if (violation !== undefined) return;
    violation = { rule, message };
    trace.add('', `VIOLATION ${rule}: ${message}`);
    for (const each of running) each.mortal.kill();
  }

  const rules = createRules({
    emulator,
    ledger,
    projectId,
    elapsed: () => clock.monotonic(),
    tokenName: (secret) => names.get(secret) ?? 'unknown',
    fail,
    giveUp: (limit) => {
      stage.giveUp(limit);
      for (const each of running) each.mortal.kill();
    },
    machines: () => controllers.length,
  });

  function transport(process: Running): Transport {
    const inner = emulator.transport();
    return {
      send: (request, options) =>
        process.mortal.cross(boundariesOf(request), async () => {
          rules.arrives(process, request);
          if (violation !== undefined) throw new Error('the scenario is over');
          const sentAt = clock.monotonic();
          let response: HttpResponse | undefined;
          let refused = false;
          try {
            response = await inner.send(request, options);
            return response;
          } catch (error) {
            refused = error instanceof TransportError && error.effect === 'none';
            throw error;
          } finally {
            const retryAfter = response?.status === 429 ? response.headers['retry-after'] : undefined;
            if (response !== undefined) process.answered.add(request.headers['idempotency-key'] ?? '');
            const fresh = response?.headers['idempotency-replayed'] === undefined;
            rules.handled(process, request, {
              refused,
              requestId: response?.headers['x-request-id'],
              taskEnded: request.url.includes('/tasks/') && isEndedTask(response),
              ...(response === undefined || !fresh || !isConclusive(response)
                ? {}
                : { status: response.status }),
              ...(retryAfter === undefined || !fresh || clock.monotonic() > sentAt
                ? {}
                : { retryAfterMs: Number(retryAfter) * 1000 }),
            });
            if (request.method !== 'GET') {
              const told =
                response === undefined ? 'no answer' : `${response.status}${fresh ? '' : ' replayed'}`;
              trace.add(process.name, `${describe(request)} → ${told}`);
            }
          }
        }),
      close: () => inner.close(),
    };
  }

  function onBoundary(process: () => Running) {
    return (_mortal: unknown, boundaries: readonly string[]) => {
      const first = process();
      if (clock.monotonic() - startedAt(first) > longestRunMs) return fail('I12', 'a run does not end');
      for (const name of ['*', ...boundaries]) {
        const nth = (crossed.get(name) ?? 0) + 1;
        crossed.set(name, nth);
        if (name === '*' && nth > mostBoundaries) return fail('I12', 'a run goes on without end');
        stage.onCrossed?.(first, name, nth);
      }
    };
  }

  const starts = new Map<Running, number>();
  const startedAt = (process: Running) => starts.get(process) ?? clock.monotonic();

  const stage: Stage = {
    story,
    clock,
    emulator,
    ledger,
    rules,
    trace,
    coverage,
    chance: dice,
    tokens,
    get violation() {
      return violation;
    },
    crossed,
    leftBilled,
    vouched: false,
    onCrossed: undefined,
    fail,
    giveUp(limit) {
      givenUp = true;
      trace.add('', `given up: ${limit}`);
      coverage.count(`given up: ${limit}`);
    },
    get givenUp() {
      return givenUp;
    },
    controllers,
    controller(name, tokenName) {
      const box = story.state === 'sqlite' ? sqliteBox(name) : memoryBox(name);
      let unknownUntil = 0;
      const made = {
        name,
        box,
        disk: { failing: 0, durable: false },
        epoch: 0,
        behind: false,
        endings: new Map(),
        skewMs: 0,
        clockWasSet: false,
        runs: 0,
        done: new Set<OperationId>(),
        onRelease: [],
        tokenName,
        budgetUnknown: () =>
          clock.monotonic() < unknownUntil ||
          controllers.some((other) => other !== made && other.token() === made.token()),
        forgetBudget: () => {
          unknownUntil = clock.monotonic() + 120_000;
        },
        token: () => tokens[made.tokenName],
      };
      controllers.push(made);
      return made;
    },
    load: (spec) => loadSpec([{ file: 'vdcsync.yaml', text: specText(spec, projectId) }], {}),

    async start(controller, desired, dry = false) {
      controller.runs += 1;
      controller.done.clear();
      const machine = clock.machine();
      machine.jump(controller.skewMs);
      const inner = await controller.box.open(machine.now());
      const mirror = await mirrorOf(inner);
      for (const intent of mirror.open.values()) ledger.recordWrite(intent);
      const name = `${controller.name}${controller.runs}${dry ? 'd' : ''}`;
      const process: Running = {
        name,
        controller,
        machine,
        mirror,
        desired,
        dry,
        mostDeletions: desired.settings.max_deletions,
        deleted: new Set(),
        holds: { everything: false, spendingUntil: 0, names: new Set() },
        answered: new Set(),
        endedTasks: new Map(),
        told5xx: new Set(),
        repolls: 0,
        byPerson: false,
        stop: new AbortController(),
        halt: new AbortController(),
        mortal: createMortal(
          name,
          machine,
          onBoundary(() => process),
        ),
        get store() {
          return store;
        },
      };
      const store = watchedStore(inner, {
        mortal: process.mortal,
        mirror,
        watch: noted(traced(rules.watch(process), trace, name, coverage), controller.done, mirror.bindings),
        disk: controller.disk,
      });
      running.add(process);
      starts.set(process, clock.monotonic());
      return {
        running: process,
        engine: engineOf(process, transport(process), {
          ...{ random: dice.fork(), coverage, trace, leftBilled },
          profile: story.profile === true ? clientProfile : documentedProfile,
        }),
      };
    },

    async end(process) {
      process.mortal.kill();
      running.delete(process);
      await process.controller.box.release();
      for (const change of process.controller.onRelease.splice(0)) await change();
    },
    remove() {
      for (const each of controllers) each.box.remove();
    },
  };
  ledger.look(true);
  return stage;
}

function engineOf(
  process: Running,
  transport: Transport,
  {
    random,
    coverage,
    trace,
    leftBilled,
    profile,
  }: {
    readonly random: Chance;
    readonly coverage: Coverage;
    readonly trace: Trace;
    readonly leftBilled: Set<string>;
    readonly profile: ApiProfile;
  },
): Engine {
  const { mortal, store, controller, dry } = process;
  const client: Client = createClient({
    baseUrl: 'http://127.0.0.1/v1',
    token: () => controller.token(),
    transport,
    clock: mortal.clock,
    random,
    profile,
    uses: dry ? readOnlyMemory(store) : store,
    logger: {
      debug: () => {},
      warn: (fields, message) => trace.add(process.name, `log ${message} ${JSON.stringify(fields)}`),
    },
    timeoutMs,
  });
  return createEngine({
    reads: client.reads,
    writes: watchedWrites(client.writes, process, coverage),
    tasks: {
      async wait(task, signal) {
        const end = await client.tasks.wait(task, signal);
        coverage.task(task.sort, end.end);
        return end;
      },
    },
    counts: () => ({ ...client.counters, throttled: client.counters.limited }),
    store,
    clock: mortal.clock,
    random,
    kinds,
    profile,
    requestTimeoutMs: client.timeoutMs,
    onEvent: (event) => {
      if (event.type === 'planned') for (const each of event.plan.cost.left_billed) leftBilled.add(each);
      const line = told(event);
      if (line !== undefined) trace.add(process.name, line);
    },
  });
}

function secrets(emulator: Emulator): Record<TokenName, string> {
  const own = emulator.tokens(projectId);
  return {
    readWrite: own.readWrite,
    member: own.member,
    read: own.read,
    revoked: `${own.readWrite}-revoked`,
    foreign: emulator.tokens(foreignId).readWrite,
  };
}

function nameOf(emulator: Emulator, secret: string): string {
  for (const id of [projectId, foreignId]) {
    const own = emulator.tokens(id);
    for (const name of ['readWrite', 'read', 'member'] as const)
      if (own[name] === secret) return `${id}-${name}`;
  }
  return `${projectId}-revoked`;
}
