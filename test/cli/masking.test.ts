// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SpecMasks } from '../../src/cli/daemon/spec-masks.ts';
import { Mask, publicDigest } from '../../src/core/environment-mask.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { folderWith, inProcess } from './run.ts';

const canary = 'canary-5f3a9c';
const spec = `version: 1
project: { id: 4711 }
isos:
  rescue: { url: "https://mirror.example.com/\${env:MIRROR_KEY}/rescue.iso" }
`;

describe('src/core/masking.ts: values that came from the environment', () => {
  test('stand in no output, no plan file and no file of the state, and are planned once', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': spec, 'plan.json': 'older' });
    const env = { MIRROR_KEY: canary, VDCSYNC_ALLOW_ENV: 'MIRROR_KEY' };
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
    for (const format of ['text', 'json']) {
      const { stdout } = await run('explain', 'isos.rescue', '--format', format);
      expect(stdout).toContain('${env:MIRROR_KEY}');
      shown.push(stdout);
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

  const server = `servers:
  web:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 1
    memory_mb: 1024
    disk_gb: 20
    public_ipv4: { new: true }
    firewall: { enabled: true, rules: [{ direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22", description: "\${env:MIRROR_KEY}" }] }
`;

  test('stand in no export of a file that has them, and the export reads the same again', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': spec + server });
    const env = { MIRROR_KEY: canary, VDCSYNC_ALLOW_ENV: 'MIRROR_KEY' };
    const run = (...args: string[]) => inProcess([...args, '--emulator'], { cwd, env });
    expect((await run('apply', '--yes')).code).toBe(0);
    for (const format of ['yaml', 'json']) {
      const { code, stdout } = await run('export', '-f', 'vdcsync.yaml', '--format', format);
      expect([code, stdout.includes(canary), stdout.includes('${env:MIRROR_KEY}')]).toEqual([0, false, true]);
      writeFileSync(join(cwd, `again.${format}`), stdout);
      const plan = await run('plan', '-f', `again.${format}`, '--format', 'json');
      const verbs = JSON.parse(plan.stdout).operations.map(({ verb }: { readonly verb: string }) => verb);
      expect(new Set(verbs)).toEqual(new Set(['adopt']));
    }
  });

  test('stand in no report of a rehearsal', async () => {
    const gpu =
      'servers:\n  gpu: { server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: "${env:MIRROR_KEY}" }\n';
    const cwd = folderWith({ 'vdcsync.yaml': `version: 1\nproject: { id: 4711 }\n${gpu}` });
    for (const format of ['text', 'json']) {
      const args = ['rehearse', '--trials', '2', '--format', format];
      const { stdout } = await inProcess(args, {
        cwd,
        env: { MIRROR_KEY: canary, VDCSYNC_ALLOW_ENV: 'MIRROR_KEY' },
      });
      expect([stdout.includes(canary), stdout.includes('${env:MIRROR_KEY}')]).toEqual([false, true]);
    }
  });

  test('stand in no line of the log, whatever the API repeats', async () => {
    const lines: string[] = [];
    const masks = new SpecMasks();
    const logger = createLogger({
      format: 'json',
      write: (line) => void lines.push(line),
      mask: (text, isSentence) => masks.apply(text, isSentence),
    });
    const sources = [{ file: 'vdcsync.yaml', text: spec }];
    for (const value of ['older-canary-1', canary])
      masks.learn('vdcsync.yaml', loadSpec(sources, { MIRROR_KEY: value }));
    const error = new Error(`cannot fetch https://mirror.example.com/${canary}/rescue.iso`);
    logger.warn({ key: 'isos.rescue', error, detail: 'older-canary-1' }, `${canary} is refused`);
    expect(lines.join('')).not.toContain('canary');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ key: 'isos.rescue', detail: '${env:MIRROR_KEY}' });
  });

  test('of one or two characters are masked in a sentence that quotes them', () => {
    const mask = new Mask({ masked: [{ value: '22', shown: '${env:PORT}' }] });
    expect(mask.text('`22` is no port, nor is "22"; 22 trials')).toBe(
      '`${env:PORT}` is no port, nor is "${env:PORT}"; 22 trials',
    );
  });

  test('make no digest of the spec that is shown, as it would confirm a guess', () => {
    const read = (text: string) => loadSpec([{ file: 'vdcsync.yaml', text }], { MIRROR_KEY: canary });
    const plain = read(spec.replace('${env:MIRROR_KEY}', canary));
    expect([publicDigest(read(spec)), publicDigest(plain)]).toEqual([undefined, plain.digest]);
  });
});
