import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { filesIn } from './texts.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = (file: string) => readFileSync(`${root}${file}`, 'utf8');

/** A new file gets a describe of its own. */
const most = 201;

/** The source files that a `describe` names. */
function described(): ReadonlySet<string> {
  const titles = filesIn('test', /\.test\.ts$/).flatMap((file) =>
    [...text(file).matchAll(/describe(?:\.\w+\([\s\S]*?\))?\(\s*['"`](src\/[\w./-]+\.ts)/g)].map(
      ([, name = '']) => name,
    ),
  );
  return new Set(titles);
}

/** Types alone have nothing to run. */
function runs(file: string): boolean {
  return /^(?:export )?(?:default )?(?:async )?(?:function|const|class|let)\b/m.test(text(file));
}

describe('src', () => {
  test(`at most ${most} files have no describe of their own`, () => {
    const own = described();
    const others = filesIn('src', /\.ts$/).filter((file) => !own.has(file) && runs(file));
    expect(others.length > most ? others : []).toEqual([]);
  });

  test('each describe of a source file names an existing file', () => {
    const files = new Set(filesIn('src', /\.ts$/));
    expect([...described()].filter((file) => !files.has(file))).toEqual([]);
  });
});
