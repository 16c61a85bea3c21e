import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { folderWith, inProcess } from './run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const examples = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.yaml'));

describe('the examples', () => {
  test('are there', () => {
    expect(examples.length).toBeGreaterThan(0);
  });

  test.each(examples)('%s converges against the emulator, and stays so', async (name) => {
    const cwd = folderWith();
    cpSync(join(root, 'examples', name), join(cwd, 'vdcsync.yaml'));
    const applied = await inProcess(['apply', '--emulator', '--yes'], { cwd });
    expect(applied, applied.stdout + applied.stderr).toMatchObject({ code: 0 });
    const plan = await inProcess(['plan', '--emulator', '--detailed-exitcode'], { cwd });
    expect(plan, plan.stdout).toMatchObject({ code: 0 });
  }, 60_000);
});

describe('the README', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const block = (start: string) => readme.split(start)[1]?.split('```')[0] ?? '';

  test('shows what its commands print', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': block('```yaml\n') });
    const { stdout } = await inProcess(['plan', '--emulator'], { cwd });
    expect(readme).toContain(`$ vdcsync plan --emulator\n${stdout.trimEnd()}\n`);
    const applied = await inProcess(['apply', '--emulator', '--yes'], { cwd });
    expect(applied.code).toBe(0);
    const again = await inProcess(['plan', '--emulator'], { cwd });
    expect(readme).toContain(`$ vdcsync plan --emulator\n${again.stdout}`);
  });

  test('links to what exists', () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map(([, link]) => link ?? '');
    expect(links.length).toBeGreaterThan(0);
    for (const link of links) expect(() => readdirOrRead(join(root, link)), link).not.toThrow();
  });
});

function readdirOrRead(path: string): void {
  if (path.endsWith('/')) readdirSync(path);
  else readFileSync(path);
}
