import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { given, member } from '../../core/json.ts';
import { isRecorded, type OperationId, type Plan } from '../../core/plan.ts';
import type { ApplyReport } from '../../core/progress.ts';
import { command, type Remedy } from '../../core/remedy.ts';
import { counted, printable } from '../../core/text.ts';
import { writtenDuration } from '../../core/time.ts';
import type { ApplyOptions } from '../../engine/deps.ts';
import { systemClock } from '../../platform/system.ts';
import { isPlanAccepted } from '../check-command.ts';
import { openSession, type Session } from '../compose.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import type { ResultFlags, SelectionFlags } from '../flags.ts';
import { furtherText, nothingManaged, planText } from '../render/plan-text.ts';
import { jsonProgress, type ProgressView, plainProgress, reportText, verdictOf } from '../render/progress.ts';
import { liveProgress } from '../render/progress-live.ts';
import { clockOf, readText } from '../settings/config.ts';
import {
  askedBy,
  capped,
  checkUndo,
  readSpecWithState,
  refuseOtherSelection,
} from '../settings/spec-source.ts';
import type { UndoneRun } from '../settings/undo.ts';
import {
  askText,
  askYesNo,
  type Io,
  listenForSignals,
  type Paint,
  paintFor,
  type Signals,
} from '../terminal.ts';
import { plan as planCommand } from './plan.ts';

export interface ApplyFlags extends ResultFlags, SelectionFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly plan?: string;
  /** A shell command that accepts or refuses the plan. */
  readonly checkCommand?: string;
  /** Only for `destroy`: replaces the limit of the spec. */
  readonly maxDeletions?: number;
  /** For the whole run, in ms of the run's clock. */
  readonly timeout?: number;
}

/** A call of `apply` or `destroy`, with its display and its signals. */
interface Carrying {
  readonly flags: ApplyFlags;
  readonly io: Io;
  readonly view: ProgressView;
  readonly signals: Signals;
  readonly destroy: boolean;
  readonly desired: Desired;
  /** Whether the check refused a plan. */
  readonly check: { refused: boolean };
  /** The operations of the plans that were shown. */
  readonly shown: Set<OperationId>;
  undo?: UndoneRun | undefined;
}

/** Plans, asks, and applies until the project has converged. */
export async function apply(flags: ApplyFlags, io: Io, destroy = false): Promise<ExitCode> {
  if (flags.dryRun === true) {
    const { format, ...common } = flags;
    return planCommand(format === undefined ? common : { ...common, format }, io, destroy);
  }
  refuseUnasked(flags, io, destroy ? 'destroy' : 'apply');
  checkUndo(flags);
  const desired = capped(await readSpecWithState(flags, io), flags.maxDeletions);
  const saved = flags.plan === undefined ? undefined : await readPlan(flags.plan, desired.projectId, io);
  if (saved !== undefined) refuseOtherSelection(saved, flags, flags.plan ?? '');
  let session: Session | undefined;
  const view = viewFor(flags, io, () => session?.clock ?? clockOf(io));
  const signals = listenForSignals((text) => view.line(text));
  const check = { refused: false };
  const call: Carrying = { flags, io, view, signals, destroy, desired, check, shown: new Set() };
  const ended = new AbortController();
  try {
    session = await openSession(flags, io, {
      mode: 'write',
      projectId: desired.projectId,
      token: desired.token,
      onEvent: (event) => view.event(event),
      writeLog: (line) => view.line(line),
    });
    endInTime(flags, session, signals, ended.signal);
    const { desired: wanted, selection, undo } = await askedBy(flags, desired, session, saved);
    call.undo = undo;
    const applying = session.engine.apply(wanted, {
      approve: (plan) => approve(plan, call),
      destroy,
      unattended: flags.yes === true,
      stop: signals.stop,
      halt: signals.halt,
      ...given({ selection, saved }),
    } satisfies ApplyOptions);
    const report = await untilHalted(applying, signals);
    if (report === undefined) {
      view.end();
      io.stderr.write('vdcsync: stopped. The next run continues from here.\n');
      return exitCodes.interrupted;
    }
    const code = conclude(report, session, call);
    const deleted = destroy && report.results.some(({ outcome }) => outcome === 'done');
    if (deleted && flags.format !== 'json') warnOfRecreation(desired, io);
    return code;
  } finally {
    ended.abort();
    view.end();
    signals.dispose();
    await session?.close();
  }
}

