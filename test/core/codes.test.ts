import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { questionClasses } from '../../src/core/codes/explained.ts';

const safety = readFileSync(fileURLToPath(new URL('../../docs/safety.md', import.meta.url)), 'utf8');

describe('src/core/codes.ts', () => {
  test('docs/safety.md names every class of a question', () => {
    const classes = Object.entries(questionClasses).map(([name, { title }]) => `| *${name}* | ${title} |`);
    expect(classes.filter((line) => !safety.includes(line))).toEqual([]);
  });
});
