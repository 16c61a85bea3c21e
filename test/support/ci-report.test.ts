import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { report } from './ci-report.ts';
import { newFolder } from './folders.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder('vdcsync-ci-');
});

/** The results of a step, as `.ci/run` and Vitest write them. */
function wrote(name: string, exit: number, { log = '', json }: { log?: string; json?: unknown }): void {
  writeFileSync(join(folder, `${name}.log`), log);
  writeFileSync(join(folder, `${name}.exit`), `${exit}\n`);
  if (json !== undefined) writeFileSync(join(folder, `${name}.json`), JSON.stringify(json));
}

describe('test/support/ci-report.ts', () => {
  test('names each failed test, each file that could not run and each failed step before the count', () => {
    const file = (name: string, status: string, message: string, assertionResults: unknown[]) => ({
      name: `${folder}/test/${name}.test.ts`,
      status,
      message,
      assertionResults,
    });
    const failure = {
      fullName: 'src/a.ts adds two numbers',
      status: 'failed',
      failureMessages: [
        'AssertionError: expected 3 to be 4\n\n    at file.ts:1:2\n    at file:///node_modules/a.js:1',
      ],
    };
    const sound = { fullName: 'src/a.ts starts', status: 'passed', failureMessages: [] };
    wrote('check', 0, { log: 'all in order' });
    wrote('readme', 1, { log: 'added 9 packages\n\nnpm error code 1\n' });
    wrote('all', 1, {
      json: {
        numPassedTests: 5,
        numFailedTests: 1,
        testResults: [
          file('a', 'failed', '', [failure, sound]),
          file('b', 'failed', '\u001b[31mCannot find module\u001b[39m', []),
          file('c', 'failed', 'no database', [{ ...sound, status: 'skipped' }]),
        ],
      },
    });
    expect(report(folder, ['check', 'readme', 'all'])).toEqual({
      lines: [
        'FAILED readme',
        '    added 9 packages',
        '    npm error code 1',
        'FAILED test/a.test.ts: src/a.ts adds two numbers',
        '    AssertionError: expected 3 to be 4',
        '        at file.ts:1:2',
        'FAILED test/b.test.ts: the file or one of its hooks could not run',
        '    Cannot find module',
        'FAILED test/c.test.ts: the file or one of its hooks could not run',
        '    no database',
        '5 passed, 4 failed',
      ],
      passed: false,
    });
  });
});

describe('test/support/ci-report.ts: a step without failed tests', () => {
  const tests = { numPassedTests: 5, numFailedTests: 0, testResults: [] };

  test.each([
    ['passes', 0, tests, true],
    ['fails, for example at a coverage threshold', 1, tests, false],
    ['fails if it ran no test', 0, { ...tests, numPassedTests: 0 }, false],
    ['fails without a report', 1, undefined, false],
  ])('%s', (_name, exit, json, passed) => {
    wrote('all', exit, { log: 'lines 84 %\n', json });
    const result = report(folder, ['all']);
    expect(result.passed).toBe(passed);
    expect(result.lines.slice(0, -1)).toEqual(passed ? [] : ['FAILED all', '    lines 84 %']);
  });

  test('fails if it never ran', () => {
    expect(report(folder, ['container']).passed).toBe(false);
  });
});
