import { ApiProblem, ConfigError, FenceError, PlanStaleError, StateError } from '../core/errors.ts';
import type { Blocked, Plan } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import { TransportError } from '../core/transport.ts';
import type { ApplyOptions } from '../engine/deps.ts';
import { approvalOptions, approve, asks } from './approvals.ts';
import type { Controller, Running } from './controller.ts';
import { plantIncidents } from './disturbances.ts';
import { noObserver } from './observer.ts';
import { operate } from './operator.ts';
import { noActions, type Reported, type RunCall, type StoryParts, type Wishes } from './parts.ts';
import type { AskedQuestion } from './questions.ts';
import { checkAtRest, checkFixedPoint } from './rest.ts';
import { StoryStage, type Violation } from './stage.ts';
import { failuresAreReported, type SpecModel, type Story } from './story.ts';

/** How one story went. */
export interface Outcome {
  readonly violation: Violation | undefined;
  readonly runs: number;
  readonly blockedRuns: number;
  /** The questions that the runs put to the operator. */
  readonly questions: readonly AskedQuestion[];
  readonly boundaries: ReadonlyMap<string, number>;
  readonly stage: StoryStage;
}

/** How a process ended. */
export type End =
  | ({ readonly end: 'report' } & Reported)
  | { readonly end: 'error'; readonly error: unknown }
  | { readonly end: 'crash' };

const mostFaultyRuns = 10;
const mostQuietRuns = 16;
const runsForAction = 3;
const minute = 60_000;

/**
 * Plays one story: runs under faults, crashes and edits until all of them are used up. Then it runs without
 * disturbances, with an operator who follows the messages, until no work is left.
 */
