import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { collections, kindNames } from '../../src/core/kind-facts.ts';

const source = new URL('../../src/', import.meta.url).pathname;
/** The parts that must not know a kind. `kind-facts.ts` is the table of the kinds. */
const folders = ['core', 'plan', 'engine', 'view', 'daemon', 'cli', 'spec', 'api'];
const table = 'core/kind-facts.ts';
/** Each line that goes from here is one less to read for a new kind. */
const most = 30;

/** The lines that name a kind, or a map of the spec file, as a text of their own. */
function naming(names: readonly string[]): string[] {
  const named = new RegExp(`'(${names.join('|')})'`);
  return folders
    .flatMap((folder) =>
      readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' }).map((path) =>
        join(folder, path),
      ),
    )
    .filter((path) => path.endsWith('.ts') && path !== table)
    .flatMap((path) =>
      readFileSync(join(source, path), 'utf8')
        .split('\n')
        .flatMap((line, at) => (named.test(line) ? [`src/${path}:${at + 1}: ${line.trim()}`] : [])),
    );
}

describe('src/core/kind-facts.ts', () => {
  test(`at most ${most} lines outside the kinds name a kind`, () => {
    const found = naming([...kindNames, ...collections]);
    expect(found.length > most ? found : []).toEqual([]);
  });
});