/** Deletes all managed resources. */
export function destroy(flags: ApplyFlags, io: Io): Promise<ExitCode> {
  return apply(flags, io, true);
}

/** How long the report may take after the second signal, in real ms. A request in flight may take longer. */
const haltedMs = 500;

/** `undefined`: the run was stopped before its plan, or at once, so there is no report. */
async function untilHalted(
  applying: Promise<ApplyReport>,
  { stop, halt }: Signals,
): Promise<ApplyReport | undefined> {
  const halted = new Promise<undefined>((resolve) => {
    const end = () => void systemClock.sleep(haltedMs).then(() => resolve(undefined));
    halt.addEventListener('abort', end, { once: true });
  });
  const reported = applying.catch((error: unknown) => {
    if (error === stop.reason || error === halt.reason) return undefined;
    throw error;
  });
  return Promise.race([reported, halted]);
}

/** Ends the run after `--timeout`. The state records all writes in flight, so the run does not wait for them. */
function endInTime({ timeout }: ApplyFlags, { clock }: Session, signals: Signals, ended: AbortSignal): void {
  if (timeout === undefined) return;
  const text = `vdcsync: --timeout ${writtenDuration(timeout)} is over. The next run continues from here.\n`;
  void clock.sleep(timeout, ended).then(
    () => signals.end(text),
    () => undefined,
  );
}

/** Reported before the command reads or opens anything: without an approval the command does nothing. */
function refuseUnasked({ yes, file = [] }: ApplyFlags, io: Io, command: string): void {
  if (yes === true) return;
  if (file.includes('-')) {
    throw usageError(
      `${command} asks before it changes anything, and standard input is the spec. Add --yes, or name the spec as a file`,
    );
  }
  if (io.stdin.isTTY) return;
  throw usageError(
    `${command} asks before it changes anything, and there is no terminal. Add --yes, or show the plan with --dry-run`,
  );
}

function viewFor({ format }: ApplyFlags, io: Io, clock: () => Session['clock']): ProgressView {
  if (format === 'json') return jsonProgress(io);
  const dumb = io.env.TERM === 'dumb' || (io.env.CI !== undefined && io.env.CI !== '');
  return io.stderr.isTTY && !dumb ? liveProgress(io, clock) : plainProgress(io);
}

async function approve(plan: Plan, call: Carrying): Promise<boolean> {
  const { flags, io, view, signals, destroy, desired, check } = call;
  const stream = flags.format === 'json' ? io.stderr : io.stdout;
  // With --yes and JSON no operator reads the text, and the stream holds the plan already.
  if (flags.format !== 'json' || flags.yes !== true)
    stream.write(shownPlan(plan, call, paintFor(stream, io)));
  if (flags.checkCommand !== undefined) {
    view.pause();
    check.refused = !(await isPlanAccepted(flags.checkCommand, plan, desired.token, io, signals.stop));
    view.resume();
    if (check.refused) return false;
  }
  if (flags.yes === true) return true;
  view.pause();
  const yes = destroy
    ? await isNamed(plan, io, signals.stop)
    : await askYesNo(io, 'Apply these operations?', signals.stop);
  view.resume();
  return yes;
}

/** The whole plan. With `--yes`, a later plan of the run is shown by its new operations only. */
function shownPlan(plan: Plan, { flags, shown, undo }: Carrying, paint: Paint): string {
  const fresh = plan.operations.filter(({ id }) => !shown.has(id));
  const isFirst = shown.size === 0;
  for (const { id } of fresh) shown.add(id);
  const header = isFirst ? (undo?.header ?? '') : '';
  if (isFirst || flags.yes !== true) return `${header}${planText(plan, paint)}`;
  return furtherText({ ...plan, operations: fresh, blocked: [] }, paint);
}

