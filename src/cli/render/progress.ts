import { given } from '../../core/json.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import {
  blockedJson,
  operationId,
  type Plan,
  planJson,
  type Verb,
  type Warning,
  warningsJson,
} from '../../core/plan.ts';
import type { ApplyReport, OperationResult, ProgressEvent } from '../../core/progress.ts';
import { counted, printable, span } from '../../core/text.ts';
import { moment, timeOfDay } from '../../core/time.ts';
import { waitsForWindow } from '../../view/condition.ts';
import { time } from '../../view/facts.ts';
import { blockedParts } from '../../view/plan.ts';
import { type Io, type Paint, paintFor } from '../terminal.ts';
import { blockedLines, planWarnings, section, warningLines } from './plan-text.ts';
import { present, requestsText } from './values.ts';

/** Shows the progress of a run. */
export interface ProgressView {
  event(event: ProgressEvent): void;
  /** A line from elsewhere, such as the log, that must not tear the display. */
  line(text: string): void;
  /** While an operator is asked something, nothing may be redrawn. */
  pause(): void;
  resume(): void;
  /** The run is over: nothing of the display stays on the screen. */
  end(): void;
  /** The last word, for formats in which it belongs to the stream. */
  summary?(report: ApplyReport, exitCode: number, destroy: boolean): void;
}

/** The present step of an operation. */
export type Progressed = Extract<ProgressEvent, { type: 'progress' }>;

/** The current step of an operation at a time of the run's clock. The key of a write is shown only in the history. */
export function stepText(
  { step, detail, untilMs, code }: Pick<Progressed, 'step' | 'detail' | 'untilMs' | 'code'>,
  now: number,
): string {
  const note = printable(detail);
  const leftMs = Math.max(0, (untilMs ?? now) - now);
  switch (step) {
    case 'queued':
    case 'sent':
      return step;
    case 'task':
      return `waiting for task ${note}`;
    case 'failed':
      return `task failed (${note})`;
    case 'checking':
      return `checking ${note}${leftMs === 0 ? '' : `, for up to ${span(leftMs)}`}`;
    case 'waiting':
      if (code === rateLimited) return `rate limited until ${timeOfDay(untilMs ?? now)}`;
      return `retrying${leftMs === 0 ? '' : ` in ${span(leftMs)}`}: ${note}`;
  }
}

/** @source API §7 */
const rateLimited = 'rate_limit_exceeded';

/**
 * Counts the operations that are done, and those of the plan. Later plans of the run may add some. An operation that
 * ends before the first plan was begun by an earlier run: it is not counted, as in the report of the run.
 */
export class Tally {
  readonly #done = new Set<string>();
  readonly #all = new Set<string>();
  #isPlanned = false;

