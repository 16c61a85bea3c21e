import { ApiProblem, ConfigError, FenceError, PlanStaleError, StateError } from '../core/errors.ts';
import type { Blocked, Plan } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import { TransportError } from '../core/transport.ts';
import type { ApplyOptions } from '../engine/deps.ts';
import { approvalOptions, approve, asks } from './approvals.ts';
import type { Controller, Running } from './controller.ts';
import { operate } from './operator.ts';
import {
  type CalledMachine,
  type Director,
  type End,
  isConverged,
  type RunCall,
  type StoryParts,
} from './parts.ts';
import { checkAtRest, checkFixedPoint } from './rest.ts';
import { StoryStage } from './stage.ts';
import { failuresAreReported, type SpecModel, type Story } from './story.ts';

/** How one story went. */
export type Outcome = Awaited<ReturnType<typeof play>>;

/** Of the runs that something may disturb. */
export const mostFaultyRuns = 10;
const mostQuietRuns = 16;
const minute = 60_000;

/**
 * Plays one story: runs under faults, crashes and edits until all of them are used up. Then it runs without
 * disturbances, with an operator who follows the messages, until no work is left.
 */
export async function play(story: Story, parts: StoryParts = {}) {
  const stage = new StoryStage(story, parts.observer ?? { count: () => {} }, parts);
  const main = stage.controller('a', 'readWrite');
  const director = parts.director?.(stage, main) ?? crashes(stage, main);
  const isOver = () => stage.violation !== undefined || stage.givenUp;
  let blockedRuns = 0;
  try {
    for (let run = 0; run < director.mostRuns && !director.isCalm && !isOver(); run++) {
      if (run > 0) await stage.clock.advance(pauseOf(story, run));
      const machines = await director.machines();
      if (isOver()) break;
      const ends = await together(stage, machines);
      for (const end of ends) judgeEnd(stage, end, true);
      if (ends.some(isBlocked)) blockedRuns += 1;
      if (director.ended(machines, ends)) break;
    }
    director.heal();
    if (!isOver()) await heal(stage, main);
    for await (const { spec, isCalm } of director.specs()) {
      if (isOver()) break;
      blockedRuns += await settle(stage, main, spec, isCalm, parts);
    }
    if (!isOver()) await parts.atEnd?.(stage, main);
  } catch (error) {
    stage.fail('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    stage.remove();
  }
  return {
    violation: stage.violation,
    runs: main.runs,
    blockedRuns,
    /** The questions that the runs put to the operator. */
    questions: stage.questions.all,
    boundaries: stage.crossed,
    stage,
  };
}

/** One machine, whose process crashes at the moments of the story. */
function crashes(stage: StoryStage, main: Controller): Director {
  const { incidents, faults } = stage.story;
  const left = new Set(incidents);
  stage.onCrossed = (running, name, nth) => {
    for (const incident of left) {
      if (incident.at.boundary !== name || incident.at.nth !== nth) continue;
      left.delete(incident);
      running.crashable.kill();
    }
  };
  const isCalm = faults.length + incidents.length === 0;
  let before = left.size;
  let idle = 0;
  return {
    isCalm,
    mostRuns: mostFaultyRuns,
    machines: async () => [{ controller: main, call: {} }],
    ended(_machines, ends) {
      idle = ends.every(isConverged) && left.size === before ? idle + 1 : 0;
      before = left.size;
      return idle >= (left.size === 0 ? 1 : 2);
    },
    heal: () => left.clear(),
    async *specs() {
      yield { spec: stage.file.model, isCalm };
    },
  };
}

function pauseOf({ pausesMs }: Story, run: number): number {
  return pausesMs[Math.min(run - 1, pausesMs.length - 1)] ?? minute;
}

/** One run of each controller, at the same time. */
async function together(stage: StoryStage, machines: readonly CalledMachine[]): Promise<readonly End[]> {
  const started: (Awaited<ReturnType<StoryStage['start']>> & { readonly call: RunCall })[] = [];
  const shown = new Map<Running, Plan>();
  for (const { controller, call } of machines) {
    const desired = stage.load(controller.file.model);
    const program = await stage.start(controller, desired);
    const { running } = program;
    running.destroys = call.destroy === true;
    started.push({ ...program, call });
  }
  const ends = await stage.clock.run(
    Promise.all(
      started.map(({ running, engine, repeating, call }) => {
        const { desired } = running;
        const isCalled = Object.keys(call).length > 0;
        const asking =
          asks(desired) && !isCalled
            ? approvalOptions(running, repeating, (plan) => shown.set(running, plan))
            : {};
        // A plan that an operator has made or selected has that operator's approval.
        if (isCalled) running.byOperator = asks(desired);
        return untilEnd(running, engine.apply(desired, { ...optionsOf(running), ...asking, ...call }));
      }),
    ),
  );
  // A stopped run judges by its earlier reads.
  for (const end of ends)
    if (end.end === 'report' && end.report.outcome !== 'stopped') stage.questions.note(end.report);
  for (const [at, { running, repeating }] of started.entries()) {
    const end = ends[at] as End;
    stage.trace.add(running.name, `run ends: ${describeEnd(end)}`);
    if (repeating === undefined && isUnexplained(end))
      stage.fail('I12', 'a run ends as blocked, and names nothing that is blocked or waits');
    if (isConverged(end)) {
      stage.rules.converged(running);
      stage.cross(running, 'converged');
    }
    await stage.end(running);
  }
  for (const [running, plan] of shown) await approve(stage, running, plan);
  return ends;
}

export function optionsOf(running: Running): ApplyOptions {
  return {
    approve: async () => true,
    unattended: true,
    stop: running.stop.signal,
    halt: running.halt.signal,
  };
}

/** Waits for the first of: report, failure, death. */
export function untilEnd(running: Running, work: Promise<ApplyReport>): Promise<End> {
  return Promise.race([
    work.then(
      (report): End => ({ end: 'report', report, done: running.done }),
      (error: unknown): End => ({ end: 'error', error }),
    ),
    running.crashable.died.then((): End => ({ end: 'crash' })),
  ]);
}

function describeEnd(end: End): string {
  if (end.end === 'report') return end.report.outcome;
  if (end.end === 'crash') return 'crash';
  return end.error instanceof Error ? `${end.error.name}: ${end.error.message}` : String(end.error);
}

function isBlocked(end: End): boolean {
  return end.end === 'report' && end.report.blocked.length > 0;
}

function isUnexplained(end: End): boolean {
  if (end.end !== 'report' || end.report.outcome !== 'blocked') return false;
  return end.report.blocked.length + end.report.plan.operations.length === 0;
}

/** Errors that a user could act on may end a run under faults; anything else is a bug. */
export function judgeEnd(stage: StoryStage, end: End, faulty: boolean): void {
  if (end.end !== 'error' || stage.violation !== undefined) return;
  const { error } = end;
  const known =
    error instanceof StateError ||
    error instanceof TransportError ||
    error instanceof ApiProblem ||
    error instanceof FenceError ||
    error instanceof ConfigError ||
    error instanceof PlanStaleError ||
    (error instanceof Error && (error.message === 'stop' || error.message === 'halt'));
  if (known && faulty) return;
  const traceLineOf =
    error instanceof Error ? (known ? `${error.name}: ${error.message}` : error.stack) : String(error);
  stage.fail(known ? 'I12' : 'error', `a run ended with ${traceLineOf}`);
}

/** No needless blocks: the spec requires the block, asks for the impossible, or needs a plan first. */
const meant = new Set([
  'prune_disabled',
  'protected',
  'max_deletions',
  'replace_not_allowed',
  'disk_would_shrink',
  'network_in_use',
  'ip_in_use',
  'immutable',
  'address_in_use',
  'address_not_the_only_free_one',
  'iso_in_use',
  'server_type_not_supported',
  'dependency_blocked',
  'not_shown',
]);

function describeBlocked(blocked: readonly Blocked[]): string {
  return blocked.map(({ key, code, reason }) => `${key} ${code} ${reason}`).join('; ');
}

/** The end of all faults: the service works, the token is right, and suspended work continues. */
async function heal(stage: StoryStage, main: Controller): Promise<void> {
  stage.trace.add('!', 'the faults stop');
  main.exchangeToken('readWrite');
  main.disk.failing = 0;
  const { world } = stage.emulator;
  for (const project of world.projects) {
    project.standing = 'active';
    project.failNextTasks = 0;
    for (const task of project.tasks) task.stuck = false;
  }
  for (const type of world.serverTypes)
    for (const sold of type.packages) sold.capacity = Math.max(sold.capacity, 4);
  // Last, so that stale reads show the healed world and not the one before.
  stage.emulator.setFaults([]);
  // Under these the service can be kept within its rules, and never brought to an end.
  stage.emulator.setReadings({ pageSize: null, bodilessContentType: 'optional' });
  await stage.clock.advance(5 * minute);
  await untilAllShows(stage);
  stage.history.recordExecutions(true);
}

/** Advances until all leftovers of failed tasks are visible: until then a leftover is billed, and no read shows it. */
async function untilAllShows(stage: StoryStage): Promise<void> {
  const tasks = stage.emulator.world.projects.flatMap((project) => project.tasks);
  const last = Math.max(...tasks.map(({ appearsMs }) => appearsMs ?? 0), 0);
  await stage.clock.advance(Math.max(0, last - stage.emulator.now()));
}

/**
 * Waits for work of the API that no read shows: the contents of a server in creation become visible later, and a task
 * that no answer names may still fail. The next run reads the end of both. @assumption A59 A34
 */
async function awaitUnseenWork({ emulator, clock, story }: StoryStage): Promise<boolean> {
  const isWorking = () =>
    emulator.world.projects.some(
      ({ servers, tasks }) =>
        servers.some(({ status }) => status === 'creating') ||
        (!failuresAreReported(story) && tasks.some(({ done, stuck }) => !done && !stuck)),
    );
  if (!isWorking()) return false;
  for (let minute = 0; minute < 60 && isWorking(); minute++) await clock.advance(60_000);
  return !isWorking();
}

/** Runs until converged and hands each block to the operator. Returns the number of runs that were blocked. */
async function settle(
  stage: StoryStage,
  main: Controller,
  wanted: SpecModel,
  calm: boolean,
  { answer, dryRun, rest }: StoryParts,
): Promise<number> {
  let spec = wanted;
  const { editedOnceApproved = false, specs } = stage.story;
  const isAsking = asks(stage.load(wanted));
  let blocked = 0;
  for (let run = 1; run <= mostQuietRuns * (isAsking ? 3 : 1) && stage.violation === undefined; run++) {
    const shown = stage.story.shown ? await dryRun?.show(stage, main, spec) : undefined;
    stage.file.model = spec;
    const [end] = await together(stage, [{ controller: main, call: {} }]);
    if (end === undefined || stage.violation !== undefined || stage.givenUp) return blocked;
    judgeEnd(stage, end, false);
    if (end.end !== 'report') {
      stage.fail('I12', `a run without faults ended with ${describeEnd(end)}`);
      return blocked;
    }
    const { report } = end;
    if (shown !== undefined) dryRun?.compare(stage, main, shown, end);
    if (report.outcome === 'converged') {
      if (await awaitUnseenWork(stage)) continue;
      const warnings = await checkFixedPoint(stage, main, spec);
      await checkAtRest(stage, main, spec, warnings, rest);
      await rest?.checkState(stage, main);
      return blocked;
    }
    if (report.outcome === 'declined') {
      if (editedOnceApproved && main.approved.length === 1 && wanted !== specs.at(-1)) return blocked;
      await stage.clock.advance(2 * minute);
      continue;
    }
    blocked += 1;
    const needless = report.blocked.filter(({ code }) => !meant.has(code));
    if (calm && needless.length > 0)
      stage.fail('I15', `blocked without faults: ${describeBlocked(needless)}`);
    spec = await operate({ stage, controller: main, file: spec }, report, answer);
    if (stage.givenUp) return blocked;
    await stage.clock.advance(2 * minute);
  }
  stage.fail('I12', 'it does not converge after any action of the operator');
  return blocked;
}
