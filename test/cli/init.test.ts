import { describe, expect, test } from 'vitest';
import { examples } from '../../src/cli/help.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { emulated, Workspace } from './workspace.ts';

describe('src/cli/commands/init.ts', () => {
  test('creates a spec that is ready to apply', async () => {
    const place = emulated();
    await place.out('init');
    expect(await place.out('plan')).toContain('Plan: 5 to create.');
    const text = place.read('vdcsync.yaml');
    expect(text).toContain('# ssh_keys: [101]');
    const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text) ?? [];
    expect(JSON.parse(place.read(schema))).toMatchObject({ properties: { servers: {} } });
    expect(place.read('.gitignore')).toContain('.vdcsync/');
    expect(await place.refused(1, 'init')).toContain('does not overwrite it');
  });

  test('needs the project id if no API is configured', async () => {
    const place = new Workspace({}, {});
    expect(await place.refused(64, 'init')).toContain('init does not know the project');
    await place.out('init --project 7');
    expect(loadSpec([{ file: 'x', text: place.read('vdcsync.yaml') }], {}).projectId).toBe(7);
  });
});

describe('src/cli/help.ts', () => {
  test.each(Object.keys(examples))('%s --help ends with valid examples', async (name) => {
    const stdout = await emulated().out(`${name} --help`);
    expect(stdout).toContain('Examples:');
    for (const [call] of examples[name] ?? []) {
      for (const [flag] of call.matchAll(/--[a-z-]+/g)) expect(stdout, call).toContain(flag);
    }
  });

  test.each([
    60, 66, 72, 80,
  ])('in a terminal of %i columns, only an example command is longer than a line', (width) => {
    let text = '';
    const io = { stdout: { write: (part: string) => (text += part) } } as unknown as Io;
    const program = createProgram(io, () => {});
    for (const each of [program, ...program.commands]) {
      each.configureOutput({ getOutHelpWidth: () => width }).outputHelp();
    }
    const lines = text.split('\n').filter((line) => !line.startsWith('  vdcsync '));
    expect(lines.filter((line) => line.length > width)).toEqual([]);
    expect(lines.length).toBeGreaterThan(400);
  });
});
