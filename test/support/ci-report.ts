import { existsSync, readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

/** One step of `.ci/run`: its folder of results holds `NAME.log`, `NAME.exit`, and for tests `NAME.json`. */
interface Step {
  readonly name: string;
  readonly failed: boolean;
  readonly log: string;
  readonly tests?: TestReport;
}

/** The fields that are read of Vitest's JSON report. */
interface TestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[] | null;
    }[];
  }[];
}

type TestFile = TestReport['testResults'][number];

const errorLines = 12;
const logLines = 20;

/**
 * The failures of all steps, the count of tests in the last line, and whether each step passed. A step that failed without
 * a failed test counts as one.
 */
export function report(folder: string, names: readonly string[]): { lines: string[]; passed: boolean } {
  const steps = names.map((name) => readStep(folder, name));
  const runs = steps.flatMap(({ tests }) => tests ?? []);
  const passed = runs.reduce((total, { numPassedTests }) => total + numPassedTests, 0);
  const failed = steps.reduce((total, step) => total + failureCount(step), 0);
  return {
    lines: [...steps.flatMap(failuresOf), `${passed} passed, ${failed} failed`],
    passed: failed === 0,
  };
}

function readStep(folder: string, name: string): Step {
  const read = (extension: string) => {
    const file = `${folder}/${name}.${extension}`;
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  };
  const json = read('json');
  const tests = json === undefined ? undefined : (JSON.parse(json) as TestReport);
  const failed = read('exit')?.trim() !== '0' || tests?.numPassedTests === 0;
  const log = stripVTControlCharacters(read('log') ?? '');
  return { name, failed, log, ...(tests !== undefined && { tests }) };
}

/** A file that could not be loaded, or whose hooks failed, has no failed test. */
function isBroken({ status, assertionResults }: TestFile): boolean {
  return status === 'failed' && assertionResults.every((test) => test.status !== 'failed');
}

function failureCount({ failed, tests }: Step): number {
  const found = (tests?.numFailedTests ?? 0) + (tests?.testResults ?? []).filter(isBroken).length;
  return found === 0 && failed ? 1 : found;
}

/** The failed tests of a step. If it failed without one, the end of its output. */
function failuresOf({ name, failed, log, tests }: Step): string[] {
  const found = (tests?.testResults ?? []).flatMap((file) => {
    if (isBroken(file))
      return [
        `FAILED ${pathOf(file)}: the file or one of its hooks could not run`,
        ...firstLines(file.message),
      ];
    return file.assertionResults
      .filter(({ status }) => status === 'failed')
      .flatMap(({ fullName, failureMessages }) => [
        `FAILED ${pathOf(file)}: ${fullName}`,
        ...(failureMessages ?? []).flatMap(firstLines),
      ]);
  });
  if (found.length > 0 || !failed) return found;
  const end = log
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-logLines);
  return [`FAILED ${name}`, ...end.map((line) => `    ${line}`)];
}

function pathOf({ name }: TestFile): string {
  return name.replace(/^.*?\/(?=test\/)/, '');
}

function firstLines(message: string): string[] {
  const lines = stripVTControlCharacters(message)
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes('/node_modules/'));
  return lines.slice(0, errorLines).map((line) => `    ${line}`);
}

if (import.meta.main) {
  const [folder = '.', ...names] = process.argv.slice(2);
  const { lines, passed } = report(folder, names);
  console.log(lines.join('\n'));
  if (!passed) process.exitCode = 1;
}
