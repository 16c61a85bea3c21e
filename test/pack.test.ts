import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { playsAll } from './support/drawn.ts';

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
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...args: string[]): string {
  return execFileSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

const cli = 'node_modules/vdcsync/dist/cli/main.cjs';

/** The compiler refuses this only if the types of the package are right: else the comment is its error. */
const slip = `import { defineProject } from 'vdcsync';
// @ts-expect-error
defineProject({ project: { id: 1 }, servers: { a: { coers: 2 } } });
`;

describe('package.json', () => {
  test('contains the program, types, schemas and examples, and no source files', () => {
    for (const path of [
      'dist/cli/main.cjs',
      'dist/index.d.ts',
      'schemas/plan.schema.json',
      'examples/profile.yaml',
      'man/vdcsync.1',
      'docs/daemon/run.md',
      'docs/reference/codes.md',
      'LICENSE',
    ])
      expect(packed).toContain(path);
    const inner = /^(src|test|tools|bench)\/|^dist\/.*\.ts$(?<!\.d\.ts)|demo|reference\/generate|\.cache/;
    expect(packed.filter((path) => inner.test(path))).toEqual([]);
  });

  // CI builds it twice in clones as well.
  test.runIf(playsAll)(
    'two builds are equal byte for byte',
    () => {
      const again = join(folder, 'again');
      mkdirSync(again);
      execFileSync('npm', ['pack', '--silent', '--pack-destination', again], { cwd: root, stdio: 'ignore' });
      const [tarball = ''] = readdirSync(again);
      expect(readFileSync(join(again, tarball)).equals(readFileSync(join(folder, tarball)))).toBe(true);
    },
    120_000,
  );

  test.runIf(playsAll)(
    'has an SBOM with exactly the packages that its installation adds',
    () => {
      const bom = JSON.parse(execFileSync(join(root, '.ci/sbom'), { encoding: 'utf8' })) as {
        readonly metadata: { readonly component: { readonly name: string } };
        readonly components: readonly { readonly name: string; readonly version: string }[];
      };
      const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
        readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: boolean }>>;
      };
      const installed = Object.entries(packages).flatMap(([path, { dev, version }]) =>
        path === '' || dev ? [] : [`${path.replace(/^.*node_modules\//, '')} ${version}`],
      );
      expect(bom.metadata.component.name).toBe('vdcsync');
      expect(bom.components.map(({ name, version }) => `${name} ${version}`).sort()).toEqual(
        installed.sort(),
      );
      expect(installed.length).toBeGreaterThan(30);
    },
    60_000,
  );

  test('contains each page that the help names', () => {
    const help = [[], ['run'], ['doctor'], ['apply'], ['emulator']].map((args) =>
      run(cli, ...args, '--help'),
    );
    const named = help.join('\n').match(/docs\/[\w/-]+\.md/g) ?? [];
    expect(named).toContain('docs/daemon/git.md');
    for (const page of named) expect(packed).toContain(page);
  });

  test.runIf(playsAll)(
    'npm links the manual page',
    () => {
      const prefix = join(folder, 'prefix');
      const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
      const npm = [
        'install',
        '--global',
        '--prefix',
        prefix,
        '--offline',
        '--ignore-scripts',
        '--no-audit',
        '--omit=dev',
      ];
      const own = join(folder, 'own');
      mkdirSync(own);
      execFileSync('tar', ['-xzf', join(folder, tarball), '-C', own]);
      // Its dependencies are beside it already, and no registry is asked for them.
      const manifest = JSON.parse(readFileSync(join(own, 'package/package.json'), 'utf8'));
      writeFileSync(
        join(own, 'package/package.json'),
        JSON.stringify({ ...manifest, dependencies: {}, scripts: {} }),
      );
      execFileSync('npm', ['pack', '--silent'], { cwd: join(own, 'package'), stdio: 'ignore' });
      execFileSync('npm', [...npm, join(own, 'package', tarball)], { stdio: 'ignore' });
      expect(readFileSync(join(prefix, 'share/man/man1/vdcsync.1'), 'utf8')).toContain('.TH VDCSYNC 1');
    },
    60_000,
  );

  test('runs in an empty folder', () => {
    run(cli, 'init', '--emulator');
    expect(run(cli, 'plan', '--emulator')).toContain('Plan: 5 to create.');
    expect(run(cli, '--help')).toContain('rehearse');
    expect(JSON.parse(run(cli, 'schema'))).toMatchObject({ title: 'vdcsync spec' });
  });

  test('exports the emulator and the types of a spec and a plan', () => {
    const source = `import { type Plan, startEmulator } from 'vdcsync';
const { baseUrl, close } = await startEmulator({ seed: 'mine' });
const plan: Pick<Plan, 'format_version'> = { format_version: 1 };
console.log(baseUrl.startsWith('http://127.0.0.1:'), plan.format_version);
await close();
`;
    writeFileSync(join(folder, 'mine.mts'), source);
    expect(run('mine.mts')).toBe('true 1\n');
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
    writeFileSync(
      join(folder, 'forty.mts'),
      readFileSync(join(folder, 'node_modules/vdcsync/examples/forty-servers.ts')),
    );
    writeFileSync(join(folder, 'slip.mts'), slip);
    run('node_modules/typescript/bin/tsc', ...options, 'mine.mts', 'forty.mts', 'slip.mts');
    expect(run(cli, 'render', 'forty.mts')).toContain('web-40: ');
  });
});
