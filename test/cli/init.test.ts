import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { examples } from '../../src/cli/help.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { folderWith, inProcess } from './run.ts';

describe('src/cli/commands/init.ts', () => {
  test('every default is a file that can be applied', async () => {
    const cwd = folderWith();
    expect((await inProcess(['init', '--emulator'], { cwd })).code).toBe(0);
    const { stdout } = await inProcess(['plan', '--emulator'], { cwd });
    expect(stdout).toContain('Plan: 5 to create.');
    const text = readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8');
    expect(text).toContain('# ssh_keys: [101]');
    const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text) ?? [];
    expect(JSON.parse(readFileSync(join(cwd, schema), 'utf8'))).toMatchObject({
      properties: { servers: {} },
    });
    expect(readFileSync(join(cwd, '.gitignore'), 'utf8')).toContain('.vdcsync/');
    const again = await inProcess(['init', '--emulator'], { cwd });
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('does not overwrite it') });
  });

  test('without the API it needs the id of the project', async () => {
    const cwd = folderWith();
    expect((await inProcess(['init', '--project', '7'], { cwd })).code).toBe(0);
    const text = readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8');
    expect(loadSpec([{ file: 'x', text }], {}).projectId).toBe(7);
    const unknown = await inProcess(['init'], { cwd: folderWith() });
    expect(unknown).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('init does not know the project'),
    });
  });
});

describe('src/cli/help.ts', () => {
  test.each(Object.keys(examples))('%s --help ends in examples that exist', async (name) => {
    const { stdout, code } = await inProcess([name, '--help'], { cwd: folderWith() });
    expect(code).toBe(0);
    expect(stdout).toContain('Examples:');
    for (const [call] of examples[name] ?? []) {
      for (const [flag] of call.matchAll(/--[a-z-]+/g)) expect(stdout, call).toContain(flag);
    }
  });
});
