import type { ResourceKey } from '../../core/keys.ts';
import { operationId, type Verb } from '../../core/plan.ts';
import type { ApplyReport, OperationResult, ProgressEvent, Step } from '../../core/progress.ts';
import { moment, timeOfDay } from '../../core/time.ts';
import { type Io, type Paint, paintFor, printable } from '../terminal.ts';
import { warningLines } from './plan-text.ts';
import { span } from './values.ts';

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

/** Steps in standard words. */
const stepWords: Readonly<Record<Step, string>> = {
  queued: 'queued',
  sent: 'sent',
  task: 'waiting for task',
  failed: 'task failed',
  checking: 'checking',
  waiting: 'waiting',
};

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
      return stepWords[step];
    case 'task':
      return `${stepWords.task} ${note}`;
    case 'failed':
      return `${stepWords.failed} (${note})`;
    case 'checking':
      return `${stepWords.checking} ${note}${leftMs === 0 ? '' : `, for up to ${span(leftMs)}`}`;
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

/** The line about an operation that may wait for long, once for each operation: its deadline, and the alternatives. */
export function patienceOf(): (event: Progressed) => string | undefined {
  const told = new Set<string>();
  return ({ key, verb, step, deadlineMs }) => {
    const name = subject(verb, key);
    if (step !== 'waiting' || deadlineMs === undefined || told.has(name)) return undefined;
    told.add(name);
    return (
      `${name} waits for free capacity until ${moment(deadlineMs)}. Ctrl-C or --timeout ends the wait, and the next apply continues. ` +
      `To leave out the server: --exclude ${printable(key)}. Further packages in gpu_package are tried in order.`
    );
  };
}

/** `create networks.backend` */
export function subject(verb: Verb, key: ResourceKey): string {
  return `${verb} ${printable(key)}`;
}

/** A refused operation is tried again as long as other operations make progress. So the same refusal is reported once. */
export function reportsOf(): (result: OperationResult) => boolean {
  const told = new Set<string>();
  return ({ key, verb, outcome, code, detail }) => {
    const what = `${subject(verb, key)} ${code} ${detail}`;
    const isNew = outcome !== 'blocked' || !told.has(what);
    told.add(what);
    return isNew;
  };
}

/** How an operation ended, in one line. @param tally of the operations that are done now */
export function endLine(result: OperationResult, paint: Paint, tally?: Tally): string {
  const { key, verb, outcome, durationMs, requestId, code, detail, exposedMs } = result;
  const name = subject(verb, key);
  const tail = [
    ...(outcome === 'done' && tally?.isPlanned === false ? ['begun by an earlier run'] : []),
    ...(exposedMs === undefined ? [] : [`server was exposed for ${span(exposedMs)}`]),
    ...(code === undefined || detail?.includes(code) === true ? [] : [`[${printable(code)}]`]),
    ...(detail === undefined ? [] : [printable(detail)]),
    ...(requestId === undefined || outcome === 'done' ? [] : [`(request ${printable(requestId)})`]),
  ].join(' ');
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
      return `${paint('yellow', '…')} ${name} not finished${tail === '' ? '' : `: ${tail}`}`;
  }
}

/** Each start, wait and end of an operation as a line on standard error: for logs, pipes and CI. */
export function plainProgress(io: Io): ProgressView {
  const paint = paintFor(io.stderr, io);
  const isNew = reportsOf();
  const patience = patienceOf();
  const tally = new Tally();
  const line = (text: string) => void io.stderr.write(text.endsWith('\n') ? text : `${text}\n`);
  /** The last line of each operation: first that it was sent, then the reason of its wait. */
  const told = new Map<string, string>();
  const sent = new Set<string>();

  function event(event: ProgressEvent): void {
    tally.count(event);
    switch (event.type) {
      case 'planned':
      case 'started':
        return;
      case 'progress': {
        const name = subject(event.verb, event.key);
        if (!isTold(event)) return;
        const what = event.step === 'sent' ? event.step : event.detail;
        if (told.get(name) === what) return;
        told.set(name, what);
        const again = event.step === 'sent' && sent.has(name) ? ' again' : '';
        if (event.step === 'sent') sent.add(name);
        line(`  ${name}: ${stepText(event, event.at)}${again}`);
        const bound = patience(event);
        if (bound !== undefined) line(`  ${bound}`);
        return;
      }
      case 'ended':
        if (isNew(event.result)) line(endLine(event.result, paint, tally));
        return;
      case 'warning':
        for (const each of warningLines(event.warning, paint)) line(each);
        return;
    }
  }

  return { event, line, pause: () => {}, resume: () => {}, end: () => {} };
}

/** A log shows each check that takes longer than this, in ms. */
const longCheckMs = 2 * 60_000;

function isTold({ step, at, untilMs = at }: Progressed): boolean {
  if (step === 'checking') return untilMs - at > longCheckMs;
  return step === 'sent' || step === 'failed' || step === 'waiting';
}
