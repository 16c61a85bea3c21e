import type { Plan } from '../../core/plan.ts';
import { counted, printable, span } from '../../core/text.ts';
import { type Bar, barsSvg, clock, inOrder, named } from '../../view/timeline.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import type { ResultFlags } from '../flags.ts';
import { type Adapted, adapt } from '../rehearse/adapt.ts';
import { type CalmRun, calmRun } from '../rehearse/calm-run.ts';
import {
  askedByCode,
  isDuplicate,
  runTrial,
  spread,
  type Trial,
  type TrialEnd,
  trialsFor,
} from '../rehearse/trials.ts';
import { blockedLines } from '../render/plan-text.ts';
import { present, requestsText } from '../render/values.ts';
import { profileOf } from '../settings/config.ts';
import { loadWithinLimits, readSources, trustOf } from '../settings/spec-source.ts';
import { type Io, type Paint, printResult } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface RehearseFlags extends ResultFlags {
  readonly svg?: string;
  readonly trials?: number;
}

/** If the run has more boundaries than this, the crashes are spread over it. */
const mostCrashes = 400;

interface Rehearsal {
  readonly projectId: number;
  readonly adapted: Adapted;
  readonly calm: CalmRun;
  readonly ends: readonly TrialEnd[];
}

/** Plays the spec against the emulator: once undisturbed, then with a crash at every step and every usual fault. */
export async function rehearse(flags: RehearseFlags, io: Io): Promise<ExitCode> {
  const sources = await readSources(flags, io);
  const desired = await loadWithinLimits(sources, trustOf(flags, io), io);
  const { projectId } = desired;
  const { profile, text } = profileOf(flags, io);
  const adapted = adapt(sources, io.env);
  const calm = await calmRun(adapted.spec, projectId, profile, text);
  const converged = calm.report.outcome === 'converged';
  // A spec that is blocked without any fault shows nothing about faults.
  const all = converged ? await trialsFor(adapted.spec, calm.plan, mostCrashes) : [];
  const trials = spread(all.length, flags.trials ?? all.length).flatMap((nth) => all[nth - 1] ?? []);
  if (converged) io.stderr.write(`${numberOf(trials, all.length)}\n`);
  const ends = await played(trials, io);
  const rehearsal = { projectId, adapted, calm, ends };
  if (flags.svg !== undefined) writeOut(flags.svg, barsSvg(calm.bars, titleOf(rehearsal)), io);
  printResult(io, flags, rehearsalJson(rehearsal), (paint) => rehearsalText(rehearsal, paint));
  if (!converged) return calm.report.outcome === 'blocked' ? exitCodes.blocked : exitCodes.failed;
  return ends.every((end) => end.converged) && calm.settled ? exitCodes.done : exitCodes.failed;
}

/** Plays one trial after the other and shows the progress. */
async function played(trials: readonly Trial[], io: Io): Promise<readonly TrialEnd[]> {
  const progress = progressOn(io, trials.length);
  const ends: TrialEnd[] = [];
  for (const trial of trials) {
    progress(ends.length, trial.name);
    ends.push(await runTrial(trial));
  }
  progress(trials.length, '');
  return ends;
}

function titleOf({ calm, projectId }: Rehearsal): string {
  return `Project ${projectId}: ${counted(calm.bars.length, 'operation')} in ${span(calm.durationMs)}`;
}

function countsOf({ calm, ends }: Rehearsal) {
  return {
    trials: ends.length,
    converged: ends.filter((end) => end.converged).length,
    needed_an_operator: ends.filter((end) => end.asked.length > 0).length,
    asked_by_code: Object.fromEntries(askedByCode(ends)),
    stopped_by_refusal: ends.filter((end) => end.stopped).length,
    duplicates: ends.filter(isDuplicate).length,
    left_unseen: ends.filter(({ rule }) => rule === 'I1').length,
    settled: calm.settled,
  };
}

/** The public JSON of `vdcsync rehearse`. */
function rehearsalJson(rehearsal: Rehearsal): Record<string, unknown> {
  const { calm, ends, adapted, projectId } = rehearsal;
  const { plan, report, bars, requests, durationMs } = calm;
  return {
    format_version: 1,
    project: { id: projectId },
    outcome: report.outcome,
    ...countsOf(rehearsal),
    duration_ms: Math.round(durationMs),
    seconds_at_least: plan.effort.seconds_at_least,
    requests,
    operations: bars.map(({ id, startMs, endMs, outcome }) => {
      return { id, start_ms: Math.round(startMs), end_ms: Math.round(endMs), outcome };
    }),
    cost: plan.cost,
    blocked: report.blocked,
    failures: ends
      .filter((end) => !end.converged)
      .map(({ name, rule, message }) => ({ name, rule, message })),
    notes: adapted.notes,
  };
}

