import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { visibleCommands } from '../../src/cli/flags.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { Io } from '../../src/cli/terminal.ts';

const cwd = import.meta.dirname;

/** The commands that the golden texts show at work; a call for help does not count. */
const shown = new Set(
  globSync('*.txt', { cwd })
    .flatMap((name) => readFileSync(join(cwd, name), 'utf8').split('\n'))
    .flatMap((line) => (line.includes('--help') ? [] : (/^\$ vdcsync ([a-z-]+)/.exec(line)?.[1] ?? []))),
);

describe('test/golden: every command', () => {
  const names = visibleCommands(createProgram({} as Io, () => {})).map((each) => each.name());

  test.each(names)('%s has a golden text in addition to its help', (name) => {
    expect(shown).toContain(name);
  });
});
