// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { publicDigest } from '../../src/core/desired.ts';
import type { Plan } from '../../src/core/plan.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { emulated } from './workspace.ts';

const canary = 'canary+5f/3a"9c';
const environment = { MIRROR_KEY: canary, VDCSYNC_ALLOW_ENV: 'MIRROR_KEY' };
const spec = `version: 1
project: { id: 4711 }
isos:
  rescue: { url: "https://mirror.example.com/\${env:MIRROR_KEY}/rescue.iso" }
`;

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

/** Each form of the canary, as a part of texts too: for Base64, the part that no neighbour changes. */
const forms = [
  ...[canary, encodeURIComponent(canary), JSON.stringify(canary).slice(1, -1), 'canary'],
  ...['', 'a', 'ab'].map((before) =>
    Buffer.from(before + canary)
      .toString('base64')
      .slice(4, 16),
  ),
];

function shows(text: string): readonly string[] {
  return forms.filter((form) => text.includes(form));
}

/** Every file below a folder but the emulator's world, which is the other side: it holds what was sent. */
function filesIn(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile() && !name.endsWith('emulator.json'))
    .map((name) => [name, readFileSync(join(folder, name), 'latin1')]);
}

describe('src/core/hidden-texts.ts: values from the environment', () => {
  test('appear in no output, plan file or state file, and are planned once', async () => {
    const more = { 'plan.json': 'older' };
    const place = emulated(spec + server, more, { ...environment, LOG_LEVEL: 'trace' });
    const { cwd } = place;
    const shown: [string, string][] = [];
    const run = async (words: string) => {
      const ended = await place.run(words);
      shown.push([words, `${ended.stdout}${ended.stderr}`]);
      return ended;
    };
    for (const format of ['text', 'json', 'markdown', 'svg']) await run(`plan --format ${format}`);
    expect(shown[0]?.[1]).toContain('https://mirror.example.com/${env:MIRROR_KEY}/rescue.iso');
    await run('plan --prove');
    await run('plan --out plan.json');
    expect(statSync(join(cwd, 'plan.json')).mode & 0o777).toBe(0o600);
    const applied = await run('apply --plan plan.json --yes --format json');
    expect(applied.code, applied.stderr).toBe(0);
    for (const key of ['isos.rescue', 'servers.web.firewall'])
      for (const format of ['text', 'json'])
        expect((await run(`explain ${key} --format ${format}`)).stdout).toContain('${env:MIRROR_KEY}');
    await run('history --format json');
    await run('history --format text');
    for (const command of ['status', 'output', 'validate', 'render', 'doctor']) await run(command);
    await run('status --format json');
    expect((await run('plan')).stdout).toContain('Nothing to do');
    const files = filesIn(cwd);
    expect(files.map(([name]) => name)).toContain(join('.vdcsync', 'state.db'));
    for (const [name, text] of [...shown, ...files]) expect([name, shows(text)]).toEqual([name, []]);
  });

  test('appear in no export, and the export loads as the same spec', async () => {
    const place = emulated(spec + server, {}, environment);
    await place.out('apply --yes');
    for (const format of ['yaml', 'json']) {
      const text = await place.out(`export -f vdcsync.yaml --format ${format}`);
      expect([shows(text), text.includes('${env:MIRROR_KEY}')]).toEqual([[], true]);
      place.write(`again.${format}`, text);
      const { operations }: Plan = await place.json(`plan -f again.${format}`);
      expect(new Set(operations.map(({ verb }) => verb))).toEqual(new Set(['adopt']));
    }
  });

  test.each(['text', 'json'])('appear in no rehearsal report as %s', async (format) => {
    const place = emulated(spec, {}, environment);
    expect(shows(await place.out(`rehearse --trials 2 --format ${format}`))).toEqual([]);
  });

  test('are not part of a printed digest, which could confirm a guess', () => {
    const read = (text: string) => loadSpec([{ file: 'vdcsync.yaml', text }], { MIRROR_KEY: 'x' });
    const plain = read(spec.replace('${env:MIRROR_KEY}', 'x'));
    expect([publicDigest(read(spec)), publicDigest(plain)]).toEqual([undefined, plain.digest]);
  });
});
