import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { examples } from '../../src/cli/help.ts';
import { interview } from '../../src/cli/init/questions.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

describe('src/cli/commands/init.ts', () => {
  test('every default is a file that can be applied', async () => {
    const cwd = folderWith();
    expect((await inProcess(['init', '--yes', '--emulator'], { cwd })).code).toBe(0);
    const { stdout } = await inProcess(['plan', '--emulator'], { cwd });
    expect(stdout).toContain('Plan: 5 to create.');
    const text = readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8');
    expect(text).toContain('# ssh_keys: [101]');
    const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text) ?? [];
    expect(JSON.parse(readFileSync(join(cwd, schema), 'utf8'))).toMatchObject({
      properties: { servers: {} },
    });
    const again = await inProcess(['init', '--yes', '--emulator'], { cwd });
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('does not overwrite it') });
  });

  test('asks again where an answer cannot be, and goes by the mode of the type', async () => {
    const answers = [
      'zero',
      '12',
      'perhaps',
      'no',
      '-',
      'db',
      'no',
      'gpu-fixed',
      'ubuntu-24.04',
      'l40s-9',
      'l40s-2',
      'mine',
      '101, 102',
    ];
    const asked: string[] = [];
    const offer = {
      types: [{ name: 'gpu-fixed', mode: 'fixed', images: ['ubuntu-24.04'], packages: ['l40s-1', 'l40s-2'] }],
    };
    const text = await interview(
      async (question, fallback, check = () => undefined) => {
        for (;;) {
          asked.push(question);
          const answer = answers.shift() ?? fallback;
          if (check(answer) === undefined) return answer;
        }
      },
      undefined,
      offer,
    );
    expect(asked.filter((each) => each.startsWith('Package'))).toHaveLength(2);
    const { projectId, resources, settings } = loadSpec([{ file: 'x', text }], {});
    expect([projectId, settings.exclusive]).toEqual([12, true]);
    expect(resources.map(({ key }) => key)).toEqual(['servers.db']);
    expect(text).toContain('gpu_package: l40s-2\n    ssh_keys: [101, 102]\n');
  });

  test.each(['99', 'true', 'null', '1e3', '0x1f'])('%s is a name like any other', async (name) => {
    const cwd = folderWith();
    const input = `7\n\n${name}\n\n${name}\n${'\n'.repeat(9)}`;
    const { code, stderr } = await inProcess(['init'], { cwd, terminal: true, input });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    const text = readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8');
    const { resources } = loadSpec([{ file: 'x', text }], {});
    const card = `servers.${name}.network_interfaces.${name}`;
    expect(resources.map(({ key }) => key)).toEqual(
      expect.arrayContaining([`networks.${name}`, `ips.${name}`, `servers.${name}`, card]),
    );
  });

  test('a wrong answer is told at once, and no answer is lost', async () => {
    const cwd = folderWith();
    const wrong = { cidr: '999.0.0.0/24', host: '10.20.0.7/24', ports: '22,70000' };
    const input = `7\n\n\n${wrong.cidr}\n${wrong.host}\n10.30.0.0/24\nweb.1\nweb-1\n${'\n'.repeat(7)}${wrong.ports}\n22\n`;
    const { code, stderr } = await inProcess(['init'], { cwd, terminal: true, input });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(stderr).toMatch(/Subnet of backend[^\n]*\n? {2}\S.*999/);
    expect(stderr).toContain('ports from 1 to 65535');
    const text = readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8');
    expect(text).toContain('destination_port: "22"');
    expect(loadSpec([{ file: 'x', text }], {}).resources.map(({ key }) => key)).toContain('servers.web-1');
  });

  test('at a terminal it asks; elsewhere it wants --yes, and a project', async () => {
    const cwd = folderWith();
    const typed = await inProcess(['init', '--project', '7'], {
      cwd,
      terminal: true,
      input: '\nyes\n-\n-\n',
    });
    expect({ code: typed.code, stderr: typed.stderr }).toMatchObject({ code: 0 });
    const text = readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8');
    expect(text).toContain('project: { id: 7 }');
    expect(loadSpec([{ file: 'x', text }], {}).settings.exclusive).toBe(false);
    expect((await inProcess(['init'], { cwd: folderWith() })).code).toBe(64);
    expect((await inProcess(['init', '--yes'], { cwd: folderWith() })).stderr).toContain(
      'init does not know the project',
    );
  });
});

describe('src/cli/commands: destroy at a terminal', () => {
  test('takes the typed name of the project, and no other word', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    const destroy = (input: string) => inProcess(['destroy', '--emulator'], { cwd, terminal: true, input });
    const yes = await destroy('yes\n');
    expect(yes).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('This is not the name of the project'),
    });
    expect((await inProcess(['plan', '--emulator'], { cwd })).stdout).toContain('Nothing to do');
    expect((await destroy('emulated\n')).code).toBe(0);
    expect((await inProcess(['plan', '--emulator'], { cwd })).stdout).toContain('1 to create');
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
