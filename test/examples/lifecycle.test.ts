import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { builtCommand } from '../support/built.ts';
import { drawn } from '../support/drawn.ts';
import { programEnv } from '../support/program-env.ts';

const speed = 300;
const root = fileURLToPath(new URL('../..', import.meta.url));

const unprotected = (spec: string) => spec.replaceAll('protect: true', 'protect: false');

/** What an operator does with each example: an edit, and what the plan calls it. */
const examples = [
  {
    name: 'shop',
    edit: (spec: string) =>
      unprotected(spec).replace(/destination_port: "[^"]*"/, 'destination_port: "22,8443"'),
    summary: { update: 1 },
  },
  {
    name: 'gpu',
    edit: (spec: string) => spec.replace('servers:', 'ips:\n  spare: {}\n\nservers:'),
    summary: { create: 1 },
  },
  {
    name: 'full',
    edit: (spec: string) => unprotected(spec).replace('policy_in: drop', 'policy_in: accept'),
    summary: { update: 1 },
  },
] as const;

/** Nothing is wanted any more, and it may all go. */
const removal = 'version: 1\nproject: {id: 4711}\nsettings: {prune: true, max_deletions: 20}\n';

describe.each(drawn(examples))('examples: the example $name', ({ name, edit, summary }) => {
  let service: RunningEmulator;
  let folder: string;

  beforeAll(async () => {
    service = await startEmulator({ speed, seed: name });
    folder = await mkdtemp(join(tmpdir(), 'vdcsync-example-'));
    await writeFile(join(folder, 'profile.yaml'), `time_scale: ${speed}\n`);
  });

  afterAll(async () => {
    await service.close();
    await rm(folder, { recursive: true });
  });

  test('is applied, found unchanged, edited, updated and removed, and nothing is billed unseen', async () => {
    const example = await readFile(join(root, 'examples', `${name}.yaml`), 'utf8');
    // A new state creates nothing for an entry with an earlier key.
    const spec = example.replace(/^ *moved: .*\n/gm, '');
    const plan = async (text: string) => {
      const { code, stdout, stderr } = await vdcsync(text, 'plan', '--format', 'json', '--detailed-exitcode');
      expect(stdout, stderr).not.toBe('');
      return { code, ...JSON.parse(stdout) };
    };

    const first = await vdcsync(spec, 'apply', '--yes');
    expect(first.code, first.stdout + first.stderr).toBe(0);
    expect(await plan(spec)).toMatchObject({ code: 0, operations: [], blocked: [] });

    const edited = edit(spec);
    expect(await plan(edited)).toMatchObject({ code: 2, summary });
    const second = await vdcsync(edited, 'apply', '--yes');
    expect(second.code, second.stdout + second.stderr).toBe(0);
    expect(await plan(edited)).toMatchObject({ code: 0, operations: [] });

    const leaving = await plan(removal);
    const last = await vdcsync(removal, 'apply', '--yes');
    expect(last.code, last.stdout + last.stderr).toBe(0);
    expect(service.emulator.billed().length).toBe(leaving.cost.left_billed.length);
    expect(await plan(removal)).toMatchObject({ code: 0, operations: [], blocked: [] });
  });

  async function vdcsync(text: string, ...args: string[]) {
    await writeFile(join(folder, 'vdcsync.yaml'), text);
    const env = {
      ...programEnv(),
      VDC_BASE_URL: service.baseUrl,
      VDC_TOKEN: service.projects[0]?.tokens.readWrite,
      VDCSYNC_API_PROFILE: 'profile.yaml',
    };
    return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(process.execPath, [builtCommand(), ...args], { cwd: folder, env }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
      );
    });
  }
});
