import { takeApart } from '../../core/keys.ts';
import { blockedJson, operationId, planJson, type Warning, warningsJson } from '../../core/plan.ts';
import type { ApplyReport, OperationResult, ProgressEvent } from '../../core/progress.ts';
import { counted } from '../../core/text.ts';
import { waitsForWindow } from '../../view/condition.ts';
import { type Io, type Paint, printable } from '../terminal.ts';
import { blockedParts } from './plan-groups.ts';
import { blockedLines } from './plan-text.ts';
import { endLine, type ProgressView, Tally } from './progress.ts';
import { requestsText, span } from './values.ts';

/** How an operation ended, in the names of the public JSON. */
function resultJson(result: OperationResult): Record<string, unknown> {
  const { key, verb, outcome, durationMs, requestId, code, detail, exposedMs, taskId } = result;
  return {
    id: `${verb}:${key}`,
    key,
    verb,
    outcome,
    duration_ms: Math.round(durationMs),
    ...(requestId === undefined ? {} : { request_id: requestId }),
    ...(code === undefined ? {} : { code }),
    ...(detail === undefined ? {} : { detail }),
    ...(taskId === undefined ? {} : { task_id: taskId }),
    ...(exposedMs === undefined ? {} : { exposed_seconds: exposedMs / 1000 }),
  };
}

/** A run that has done all that was asked, while the spec describes more, has not converged. */
export type RunVerdict = ApplyReport['outcome'] | 'deleted' | 'done' | 'waiting';

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

/** The end of a run for an operator: first the open problems, then counts, then the verdict. */
export function reportText(
  report: ApplyReport,
  paint: Paint,
  { timeScale = 1, destroy = false }: { readonly timeScale?: number; readonly destroy?: boolean } = {},
): string {
  const { outcome, results, blocked, requests, durationMs, plan } = report;
  const failures = lasting(results).filter(({ outcome: each }) => each === 'failed' || each === 'unresolved');
  const told = new Set([...results.map(({ key }) => key), ...blocked.map(({ key }) => key)]);
  const left =
    outcome === 'converged' || outcome === 'declined'
      ? []
      : plan.operations.filter(({ key }) => !told.has(key));
  const open = results.filter(({ exposedMs }) => exposedMs !== undefined);
  const { done } = countOutcomes(results);
  const { throttled } = requests;
  const bill = plan.cost.left_billed.map((text) => `Left behind: ${printable(text)}`);
  const lines = [
    ...(failures.length === 0
      ? []
      : [paint('bold', 'Not done'), ...failures.map((each) => `  ${endLine(each, paint)}`), '']),
    // Each block was found just now, or the plan has shown since when.
    ...blockedLines(
      blocked.map(({ since: _now, ...each }) => each),
      paint,
    ),
    ...(left.length === 0
      ? []
      : [
          paint('bold', outcome === 'stopped' ? 'Not begun' : 'Waiting for the operations above'),
          ...left.map(({ verb, key }) => `  · ${verb} ${printable(key)}`),
          '',
        ]),
    ...open.map(
      ({ key, exposedMs }) =>
        `Exposed: ${printable(takeApart(key).parent ?? key)} was public for ${span(exposedMs ?? 0)} before its firewall was set`,
    ),
    ...bill,
  ];
  const requestText = requestsText(requests);
  const pace = timeScale === 1 ? '' : ` (emulator clock, ${timeScale}×)`;
  const limited = throttled === 0 ? '' : `, limited ${counted(throttled, 'time')}`;
  const verdictWord = verdictOf(report, destroy);
  const isAll = verdictWord === 'done' || verdictWord === 'deleted';
  const counts = [
    `${counted(done, 'operation')}${isAll ? '' : ' done'}`,
    ...blockedParts(blocked, left),
  ].join(', ');
  const further = [
    ...(outcome === 'stopped' ? [' The next apply continues from here.'] : []),
    ...plan.warnings.filter(isLeftOut).map(({ message }) => ` ${message}.`),
  ].join('');
  const verdict = `${titles[verdictWord]}: ${counts} in ${span(durationMs)}${pace}; ${requestText}${limited}.${further}`;
  return [...lines, paint('bold', outcome === 'declined' ? `${titles.declined}.` : verdict), ''].join('\n');
}

/** One JSON object a line on standard output, the summary last. */
export function jsonProgress(io: Io): ProgressView {
  const tally = new Tally();
  const put = (value: object) => void io.stdout.write(`${JSON.stringify(value)}\n`);

  function event(event: ProgressEvent): void {
    const at = new Date(event.at).toISOString();
    tally.count(event);
    switch (event.type) {
      case 'planned':
        put({ type: 'planned', at, round: event.round, plan: planJson(event.plan) });
        return;
      case 'started': {
        const { id, key, kind, verb } = event.operation;
        put({ type: 'started', at, id, key, kind, verb });
        return;
      }
      case 'progress': {
        const { key, verb, step, detail, untilMs, deadlineMs } = event;
        const until = untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() };
        const deadline = deadlineMs === undefined ? {} : { deadline: new Date(deadlineMs).toISOString() };
        put({ type: 'progress', at, id: `${verb}:${key}`, key, verb, step, detail, ...until, ...deadline });
        return;
      }
      case 'ended':
        put({ type: 'ended', at, ...resultJson(event.result), done: tally.done, total: tally.total });
        return;
      case 'warning':
        put({ type: 'warning', at, ...event.warning });
        return;
    }
  }

  return {
    event,
    line: (text) => void io.stderr.write(text.endsWith('\n') ? text : `${text}\n`),
    pause: () => {},
    resume: () => {},
    end: () => {},
    summary: (report, exitCode, destroy) =>
      put({ type: 'summary', ...reportJson(report, destroy), exit_code: exitCode }),
  };
}
