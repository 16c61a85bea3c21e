import type { Desired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import { type ApiProfile, documentedProfile } from '../core/profile.ts';
import type { ProgressEvent } from '../core/progress.ts';
import type { Emulator } from '../emulator/emulator.ts';
import { createEmulator } from '../emulator/emulator.ts';
import type { Profile } from '../emulator/profile.ts';
import type { Execution, Project } from '../emulator/world.ts';
import { loadSpec, type Source } from '../spec/load.ts';
import { type Chance, chance } from './chance.ts';
import type { Controller, Running } from './controller.ts';
import type { Observer, Trace } from './observer.ts';
import { type EngineOptions, engineOf, type Program, startProcess } from './process.ts';
import { Questions } from './questions.ts';
import { ResourceHistory } from './resource-history.ts';
import { usualLimits } from './rules/purchases.ts';
import { createRules, type FurtherRules, type Rules } from './rules/rules.ts';
import type { Limits, Truth } from './rules/truth.ts';
import { plainSpecFile, type SpecFile } from './spec-file.ts';
import { type Boxes, memoryBox } from './state-box.ts';
import { failuresAreReported, plainSources, type SpecModel, type Story } from './story.ts';
import { foreignId, issueTokens, projectId, secretsOf, type TokenName } from './tokens.ts';
import { type VirtualClock, virtualClock } from './virtual-clock.ts';
import { watchedTransport } from './watched-transport.ts';

/** A run that is not over by then does not end. */
const longestRunMs = 12 * 24 * 3_600_000;
const mostBoundaries = 60_000;
/** How long a token's budget is unknown after the record of its requests is lost: two windows. */
const uncertainBudgetMs = 120_000;

/** A rule that was broken, and where the story stood. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
}

export interface StageOptions {
  /** Other states than those in memory. */
  readonly boxes?: Boxes;
  /** The spec, where operators edit it. */
  readonly file?: (model: SpecModel) => SpecFile;
  /** The files of a spec, where it has an overlay. */
  readonly sources?: (model: SpecModel, projectId: number) => readonly Source[];
  /** The profiles of both sides in a story with a profile. */
  readonly profiles?: { readonly client: ApiProfile; readonly service: Profile };
  /** The known limits, where a state can be lost or another one acts. */
  readonly limits?: Limits;
  readonly rules?: (truth: Truth, stage: StoryStage) => FurtherRules;
  readonly ports?: EngineOptions['ports'];
  readonly onLine?: (elapsedMs: number, who: string, line: string) => void;
}

/** Everything that a scenario plays on: service, clock, machines, and those who watch. */
export class StoryStage {
  readonly story: Story;
  readonly observer: Observer;
  readonly clock: VirtualClock;
  readonly emulator: Emulator;
  readonly history: ResourceHistory;
  readonly rules: Rules;
  readonly trace: Trace;
  readonly chance: Chance;
  readonly tokens: Readonly<Record<TokenName, string>>;
  readonly questions: Questions;
  /** The resources that plans have reported as billed on purpose. */
  readonly leftBilled = new Set<string>();
  /** The spec or the operator has written `unmanaged: ignore`: all unmanaged resources belong to the operator. */
  ignoresUnmanaged: boolean;
  /** Called at each boundary with its name and how often it was crossed. */
  onCrossed: ((running: Running, name: string, nth: number) => void) | undefined;
  /** Those that run, and since when, in ms that have passed. */
  readonly #running = new Map<Running, number>();
  readonly #crossed = new Map<string, number>();
  readonly #controllers: Controller[] = [];
  /** Specs by their text: a story loads few of them, often. */
  readonly #loaded = new Map<string, Desired>();
  readonly #profile: ApiProfile;
  /** The spec that the story is about. */
  readonly file: SpecFile;
  #violation: Violation | undefined;
  #givenUp = false;
  readonly #boxes: Boxes | undefined;
  readonly #ports: EngineOptions['ports'];
  readonly #sources: NonNullable<StageOptions['sources']>;

