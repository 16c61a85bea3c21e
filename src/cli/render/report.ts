import { takeApart } from '../../core/keys.ts';
import { blockedJson } from '../../core/plan.ts';
import type { ApplyReport, OperationResult } from '../../core/progress.ts';
import { type Paint, printable } from '../terminal.ts';
import { blockedLines } from './plan-text.ts';
import { endLine } from './progress.ts';
import { counted, span } from './values.ts';

/** How an operation ended, in the names of the public JSON. */
export function resultJson(result: OperationResult): Record<string, unknown> {
  const { key, verb, outcome, durationMs, requestId, code, detail, exposedMs } = result;
  return {
    id: `${verb}:${key}`,
    key,
    verb,
    outcome,
    duration_ms: Math.round(durationMs),
    ...(requestId === undefined ? {} : { request_id: requestId }),
    ...(code === undefined ? {} : { code }),
    ...(detail === undefined ? {} : { detail }),
    ...(exposedMs === undefined ? {} : { exposed_seconds: exposedMs / 1000 }),
  };
}

/** A whole run in the names of the public JSON. */
export function reportJson(report: ApplyReport): Record<string, unknown> {
  const { outcome, results, plan, blocked, requests, durationMs } = report;
  return {
    outcome,
    project: plan.project,
    operations: countOutcomes(results),
    failures: results.filter(({ outcome: each }) => each !== 'done').map(resultJson),
    exposed: results
      .filter(({ exposedMs }) => exposedMs !== undefined)
      .map(({ key, exposedMs }) => ({ key, seconds: (exposedMs ?? 0) / 1000 })),
    blocked: blocked.map((each) => blockedJson(each)),
    left: plan.operations.map(({ id }) => id),
    warnings: plan.warnings,
    left_billed: plan.cost.left_billed,
    requests,
    duration_ms: Math.round(durationMs),
  };
}

function countOutcomes(results: readonly OperationResult[]): Record<OperationResult['outcome'], number> {
  const counts = { done: 0, blocked: 0, failed: 0, unresolved: 0 };
  for (const { outcome } of results) counts[outcome] += 1;
  return counts;
}

const titles = {
  converged: 'Converged',
  blocked: 'Blocked',
  failed: 'Failed',
  stopped: 'Stopped',
  declined: 'Nothing was changed',
} as const;

/** The end of a run for an operator: first the open problems, then counts, then the verdict. */
export function reportText(report: ApplyReport, paint: Paint, timeScale = 1): string {
  const { outcome, results, blocked, requests, durationMs, plan } = report;
  const failures = results.filter(({ outcome: each }) => each === 'failed' || each === 'unresolved');
  const told = new Set([...results.map(({ key }) => key), ...blocked.map(({ key }) => key)]);
  const left =
    outcome === 'converged' || outcome === 'declined'
      ? []
      : plan.operations.filter(({ key }) => !told.has(key));
  const open = results.filter(({ exposedMs }) => exposedMs !== undefined);
  const { done } = countOutcomes(results);
  const { reads, writes, polls, throttled } = requests;
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
          paint('bold', 'Waiting for the operations above'),
          ...left.map(({ verb, key }) => `  · ${verb} ${printable(key)}`),
          '',
        ]),
    ...open.map(
      ({ key, exposedMs }) =>
        `Exposed: ${printable(takeApart(key).parent ?? key)} was public for ${span(exposedMs ?? 0)} before its firewall was set`,
    ),
    ...bill,
  ];
  const requestText = `${counted(writes, 'write')}, ${counted(reads, 'read')} (${counted(polls, 'poll')})`;
  const pace = timeScale === 1 ? '' : ` (emulator clock, ${timeScale}×)`;
  const limited = throttled === 0 ? '' : `, limited ${counted(throttled, 'time')}`;
  const verdict = `${titles[outcome]}: ${counted(done, 'operation')} done in ${span(durationMs)}${pace}; ${requestText}${limited}.${outcome === 'stopped' ? ' The next apply continues from here.' : ''}`;
  return [...lines, paint('bold', outcome === 'declined' ? `${titles.declined}.` : verdict), ''].join('\n');
}
