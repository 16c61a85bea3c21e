import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
let folder: string;
let packed: readonly string[];

/** What is published, in an empty folder, with the dependencies that it names beside it. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vdcsync-pack-'));
  const told = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  packed = [...told.matchAll(/"path": "([^"]+)"/g)].map(([, path = '']) => path);
  const [tarball = ''] = readdirSync(folder);
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!name.startsWith('.')) symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', modules]);
  execFileSync('mv', [join(modules, 'package'), join(modules, 'vdcsync')]);
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...args: string[]): string {
  return execFileSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

const cli = 'node_modules/vdcsync/dist/cli/main.js';

describe('the package', () => {
  test('holds what is run, its types, schemas and examples, and nothing of how it is made', () => {
    for (const path of [
      'dist/cli/main.js',
      'dist/index.d.ts',
      'schemas/plan.schema.json',
      'examples/profile.yaml',
      'man/vdcsync.1',
      'LICENSE',
    ])
      expect(packed).toContain(path);
    expect(
      packed.filter((path) => /^(src|test|bench|docs)\/|\.ts$(?<!\.d\.ts)|demo|generate/.test(path)),
    ).toEqual(packed.filter((path) => /^dist\/spec\/generate-schema\./.test(path)));
  });

  test('runs in an empty folder', () => {
    run(cli, 'init', '--yes', '--emulator');
    expect(run(cli, 'plan', '--emulator')).toContain('Plan: 5 to create.');
    expect(run(cli, '--help')).toContain('rehearse');
    expect(JSON.parse(run(cli, 'schema'))).toMatchObject({ title: 'vdcsync spec' });
  });

  test('gives programs the emulator and the engine, with types', () => {
    const source = `import { createEngine, type Plan, startEmulator } from 'vdcsync';
const { baseUrl, close } = await startEmulator({ seed: 'mine' });
const plan: Pick<Plan, 'format_version'> = { format_version: 1 };
console.log(baseUrl.startsWith('http://127.0.0.1:'), typeof createEngine, plan.format_version);
await close();
`;
    writeFileSync(join(folder, 'mine.mts'), source);
    expect(run('mine.mts')).toBe('true function 1\n');
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--types',
      'node',
    ];
    run('node_modules/typescript/bin/tsc', ...options, 'mine.mts');
  }, 60_000);
});