  constructor(
    story: Story,
    observer: Observer,
    {
      boxes,
      profiles,
      file = plainSpecFile,
      sources = plainSources,
      limits = usualLimits,
      rules,
      ports,
      onLine,
    }: StageOptions,
  ) {
    this.story = story;
    this.trace = { add: (who, line) => onLine?.(this.clock.monotonic(), who, line) };
    this.#ports = ports;
    this.#boxes = boxes;
    this.#sources = sources;
    this.clock = virtualClock(Date.UTC(2026, 0, 1), 1, () => boxes?.isBusy() === true);
    this.file = file(story.specs[0] as SpecModel);
    this.ignoresUnmanaged = story.specs.some(({ settings }) => settings.unmanaged === 'ignore');
    this.observer = observer;
    this.questions = new Questions((blocked) => this.rules.asked(blocked));
    this.chance = chance(story.seed ^ 0x5eed);
    const profile = story.profile === true ? profiles : undefined;
    this.#profile = profile?.client ?? documentedProfile;
    this.emulator = emulatorOf(story, this.clock, profile?.service);
    issueTokens(this.emulator);
    this.tokens = secretsOf(this.emulator);
    this.history = new ResourceHistory(
      this.emulator,
      projectId,
      'list_servers' in this.#profile.operations,
      () => this.file.lines,
    );
    const truth = this.#truth(limits);
    this.rules = createRules(truth, rules?.(truth, this));
    this.history.recordExecutions(true);
  }

  get violation(): Violation | undefined {
    return this.#violation;
  }

  get givenUp(): boolean {
    return this.#givenUp;
  }

  /** Boundaries crossed so far, by name. */
  get crossed(): ReadonlyMap<string, number> {
    return this.#crossed;
  }

  /** Every machine so far. */
  get controllers(): readonly Controller[] {
    return this.#controllers;
  }

  fail(rule: string, message: string): void {
    if (this.#violation !== undefined) return;
    this.#violation = { rule, message };
    this.trace.add('', `VIOLATION ${rule}: ${message}`);
    this.#killAll();
  }

  /** Ends the story without a verdict: a known limit, which the figures count. */
  giveUp(limit: string): void {
    this.#givenUp = true;
    this.trace.add('', `given up: ${limit}`);
    this.observer.count(`given up: ${limit}`);
  }

  /** Another machine, with a state of its own. */
  controller(name: string, first: TokenName, file = this.file): Controller {
    let unknownUntil = 0;
    let stateSince = 0;
    let token = first;
    const sharing = () =>
      this.#controllers.filter(
        (other) => other !== made && other.tokens().some((each) => made.tokens().includes(each)),
      );
    const made: Controller = {
      name,
      file,
      box: this.#boxes?.box(name) ?? memoryBox(name),
      disk: { failing: 0, durable: false },
      epoch: 0,
      behind: false,
      endings: new Map(),
      skewMs: 0,
      clockWasSet: false,
      runs: 0,
      approved: [],
      onRelease: [],
      confirmed: new Set(),
      get stateSince() {
        return stateSince;
      },
      exchanged: (how) => {
        this.history.recordExecutions(false);
        stateSince = how === 'lost' ? this.history.births : 0;
        made.confirmed.clear();
      },
      budgetUnknown: () => this.clock.monotonic() < unknownUntil || sharing().length > 0,
      forgetBudget: () => {
        unknownUntil = this.clock.monotonic() + uncertainBudgetMs;
      },
      exchangeToken: (to) => {
        if (to === token) return;
        for (const other of sharing()) other.forgetBudget();
        token = to;
      },
      tokens: () => {
        const several = token === first ? this.story.tokens : undefined;
        return (several ?? [token]).map((each) => this.tokens[each]);
      },
    };
    this.#controllers.push(made);
    return made;
  }

  /** The creations of the line of a key of the spec. */
  executionsOf(key: ResourceKey): readonly Execution[] {
    return this.history.executionsOf(this.file.lines.nameOf(key));
  }

  /** The project of the spec, as the client area shows it. */
  get project(): Project {
    return this.emulator.world.projects[0] as Project;
  }

