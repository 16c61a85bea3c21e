import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Mutated, mutated } from './files.ts';

const root = join(import.meta.dirname, '../..');
const cache = 'node_modules/.cache/mutants';

const usage = `npm run mutants -- [options] [PART-OF-A-PATH ...]

  --changed        only the lines that differ from the commit before this one
  --since COMMIT   only the lines that differ from this commit
  --minutes N      begins no further file after so many minutes
  --afresh         judges again what an earlier run has judged: a mutant of a constant is not judged again otherwise
`;

/** A mutant as the report of Stryker has it. */
export interface Mutant {
  readonly id: string;
  readonly mutatorName: string;
  readonly replacement: string;
  readonly status: string;
  readonly location: Record<'start' | 'end', { readonly line: number; readonly column: number }>;
}

/** The mutants of the file in the last run, and its source then. */
export function judged(file: string): { readonly source: string; readonly mutants: readonly Mutant[] } {
  const report = JSON.parse(readFileSync(reportOf(file), 'utf8'));
  return report.files[file] ?? { source: '', mutants: [] };
}

export function lives({ status }: Mutant): boolean {
  return status === 'Survived' || status === 'NoCoverage';
}

/** The score of the file: killed mutants of all, in percent. */
export function scoreOf(mutants: readonly Mutant[]): { readonly killed: number; readonly of: number } {
  const counted = mutants.filter(({ status }) => status !== 'Ignored' && !/Error$/.test(status));
  return { killed: counted.filter((each) => !lives(each)).length, of: counted.length };
}

/** The path of the report on the file. */
export function reportOf(file: string): string {
  return join(root, `${cache}/${file.replaceAll('/', '.')}.json`);
}

/** The parts of the file that differ from the commit, as Stryker names them. */
function differing(file: string, from: string): readonly string[] {
  const git = ['diff', '--unified=0', from, '--', file];
  const hunks = execFileSync('git', git, { cwd: root, encoding: 'utf8' }).matchAll(
    /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/gm,
  );
  return [...hunks].flatMap(([, first, count = '1']) => {
    const last = Number(first) + Number(count) - 1;
    return last < Number(first) ? [] : [`${file}:${first}-${last}`];
  });
}

/** Runs Stryker on one file or some of its lines, with its tests alone. */
function judge({ file, tests }: Mutated, parts: readonly string[], afresh: boolean): Promise<number | null> {
  const config = {
    mutate: parts,
    plugins: ['@stryker-mutator/vitest-runner', './test/mutants/prose.ts'],
    ignorers: ['prose'],
    testRunner: 'vitest',
    vitest: { configFile: 'test/mutants/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    ignorePatterns: ['/bench', '/dist', '/docs', '/man', '/templates', '/coverage'],
    concurrency: availableParallelism(),
    timeoutMS: 60_000,
    incremental: parts[0] === file,
    force: afresh,
    incrementalFile: reportOf(file).replace('.json', '.incremental.json'),
    tempDirName: 'coverage/mutants',
    reporters: ['json', 'clear-text', 'progress-append-only'],
    jsonReporter: { fileName: reportOf(file) },
    clearTextReporter: { allowColor: false, reportTests: false, reportScoreTable: false },
  };
  const configFile = reportOf(file).replace('.json', '.config.json');
  writeFileSync(configFile, JSON.stringify(config));
  const env = { ...process.env, MUTANT_TESTS: JSON.stringify(tests) };
  const program = join(root, 'node_modules/.bin/stryker');
  const child = spawn(program, ['run', configFile], { cwd: root, stdio: 'inherit', env });
  return new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      changed: { type: 'boolean', default: false },
      since: { type: 'string' },
      minutes: { type: 'string', default: '600' },
      afresh: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(usage);
  const from = values.since ?? (values.changed ? 'HEAD^' : undefined);
  const partsOf = ({ file }: Mutated) => (from === undefined ? [file] : differing(file, from));
  const chosen = mutated.filter(
    (each) =>
      (positionals.length === 0 || positionals.some((part) => each.file.includes(part))) &&
      partsOf(each).length > 0,
  );
  mkdirSync(join(root, cache), { recursive: true });
  const untilMs = performance.now() + Number(values.minutes) * 60_000;
  const lines: string[] = [];
  for (const each of chosen) {
    if (performance.now() > untilMs) {
      lines.push(`${each.file}: not judged, the time is over`);
      continue;
    }
    if ((await judge(each, partsOf(each), values.afresh)) !== 0)
      throw new Error(`Stryker could not judge ${each.file}.`);
    const { killed, of } = scoreOf(judged(each.file).mutants);
    const percent = (100 * killed) / of;
    const mayLive = Math.ceil(((100 - (each.atLeast ?? 0)) / 100) * of);
    const isLess = of - killed > mayLive;
    if (isLess) process.exitCode = 1;
    lines.push(
      `${isLess ? 'TOO FEW ' : ''}${each.file}: ${killed} of ${of} killed, ${(of === 0 ? 100 : percent).toFixed(1)} %, at least ${each.atLeast ?? 0} %`,
    );
  }
  console.log(chosen.length === 0 ? 'No file of the money path has changed.' : lines.join('\n'));
}

if (import.meta.main) await main();
