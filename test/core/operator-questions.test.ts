import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { explanationOf } from '../../src/core/codes.ts';
import { operatorQuestions, questionClasses } from '../../src/core/operator-questions.ts';

const safety = readFileSync(fileURLToPath(new URL('../../docs/safety.md', import.meta.url)), 'utf8');

describe('src/core/operator-questions.ts', () => {
  test('docs/safety.md has every class, and every code with its reason', () => {
    const classes = Object.entries(questionClasses).map(([name, { title }]) => `| *${name}* | ${title} |`);
    const rows = Object.entries(operatorQuestions).map(
      ([code, [asks, why]]) => `| *${asks}* | \`${code}\` | ${why} |`,
    );

    expect([...classes, ...rows].filter((line) => !safety.includes(line))).toEqual([]);
    const documented = [...safety.matchAll(/^\| \*\w+\* \| `(\w+)` \|/gm)].map(([, code]) => code);
    expect(documented.toSorted()).toEqual(Object.keys(operatorQuestions).toSorted());
  });

  test('every code of the closed list is explained', () => {
    expect(Object.keys(operatorQuestions).filter((code) => explanationOf(code) === undefined)).toEqual([]);
  });
});