/** All resources are deleted, so the operator types the name of the project. */
async function isNamed({ project }: Plan, io: Io, stop: AbortSignal): Promise<boolean> {
  const name = printable(project.name).trim() || String(project.id);
  const answer = await askText(
    io,
    `To delete these resources, type the name of the project (${name}): `,
    stop,
  );
  if (answer?.trim() === name) return true;
  if (!stop.aborted) io.stderr.write('This is not the name of the project. Nothing was deleted.\n');
  return false;
}

function conclude(
  report: ApplyReport,
  { timeScale }: Session,
  { flags, io, view, signals, destroy, check, undo, shown }: Carrying,
): ExitCode {
  const code =
    check.refused && !signals.stop.aborted ? exitCodes.blocked : exitCodeOf(report, signals, destroy);
  view.end();
  view.summary?.(report, code, destroy);
  const verdict = verdictOf(report, destroy);
  const footer = undo?.footer(verdict === 'converged' || verdict === 'done');
  if (flags.format === 'json') {
    io.stderr.write(footer ?? '');
    return code;
  }
  const idle = report.outcome === 'converged' && report.results.length === 0;
  const paint = paintFor(io.stdout, io);
  if (idle && destroy && report.blocked.length === 0) {
    io.stdout.write(nothingManaged(report.plan, paint));
    return code;
  }
  const warnings = shown.size > 0 ? [] : report.plan.warnings.filter((each) => !isRecorded(each));
  const text = idle
    ? planText(report.plan, paint, true)
    : reportText(report, paint, { timeScale, destroy, warnings });
  io.stdout.write(`${text}${footer ?? ''}`);
  return code;
}

/** Warns that a daemon, or the next apply, would buy all described resources again. */
function warnOfRecreation({ resources }: Desired, io: Io): void {
  const described = resources.filter(({ managed, id }) => managed && id === undefined).length;
  if (described === 0) return;
  const them = described === 1 ? 'it' : 'them';
  io.stdout.write(
    `The spec still describes ${counted(described, 'resource')}. The next apply, or the daemon, creates ${them} again.\n`,
  );
}

function exitCodeOf(report: ApplyReport, { stop }: Signals, destroy: boolean): ExitCode {
  switch (verdictOf(report, destroy)) {
    case 'converged':
    case 'deleted':
    case 'done':
      return report.blocked.length > 0 ? exitCodes.blocked : exitCodes.done;
    case 'waiting':
      return exitCodes.done;
    case 'blocked':
      return exitCodes.blocked;
    case 'failed':
      return exitCodes.failed;
    case 'stopped':
      return exitCodes.interrupted;
    case 'declined':
      return stop.aborted ? exitCodes.interrupted : exitCodes.failed;
  }
}

/**
 * Reads a saved plan strictly. A plan is a permission, so no value may be guessed.
 *
 * @throws ConfigError with the error of the file.
 */
async function readPlan(path: string, projectId: number, io: Io): Promise<Plan> {
  const document = parsed(readText(path, 'the plan', io), path);
  const version = member(document, 'format_version');
  if (version === undefined) {
    throw new ConfigError(`${path} is not a plan of vdcsync`, false, making(path));
  }
  if (version !== 1) {
    throw new ConfigError(
      `${path} has the plan format ${JSON.stringify(version)}; this version reads format 1`,
    );
  }
  const { planSchema } = await import('../../core/plan-schema.ts');
  const result = planSchema.safeParse(document);
  if (!result.success) {
    const [issue] = result.error.issues;
    const at = issue?.path.join('.') || 'the plan';
    throw new ConfigError(
      `${path} was changed after it was written: ${at}: ${issue?.message ?? 'cannot be read'}`,
    );
  }
  const plan: Plan = result.data;
  if (plan.project.id !== projectId) {
    throw new ConfigError(
      `${path} is a plan for project ${plan.project.id}, and the spec is for project ${projectId}`,
    );
  }
  return plan;
}

function making(path: string): readonly Remedy[] {
  // A file with another content may be a spec, which the command would overwrite.
  const out = /\.json$/i.test(path) ? path : 'plan.json';
  return [command('plan', ['--out', out], { when: 'to make a plan' })];
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(`${path} is not JSON`, false, making(path));
  }
}