export async function play(story: Story, parts: StoryParts = {}): Promise<Outcome> {
  const { observer = noObserver, strike = () => {} } = parts;
  const stage = new StoryStage(story, observer, parts);
  const wishes: Wishes = { spec: 0, second: undefined, tokenRuns: 0, left: new Set(story.incidents) };
  const main = stage.controller('a', 'readWrite');
  const player = parts.actions?.(stage, main) ?? noActions;
  /** From then on, no action is due any more: it would end a run that nothing may disturb. */
  let isHealed = false;
  plantIncidents(stage, wishes, strike, (running, name) => {
    if (!isHealed) player.crossed(running, name);
  });
  /** The spec of that number comes into the spec once. */
  let written = 0;
  const current = (): SpecModel => {
    if (wishes.spec !== written) stage.file.model = specOf(story, wishes.spec);
    written = wishes.spec;
    return stage.file.model;
  };
  let blockedRuns = 0;
  let left = wishes.left.size;
  let idle = 0;
  let stuckOn: string | undefined;
  try {
    let other: Controller | undefined;
    const calm = story.faults.length === 0 && story.incidents.length === 0 && player.isOver;
    const mostRuns = mostFaultyRuns + runsForAction * (story.actions?.length ?? 0);
    for (let run = 0; run < mostRuns && !calm && !stage.givenUp && stage.violation === undefined; run++) {
      if (run > 0) await stage.clock.advance(pauseOf(story, run));
      if (wishes.tokenRuns > 0 && --wishes.tokenRuns === 0) main.exchangeToken('readWrite');
      current();
      await player.act(idle > 0);
      if (stage.violation !== undefined || stage.givenUp) break;
      if (wishes.second !== undefined && other === undefined)
        other = stage.controller('b', wishes.second === 'same' ? 'readWrite' : 'member');
      const machines = [main, ...(other === undefined ? [] : [other]), ...player.others];
      const ends = await together(
        stage,
        machines.map((each) => ({ controller: each, call: player.takeCall(each) })),
      );
      for (const [at, end] of ends.entries()) {
        judgeEnd(stage, end, true);
        player.ended(machines[at] as Controller, end.end === 'report' ? end.report : undefined);
      }
      if (ends.some(isBlocked)) blockedRuns += 1;
      const isEdited =
        story.editedOnceApproved &&
        main.approved.length === 1 &&
        ends[0] !== undefined &&
        isDeclined(ends[0]);
      if (isEdited && wishes.spec < story.specs.length - 1) wishes.spec += 1;
      const struck = wishes.left.size;
      const blocks = blocksOf(ends[0]);
      const isStuck = story.actions !== undefined && blocks !== undefined && blocks === stuckOn;
      stuckOn = blocks;
      idle = (ends.slice(0, 1).every(isConverged) || isStuck) && struck === left ? idle + 1 : 0;
      left = struck;
      const settled = idle >= (struck === 0 ? 1 : 2);
      if (settled && wishes.spec >= story.specs.length - 1 && player.isOver) break;
      // An edit that no incident brings comes once there is nothing left to do.
      if (settled && wishes.spec < story.specs.length - 1) {
        wishes.spec += 1;
        idle = 0;
      }
    }
    isHealed = true;
    if (stage.violation === undefined && !stage.givenUp) await heal(stage, main, wishes);
    for (
      ;
      stage.violation === undefined && !stage.givenUp && wishes.spec < story.specs.length - 1;
      wishes.spec++
    )
      blockedRuns += await settle(stage, main, current(), calm, parts);
    if (stage.violation === undefined && !stage.givenUp)
      blockedRuns += await settle(stage, main, current(), calm, parts);
    if (stage.violation === undefined && !stage.givenUp && story.cut !== undefined) {
      await parts.cut?.(stage, main, story.cut);
      blockedRuns += await settle(stage, main, current(), false, parts);
    }
    if (stage.violation === undefined && !stage.givenUp) await parts.atEnd?.(stage, main);
  } catch (error) {
    stage.fail('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    stage.remove();
  }
  return {
    violation: stage.violation,
    runs: main.runs,
    blockedRuns,
    questions: stage.questions.all,
    boundaries: stage.crossed,
    stage,
  };
}

function specOf({ specs }: Story, number: number): SpecModel {
  return specs[Math.min(number, specs.length - 1)] as SpecModel;
}

function pauseOf({ pausesMs }: Story, run: number): number {
  return pausesMs[Math.min(run - 1, pausesMs.length - 1)] ?? minute;
}

/** One run of each controller, at the same time. */
async function together(
  stage: StoryStage,
  machines: readonly { readonly controller: Controller; readonly call: RunCall }[],
): Promise<readonly End[]> {
  const started: (Awaited<ReturnType<StoryStage['start']>> & { readonly call: RunCall })[] = [];
  const shown = new Map<Running, Plan>();
  for (const { controller, call } of machines) {
    const desired = stage.load(controller.file.model);
    const program = await stage.start(controller, desired);
    const { running } = program;
    running.selection = call.selection;
    running.saved = call.saved;
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
        if (isCalled) running.byPerson = asks(desired);
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

/** The blocks of a run that has done nothing else; an operator will not wait for the next run. */
function blocksOf(end: End | undefined): string | undefined {
  if (end?.end !== 'report' || end.report.outcome !== 'blocked' || end.done.size > 0) return undefined;
  return end.report.blocked.map(({ key, code }) => `${key} ${code}`).join(' ');
}

function isUnexplained(end: End): boolean {
  if (end.end !== 'report' || end.report.outcome !== 'blocked') return false;
  return end.report.blocked.length + end.report.plan.operations.length === 0;
}

function isDeclined(end: End): boolean {
  return end.end === 'report' && end.report.outcome === 'declined';
}

function isConverged(end: End): boolean {
  return end.end === 'report' && end.report.outcome === 'converged';
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
async function heal(stage: StoryStage, main: Controller, wishes: Wishes): Promise<void> {
  stage.trace.add('!', 'the faults stop');
  wishes.left.clear();
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
  stage.history.look(true);
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
