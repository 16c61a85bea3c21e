import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { folderWith, inProcess, served, vdcsync } from '../cli/run.ts';
import { drawn } from '../support/drawn.ts';

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

describe('examples', () => {
  test.each(
    drawn(examples),
  )('the example $name is applied, edited, updated and removed, and each billed resource is listed', async ({
    name,
    edit,
    summary,
  }) => {
    const service = await served({ speed, seed: name });
    const folder = folderWith(service.files);
    // One example with the command as it is built.
    const run = name === 'shop' ? vdcsync : inProcess;
    const command = async (text: string, ...args: readonly string[]) => {
      await writeFile(join(folder, 'vdcsync.yaml'), text);
      return run(args, { cwd: folder, env: service.env });
    };
    const example = await readFile(join(root, 'examples', `${name}.yaml`), 'utf8');
    // A new state creates nothing for an entry with an earlier key.
    const spec = example.replace(/^ *moved: .*\n/gm, '');
    const plan = async (text: string) => {
      const { code, stdout, stderr } = await command(text, 'plan', '--format', 'json', '--detailed-exitcode');
      expect(stdout, stderr).not.toBe('');
      return { code, ...JSON.parse(stdout) };
    };

    const first = await command(spec, 'apply', '--yes');
    expect(first.code, first.stdout + first.stderr).toBe(0);
    expect(await plan(spec)).toMatchObject({ code: 0, operations: [], blocked: [] });

    const edited = edit(spec);
    expect(await plan(edited)).toMatchObject({ code: 2, summary });
    const second = await command(edited, 'apply', '--yes');
    expect(second.code, second.stdout + second.stderr).toBe(0);
    expect(await plan(edited)).toMatchObject({ code: 0, operations: [] });

    const leaving = await plan(removal);
    const last = await command(removal, 'apply', '--yes');
    expect(last.code, last.stdout + last.stderr).toBe(0);
    expect(service.emulator.billed().length).toBe(leaving.cost.left_billed.length);
    expect(await plan(removal)).toMatchObject({ code: 0, operations: [], blocked: [] });
  });
});
