import { describe, expect, test } from 'vitest';
import { folderWith } from '../cli/run.ts';
import { report } from './ci-report.ts';

describe('test/support/ci-report.ts', () => {
  const tests = { numPassedTests: 5, numFailedTests: 0, testResults: [] };

  test.each([
    ['that passed', '0\n', tests, true],
    ['that failed, for example by a threshold of the coverage', '1\n', tests, false],
    ['that tested nothing', '0\n', { ...tests, numPassedTests: 0 }, false],
    ['that wrote no report', '1\n', undefined, false],
    ['that never ran', undefined, undefined, false],
  ])('a step %s, without a failed test', (_name, exit, json, passed) => {
    const folder = folderWith({
      ...(exit && { 'all.exit': exit, 'all.log': 'lines 84 %\n' }),
      ...(json && { 'all.json': JSON.stringify(json) }),
    });
    const result = report(folder, ['all']);
    expect(result.passed).toBe(passed);
    const end = exit === undefined ? [] : ['    lines 84 %'];
    expect(result.lines.slice(0, -1)).toEqual(passed ? [] : ['FAILED all', ...end]);
  });
});