  count(event: ProgressEvent): void {
    if (event.type === 'planned') {
      this.#isPlanned = true;
      for (const { id } of event.plan.operations) this.#all.add(id);
    }
    if (event.type !== 'ended' || event.result.outcome !== 'done' || !this.#isPlanned) return;
    const id = operationId(event.result.verb, event.result.key);
    this.#done.add(id);
    this.#all.add(id);
  }

  get isPlanned(): boolean {
    return this.#isPlanned;
  }

  get done(): number {
    return this.#done.size;
  }

  get total(): number {
    return this.#all.size;
  }

  /** `3 of 17`. Nothing for a single operation. */
  get text(): string {
    return this.total < 2 ? '' : `${this.done} of ${this.total}`;
  }
}

/** The line about an operation that may wait for long: its deadline, and the alternatives. */
function patienceText({ key, verb, deadlineMs = 0 }: Progressed): string {
  return (
    `  ${subject(verb, key)} waits for free capacity until ${moment(deadlineMs)}. Ctrl-C or --timeout ends the wait, and the next apply continues. ` +
    `To leave out the server: --exclude ${printable(key)}. Further packages in gpu_package are tried in order.`
  );
}

/** `create networks.backend` */
export function subject(verb: Verb, key: ResourceKey): string {
  return `${verb} ${printable(key)}`;
}

/** How an operation ended, in one line. @param tally of the operations that are done now */
function endLine(result: OperationResult, paint: Paint, tally?: Tally): string {
  const { key, verb, outcome, durationMs, requestId, code, detail, exposedMs } = result;
  const name = subject(verb, key);
  const tail = present(
    outcome === 'done' && tally?.isPlanned === false && 'begun by an earlier run',
    exposedMs !== undefined && `server was exposed for ${span(exposedMs)}`,
    code !== undefined && detail?.includes(code) !== true && `[${printable(code)}]`,
    detail !== undefined && printable(detail),
    requestId !== undefined && outcome !== 'done' && `(request ${printable(requestId)})`,
  ).join(' ');
  const after = tail === '' ? '' : `: ${tail}`;
  const count = tally === undefined || tally.text === '' ? '' : `${tally.text}  `;
  switch (outcome) {
    case 'done':
      return `${paint('green', '✓')} ${count}${name} ${paint('dim', `in ${span(durationMs)}${tail === '' ? '' : `, ${tail}`}`)}`;
    case 'blocked':
      return `${paint('yellow', '!')} ${name} blocked${after}`;
    case 'failed':
      return `${paint('red', '✗')} ${name} failed${after}`;
    case 'unresolved':
      return `${paint('yellow', '…')} ${name} not finished${after}`;
  }
}

/**
 * The lines about each event.
 *
 * @param isShown the steps of an operation that get a line
 */
export function eventLines(
  paint: Paint,
  tally: Tally,
  isShown: (event: Progressed) => boolean,
): (event: ProgressEvent) => readonly string[] {
  /** The last line of each operation: first that it was sent, then the reason of its wait. */
  const lastLine = new Map<string, string>();
  const seen = new Set<string>();
  const isFirst = (...what: readonly unknown[]) => seen.size < seen.add(what.join(' ')).size;

  function stepLines(event: Progressed): readonly string[] {
    const name = subject(event.verb, event.key);
    const what = event.step === 'sent' ? event.step : event.detail;
    if (!isShown(event) || lastLine.get(name) === what) return [];
    lastLine.set(name, what);
    const again = event.step === 'sent' && !isFirst('sent', name) ? ' again' : '';
    return [`  ${name}: ${stepText(event, event.at)}${again}`];
  }

  return (event) => {
    tally.count(event);
    switch (event.type) {
      case 'planned':
      case 'started':
        return [];
      case 'progress':
        return present(
          stepLines(event),
          event.step === 'waiting' &&
            event.deadlineMs !== undefined &&
            isFirst('waiting', event.verb, event.key) &&
            patienceText(event),
        );
      case 'ended': {
        // A refused operation is tried again as long as others make progress. The same refusal is reported once.
        const { key, verb, outcome, code, detail } = event.result;
        const isNew = isFirst('ended', verb, key, code, detail);
        return outcome === 'blocked' && !isNew ? [] : [endLine(event.result, paint, tally)];
      }
      case 'warning':
        return warningLines(event.warning, paint);
    }
  };
}

/** Each start, wait and end of an operation as a line on standard error: for logs, pipes and CI. */
export function plainProgress(io: Io): ProgressView {
  const linesOf = eventLines(paintFor(io.stderr, io), new Tally(), isLogged);
  const view = linesOn(io);
  return { ...view, event: (event) => linesOf(event).forEach(view.line) };
}

/** The parts of a display that only adds lines. */
function linesOn({ stderr }: Io) {
  const line = (text: string) => void stderr.write(text.endsWith('\n') ? text : `${text}\n`);
  return { line, pause: () => {}, resume: () => {}, end: () => {} };
}

/** A log shows each check that takes longer than this, in ms. */
const longCheckMs = 2 * 60_000;

function isLogged({ step, at, untilMs = at }: Progressed): boolean {
  if (step === 'checking') return untilMs - at > longCheckMs;
  return step === 'sent' || step === 'failed' || step === 'waiting';
}

/** How an operation ended, in the names of the public JSON. */
function resultJson(result: OperationResult): Record<string, unknown> {
  const { key, verb, outcome, durationMs, requestId, code, detail, exposedMs, taskId } = result;
  return {
    id: `${verb}:${key}`,
    key,
    verb,
    outcome,
    duration_ms: Math.round(durationMs),
    ...given({ request_id: requestId, code, detail, task_id: taskId }),
    ...(exposedMs === undefined ? {} : { exposed_seconds: exposedMs / 1000 }),
  };
}

/** A run that has done all that was asked, while the spec describes more, has not converged. */
type RunVerdict = ApplyReport['outcome'] | 'deleted' | 'done' | 'waiting';

/** @param destroy whether the run was a `destroy` */
export function verdictOf({ outcome, plan }: ApplyReport, destroy: boolean): RunVerdict {
  // Only `apply` continues a change that waits: a destroy has to be called again.
  if (outcome === 'blocked' && !destroy && waitsForWindow(plan)) return 'waiting';
  if (outcome !== 'converged') return outcome;
  if (destroy) return 'deleted';
  return plan.warnings.some(isLeftOut) ? 'done' : 'converged';
}

function isLeftOut({ code }: Warning): boolean {
  return code === 'left_out';
}

/** A whole run in the names of the public JSON. */
export function reportJson(report: ApplyReport, destroy: boolean): Record<string, unknown> {
  const { results, plan, blocked, requests, durationMs } = report;
  return {
    outcome: verdictOf(report, destroy),
    project: plan.project,
    operations: countOutcomes(lasting(results)),
    failures: lasting(results)
      .filter(({ outcome: each }) => each !== 'done')
      .map(resultJson),
    exposed: results
      .filter(({ exposedMs }) => exposedMs !== undefined)
      .map(({ key, exposedMs }) => ({ key, seconds: (exposedMs ?? 0) / 1000 })),
    blocked: blocked.map((each) => blockedJson(each)),
    left: plan.operations.map(({ id }) => id),
    ...warningsJson(plan.warnings),
    left_billed: plan.cost.left_billed,
    requests,
    duration_ms: Math.round(durationMs),
  };
}

/** Without the failures of operations that a later try of the same run has done. */
function lasting(results: readonly OperationResult[]): readonly OperationResult[] {
  const done = new Set(
    results.flatMap(({ outcome, verb, key }) => (outcome === 'done' ? [operationId(verb, key)] : [])),
  );
  return results.filter(({ outcome, verb, key }) => outcome === 'done' || !done.has(operationId(verb, key)));
}

function countOutcomes(results: readonly OperationResult[]): Record<OperationResult['outcome'], number> {
  const counts = { done: 0, blocked: 0, failed: 0, unresolved: 0 };
  for (const { outcome } of results) counts[outcome] += 1;
  return counts;
}

const titles: Readonly<Record<RunVerdict, string>> = {
  converged: 'Converged',
  deleted: 'Deleted',
  done: 'Done',
  waiting: 'Waiting',
  blocked: 'Blocked',
  failed: 'Failed',
  stopped: 'Stopped',
  declined: 'Nothing was changed',
};

/** The end of a run for an operator: first the open problems and these warnings, then counts, then the verdict. */
export function reportText(
  report: ApplyReport,
  paint: Paint,
  options: {
    readonly timeScale?: number;
    readonly destroy?: boolean;
    readonly warnings?: Plan['warnings'];
  } = {},
): string {
  const { outcome, results, blocked, requests, durationMs, plan } = report;
  const { timeScale = 1, destroy = false, warnings = [] } = options;
  const failures = lasting(results).filter(({ outcome: each }) => each === 'failed' || each === 'unresolved');
  const ended = new Set([...results.map(({ key }) => key), ...blocked.map(({ key }) => key)]);
  const left =
    outcome === 'converged' || outcome === 'declined'
      ? []
      : plan.operations.filter(({ key }) => !ended.has(key));
  const open = results.filter(({ exposedMs }) => exposedMs !== undefined);
  const { done } = countOutcomes(results);
  const { throttled } = requests;
  const bill = plan.cost.left_billed.map((text) => `Left behind: ${printable(text)}`);
  // Each block was found just now, or the plan has shown since when.
  const undated = blocked.map(({ since: _now, ...each }) => each);
  const waiting = outcome === 'stopped' ? 'Not begun' : 'Waiting for the operations above';
  const lines = [
    ...section(
      paint('bold', 'Not done'),
      failures.map((each) => `  ${endLine(each, paint)}`),
    ),
    ...blockedLines(undated, paint),
    ...planWarnings(report, warnings, paint),
    ...section(
      paint('bold', waiting),
      left.map(({ verb, key }) => `  · ${verb} ${printable(key)}`),
    ),
    ...open.map(
      ({ key, exposedMs }) =>
        `Exposed: ${printable(takeApart(key).parent ?? key)} was public for ${span(exposedMs ?? 0)} before its firewall was set`,
    ),
    ...bill,
  ];
  const requestText = requestsText(requests);
  const clockNote = timeScale === 1 ? '' : ` (emulator clock, ${timeScale}×)`;
  const limited = throttled === 0 ? '' : `, limited ${counted(throttled, 'time')}`;
  const verdictWord = verdictOf(report, destroy);
  const isAll = verdictWord === 'done' || verdictWord === 'deleted';
  const operations = `${counted(done, 'operation')}${isAll ? '' : ' done'}`;
  const counts = [operations, ...blockedParts(blocked, left)].join(', ');
  const further = present(
    outcome === 'stopped' && ' The next apply continues from here.',
    plan.warnings.filter(isLeftOut).map(({ message }) => ` ${message}.`),
  ).join('');
  const verdict = `${titles[verdictWord]}: ${counts} in ${span(durationMs)}${clockNote}; ${requestText}${limited}.${further}`;
  return [...lines, paint('bold', outcome === 'declined' ? `${titles.declined}.` : verdict), ''].join('\n');
}

/** One JSON object a line on standard output, the summary last. */
export function jsonProgress(io: Io): ProgressView {
  const tally = new Tally();
  const put = (value: object) => void io.stdout.write(`${JSON.stringify(value)}\n`);
  return {
    ...linesOn(io),
    event: (event) => {
      tally.count(event);
      put({ type: event.type, at: time(event.at), ...eventJson(event, tally) });
    },
    summary: (report, exitCode, destroy) =>
      put({ type: 'summary', ...reportJson(report, destroy), exit_code: exitCode }),
  };
}

function eventJson(event: ProgressEvent, { done, total }: Tally): object {
  switch (event.type) {
    case 'planned':
      return { round: event.round, plan: planJson(event.plan) };
    case 'started': {
      const { id, key, kind, verb } = event.operation;
      return { id, key, kind, verb };
    }
    case 'progress': {
      const { key, verb, step, detail, untilMs, deadlineMs } = event;
      const [until, deadline] = [untilMs, deadlineMs].map((ms) => (ms === undefined ? undefined : time(ms)));
      return { id: `${verb}:${key}`, key, verb, step, detail, ...given({ until, deadline }) };
    }
    case 'ended':
      return { ...resultJson(event.result), done, total };
    case 'warning':
      return event.warning;
  }
}
