import type { ResourceKey } from '../../core/keys.ts';
import { moment } from '../../core/moment.ts';
import type { Verb } from '../../core/plan.ts';
import type { ApplyReport, OperationResult, ProgressEvent, Step } from '../../core/progress.ts';
import { type Paint, printable } from '../terminal.ts';
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
  summary?(report: ApplyReport, exitCode: number): void;
}

type Progressed = Extract<ProgressEvent, { type: 'progress' }>;

/** Steps in the words of an operator. */
export const stepWords: Readonly<Record<Step, string>> = {
  queued: 'queued',
  sent: 'sent',
  task: 'the API works',
  checking: 'checking',
  waiting: 'waits',
};

/** The current step of an operation. The key of a write is shown only in the history. */
export function stepText({ step, detail }: Progressed): string {
  const note = step === 'sent' ? '' : printable(detail);
  return `${stepWords[step]}${note === '' ? '' : `: ${note}`}`;
}

/** The line about an operation that may wait for long, once for each operation: its deadline, and the alternatives. */
export function patienceOf(): (event: Progressed) => string | undefined {
  const told = new Set<string>();
  return ({ key, verb, deadlineMs }) => {
    const name = subject(verb, key);
    if (deadlineMs === undefined || told.has(name)) return undefined;
    told.add(name);
    return (
      `${name} waits until ${moment(deadlineMs)}. Ctrl-C or --timeout ends the wait, and the next apply continues. ` +
      `--exclude ${printable(key)} leaves it out. Further packages in gpu_package are tried in order.`
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

/** How an operation ended, in one line. */
export function endLine(result: OperationResult, paint: Paint): string {
  const { key, verb, outcome, durationMs, requestId, code, detail, exposedMs } = result;
  const name = subject(verb, key);
  const tail = [
    ...(exposedMs === undefined ? [] : [`server was exposed for ${span(exposedMs)}`]),
    ...(code === undefined ? [] : [`[${printable(code)}]`]),
    ...(detail === undefined ? [] : [printable(detail)]),
    ...(requestId === undefined || outcome === 'done' ? [] : [`(request ${printable(requestId)})`]),
  ].join(' ');
  const after = tail === '' ? '' : ` ${tail}`;
  switch (outcome) {
    case 'done':
      return `${paint('green', '✓')} ${name} ${paint('dim', `in ${span(durationMs)}${tail === '' ? '' : `, ${tail}`}`)}`;
    case 'blocked':
      return `${paint('yellow', '!')} ${name} blocked${after}`;
    case 'failed':
      return `${paint('red', '✗')} ${name} failed${after}`;
    case 'unresolved':
      return `${paint('yellow', '…')} ${name} not settled yet${tail === '' ? '' : `: ${tail}`}`;
  }
}