  /** Reads the state of a machine between its processes. */
  async readState({ box }: Controller) {
    const store = await box.open(this.clock.now());
    const known = {
      bindings: await store.bindings(),
      open: await store.openIntents(),
      claims: await store.claims(),
    };
    await box.release();
    return known;
  }

  load(spec: SpecModel): Desired {
    const sources = this.#sources(spec, projectId);
    const text = sources.map((each) => each.text).join('\n');
    const known = this.#loaded.get(text);
    if (known !== undefined) return known;
    const desired = loadSpec(sources, {});
    this.#loaded.set(text, desired);
    return desired;
  }

  /** A new process on the machine: the same state, and nothing else of its predecessor's. */
  async start(
    controller: Controller,
    desired: Desired,
    dry = false,
  ): Promise<Program & { running: Running }> {
    const { clock, trace, rules, history } = this;
    const running = await startProcess({
      ...{ controller, desired, dry, clock },
      watch: (process) => rules.watch(process),
      crosses: (process, boundaries) => this.#crosses(process, boundaries),
      found: ({ open }) => {
        for (const intent of open.values()) history.recordWrite(intent, controller.file.lines);
      },
    });
    this.#running.set(running, clock.monotonic());
    const isOver = () => this.#violation !== undefined;
    const program = engineOf(running, {
      transport: watchedTransport(running, this.emulator.transport(), {
        ...{ rules, clock, isOver },
        fail: (rule, message) => this.fail(rule, message),
      }),
      random: this.chance.fork(),
      ...{ trace, profile: this.#profile, ports: this.#ports },
      onEvent: (event) => {
        this.#noteLeftBilled(event);
        rules.event(running, event);
      },
    });
    return { running, ...program };
  }

  async end(process: Running): Promise<void> {
    if (!process.crashable.isReplaced) process.crashable.kill();
    this.#running.delete(process);
    await process.controller.box.release();
    for (const change of process.controller.onRelease.splice(0)) await change();
  }

  remove(): void {
    for (const each of this.#controllers) each.box.remove();
  }

  #truth(limits: Limits): Truth {
    return {
      emulator: this.emulator,
      history: this.history,
      projectId,
      serversAreListed: 'list_servers' in this.#profile.operations,
      failuresAreReported: failuresAreReported(this.story),
      elapsed: () => this.clock.monotonic(),
      fail: (rule, message) => this.fail(rule, message),
      giveUp: (limit) => {
        this.giveUp(limit);
        this.#killAll();
      },
      machines: () => this.#controllers.length,
      limits,
    };
  }

  /** A boundary that is outside the process: the end of a run. */
  cross(process: Running, boundary: string): void {
    const nth = (this.#crossed.get(boundary) ?? 0) + 1;
    this.#crossed.set(boundary, nth);
    this.onCrossed?.(process, boundary, nth);
  }

  #crosses(process: Running, boundaries: readonly string[]): void {
    const now = this.clock.monotonic();
    if (now - (this.#running.get(process) ?? now) > longestRunMs) {
      this.fail('I12', 'a run does not end');
      return;
    }
    for (const name of ['*', ...boundaries]) {
      if (name === '*' && (this.#crossed.get(name) ?? 0) >= mostBoundaries) {
        this.fail('I12', 'a run does not end');
        return;
      }
      this.cross(process, name);
    }
  }

  #noteLeftBilled(event: ProgressEvent): void {
    if (event.type !== 'planned') return;
    for (const each of event.plan.cost.left_billed) this.leftBilled.add(each);
  }

  #killAll(): void {
    for (const each of this.#running.keys()) each.crashable.kill();
  }
}

function emulatorOf(
  { seed, readings, durations, faults }: Story,
  clock: VirtualClock,
  profile: Profile | undefined,
): Emulator {
  return createEmulator({
    clock,
    seed,
    projects: [
      { id: projectId, name: 'shop' },
      { id: foreignId, name: 'other' },
    ],
    readings,
    faults,
    ...(durations === undefined ? {} : { durations }),
    ...(profile === undefined ? {} : { profile }),
  });
}
