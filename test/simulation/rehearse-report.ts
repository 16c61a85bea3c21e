import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { adapt } from '../../src/cli/rehearse/adapt.ts';
import { calmRun } from '../../src/cli/rehearse/calm-run.ts';
import {
  askedByCode,
  isDuplicate,
  runTrial,
  type Trial,
  type TrialEnd,
  trialsFor,
} from '../../src/cli/rehearse/trials.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import { identified } from './rules/questions.ts';

const bareServer = `version: 1
project: { id: 4711 }
servers:
  db-1: { server_type: plans-1, image: debian-13, plan_id: 52, ssh_keys: [101] }
`;

function example(name: string): string {
  return readFileSync(fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)), 'utf8');
}

/** The files that the report plays: none sets `exclusive`. */
export const files: Readonly<Record<string, string>> = {
  'examples/shop.yaml': example('shop.yaml'),
  'a server without an address': bareServer,
  'examples/gpu.yaml': example('gpu.yaml'),
};

/** Faults that hide whether a server error had its effect; no other fault may ask an operator to settle an outcome. */
const serverErrors = [
  ...['500 before', '503 before', '502 before'],
  ...['500 after', '503 after', '504 after', 'reset after, unstored'],
];

const failedTasks = ['task fails, all there', 'task fails, address left'];

/** A question outside of what safety.md allows: after a crash, a lost or malformed answer, a 409, a 429, a 5xx on a kind with a list. */
export function asksNeedlessly({ name, asked }: TrialEnd): boolean {
  if (asked.length === 0) return false;
  const [fault = '', path = ''] = name.split(' on ');
  if (serverErrors.includes(fault)) return identified.has(path);
  return !failedTasks.includes(fault);
}

interface TrialOptions {
  /** The trials that are played: all of them by default. */
  readonly of?: (trials: readonly Trial[]) => readonly Trial[];
  readonly onEnd?: (end: TrialEnd) => void;
}

/** Plays the trials of `rehearse` with the documented API alone. */
export async function trialsOf(
  file: string,
  text: string,
  crashes: number,
  { of = (all) => all, onEnd }: TrialOptions = {},
): Promise<readonly TrialEnd[]> {
  const { spec } = adapt([{ file, text }], {});
  const { plan } = await calmRun(spec, 4711, documentedProfile, '');
  const ends: TrialEnd[] = [];
  for (const trial of of(await trialsFor(spec, plan, crashes))) {
    const end = await runTrial(trial);
    ends.push(end);
    onEnd?.(end);
  }
  return ends;
}

/** One line of the table. */
export function rowOf(file: string, ends: readonly TrialEnd[]): readonly string[] {
  const asked = ends.filter((end) => end.asked.length > 0).length;
  return [
    file,
    String(ends.length),
    String(ends.filter(({ converged }) => converged).length),
    String(ends.filter(isDuplicate).length),
    `${asked} (${((100 * asked) / ends.length).toFixed(1)} %)`,
    askedByCode(ends)
      .map(([code, times]) => `${code} ${times}`)
      .join(', '),
    String(ends.filter(({ stopped }) => stopped).length),
  ];
}

const head = ['file', 'trials', 'converged', 'duplicates', 'asked', 'by code', 'stopped by a refusal'];
const mostCrashes = 400;

async function main(): Promise<void> {
  console.log(`| ${head.join(' | ')} |\n|${head.map(() => ' --- |').join('')}`);
  const asked: string[] = [];
  for (const [file, text] of Object.entries(files)) {
    const onEnd = (end: TrialEnd) => {
      const bad = !end.converged || asksNeedlessly(end);
      if (bad) process.exitCode = 1;
      if (bad || end.asked.length > 0) {
        const traceLineOf = end.converged ? end.asked.join(', ') : `${end.rule} ${end.message}`;
        asked.push(`${file}: ${end.name}: ${traceLineOf}${bad ? ' (not allowed)' : ''}`);
      }
    };
    const ends = await trialsOf(file, text, mostCrashes, { onEnd });
    console.log(`| ${rowOf(file, ends).join(' | ')} |`);
  }
  console.log(`\nTrials that asked:\n${asked.join('\n')}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
