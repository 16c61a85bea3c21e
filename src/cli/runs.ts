import { partsOf } from '../core/intent.ts';
import type { Intent } from '../core/state.ts';
import { runsOf } from '../view/timeline.ts';
import { usageError } from './exit.ts';

/** Of one state, for all runs together. */
export const mostWrites = 100_000;

/** The writes of a run, newest first, by the name with which an operator means the run. */
type NamedRun = ReturnType<typeof runsIn>[number];

/**
 * The runs of a state, newest first: writes for one spec, without a long pause between them.
 *
 * @param journal every write, newest first
 * @param now wall ms, for writes that have not ended
 */
export function runsIn(journal: readonly Intent[], now: number) {
  const bySpec: Intent[][] = [];
  for (const write of journal) {
    const last = bySpec.at(-1);
    if (last !== undefined && last[0]?.spec === write.spec) last.push(write);
    else bySpec.push([write]);
  }
  const timesOf = (write: Intent) => [write.createdAt, partsOf(write).closedAt ?? now] as const;
  return bySpec
    .flatMap((writes) => runsOf(writes, timesOf))
    .map(({ startMs, writes }) => ({ name: runName(startMs), writes }));
}

/** @throws ConfigError if the state has no run of this name */
export function runNamed(name: string, runs: readonly NamedRun[]): NamedRun {
  const found = runs.find((each) => each.name === name);
  if (found !== undefined) return found;
  const last = runs[0] === undefined ? 'it has sent no write' : `its last run is ${runs[0].name}`;
  throw usageError(`this state knows no run ${name}: ${last}`);
}

/** When its first write was recorded. */
function runName(startMs: number): string {
  return `${new Date(startMs).toISOString().slice(0, 19)}Z`;
}

export function isRunName(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text);
}
