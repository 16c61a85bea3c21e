// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { folderWith, inProcess } from './run.ts';

const canary = 'canary-5f3a9c';
const spec = `version: 1
project: { id: 4711 }
isos:
  rescue: { url: "https://mirror.example.com/\${env:MIRROR_KEY}/rescue.iso" }
`;

describe('cli: values that came from the environment', () => {
  test('stand in no output, no plan file and no file of the state, and are planned once', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': spec, 'plan.json': 'older' });
    const env = { MIRROR_KEY: canary };
    const run = (...args: string[]) => inProcess([...args, '--emulator'], { cwd, env });
    const shown = [];
    for (const format of ['text', 'json', 'markdown', 'svg', 'mermaid']) {
      const { stdout, stderr } = await run('plan', '--format', format);
      shown.push(stdout, stderr);
    }
    expect(shown[0]).toContain('https://mirror.example.com/${env:MIRROR_KEY}/rescue.iso');
    shown.push(JSON.stringify(await run('plan', '--out', 'plan.json')));
    expect(statSync(join(cwd, 'plan.json')).mode & 0o777).toBe(0o600);
    const applied = await run('apply', '--plan', 'plan.json', '--yes', '--format', 'json');
    expect(applied.code, applied.stderr).toBe(0);
    shown.push(JSON.stringify(applied));
    for (const command of ['status', 'history']) {
      const { stdout, stderr } = await inProcess(
        [command, '--format', 'json', ...(command === 'status' ? ['--emulator'] : [])],
        { cwd, env },
      );
      shown.push(stdout, stderr);
    }
    const again = await run('plan');
    expect(again.stdout).toContain('Nothing to do');
    writeFileSync(join(cwd, 'shown.txt'), shown.join('\n'));
    // The world of the emulator is the other side: it holds what was sent.
    const files = readdirSync(cwd, { recursive: true, encoding: 'utf8' }).filter(
      (name) => statSync(join(cwd, name)).isFile() && !name.endsWith('emulator.json'),
    );
    expect(files).toContain(join('.vdcsync', 'state.db'));
    for (const name of files) {
      expect([name, readFileSync(join(cwd, name), 'latin1').includes(canary)]).toEqual([name, false]);
    }
  });
});