function rehearsalText(rehearsal: Rehearsal, paint: Paint): string {
  const { calm, ends, adapted } = rehearsal;
  const { plan, report, bars, requests, durationMs } = calm;
  const counts = countsOf(rehearsal);
  const failures = ends.filter((end) => !end.converged);
  const verdict =
    report.outcome !== 'converged'
      ? `Without any fault, the run ends ${report.outcome}. So vdcsync tried no faults.`
      : `${counts.converged} of ${counts.trials} trials converged, ${counted(counts.duplicates, 'duplicate')}; ${counted(counts.needed_an_operator, 'trial')} needed a decision of the operator.`;
  return `${[
    paint('bold', titleOf(rehearsal)),
    ...adapted.notes.map((note) => paint('dim', printable(note))),
    '',
    ...barsText(bars),
    paint('dim', '█ the API works  ░ vdcsync waits: turn, poll, request limit or retry'),
    '',
    `Requests: ${requestsText(requests)}`,
    `Time: ${span(durationMs)} with the task durations of the emulator${plan.effort.seconds_at_least === 0 ? '' : `; the request limits alone need ${plan.effort.seconds_at_least} s`}`,
    ...costLine(plan),
    '',
    ...blockedLines(report.blocked, paint),
    ...failures.map(
      ({ name, rule, message }) => `${paint('red', '✗')} ${name}: ${rule} ${printable(message ?? '')}`,
    ),
    paint('bold', verdict),
    ...questionLines(counts),
  ].join('\n')}\n`;
}

function questionLines(counts: ReturnType<typeof countsOf>): string[] {
  const asked = Object.entries(counts.asked_by_code).map(([code, times]) => `${code} ${times}`);
  const stopped = counts.stopped_by_refusal;
  return present(
    asked.length > 0 && `Decisions by code: ${asked.join(', ')}`,
    stopped > 0 &&
      `In ${counted(stopped, 'trial')}, a run stopped at a refusal of the API or a late task, and a later run converged.`,
  );
}

function costLine({ cost: { known_monthly_delta: delta, unknown } }: Plan): string[] {
  const parts = present(
    Number(delta) !== 0 && `${delta} a month with the prices of the emulator`,
    unknown.length > 0 && `the price of ${counted(unknown.length, 'resource')} is not known`,
  );
  return parts.length === 0 ? [] : [`Cost: ${parts.join('; ')}`];
}

function numberOf(trials: readonly Trial[], all: number): string {
  const crashes = trials.filter(({ story }) => story.incidents.length > 0).length;
  const parts = `${counted(crashes, 'crash', 'crashes')} and ${counted(trials.length - crashes, 'fault')}`;
  if (trials.length < all)
    return `Running ${trials.length} of ${counted(all, 'trial')}: ${parts} (--trials ${trials.length})`;
  return `Running ${counted(all, 'trial')}: ${parts}. For fewer: --trials COUNT`;
}

/** In place on a terminal; elsewhere a line now and then. */
function progressOn({ stderr, env }: Io, of: number): (done: number, name: string) => void {
  if (stderr.isTTY && env.TERM !== 'dumb')
    return (done, name) => stderr.write(done >= of ? '\r\x1b[K' : `\r\x1b[K${done + 1}/${of} ${name}`);
  let printedAt = performance.now();
  return (done, name) => {
    if (done >= of || performance.now() - printedAt < lineEveryMs) return;
    printedAt = performance.now();
    stderr.write(`${done + 1}/${of} ${name}\n`);
  };
}

/** Real ms. */
const lineEveryMs = 10_000;

const width = 40;

/** Each operation as a bar on the time axis, in the order in which they began; `░` waits, `█` works. */
export function barsText(bars: readonly Bar[]): string[] {
  const end = Math.max(1, ...bars.map(({ endMs }) => endMs));
  const labels = Math.max(0, ...bars.map(({ id }) => id.length));
  return inOrder(bars).map((bar) => {
    const { id, startMs, endMs } = bar;
    const from = Math.min(width - 1, Math.floor((startMs / end) * width));
    const length = Math.min(width - from, Math.max(1, Math.round(((endMs - startMs) / end) * width)));
    const cells = Array.from({ length }, (_, at) => {
      const middle = startMs + ((at + 0.5) / length) * (endMs - startMs);
      return bar.waits.some((span) => span.startMs <= middle && middle < span.endMs) ? '░' : '█';
    });
    const text = `${' '.repeat(from)}${cells.join('')}`.padEnd(width);
    return `${named(id).padEnd(labels)} ▕${text}▏ ${clock(startMs)} to ${clock(endMs)}`;
  });
}
