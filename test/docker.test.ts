import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { playsAll } from './support/drawn.ts';

// There is no Docker here: the steps of the Dockerfile are followed in a folder as far as they
// do not need one. What it copies, what it builds and what it starts is real.

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'vdcsync-docker-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const readJson = (name: string): unknown => JSON.parse(readFileSync(join(root, name), 'utf8'));
const packageJson = readJson('package.json') as { version: string; devDependencies: { node: string } };

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

const instructions: readonly Instruction[] = readFileSync(join(root, 'Dockerfile'), 'utf8')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => /^[A-Z]+ /.test(line))
  .map((line) => ({ name: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1) }));

const all = (name: string) => instructions.filter((each) => each.name === name).map(({ rest }) => rest);
const last = (name: string) => all(name).at(-1) ?? '';
const baseImage = all('ARG')[0]?.replace(/^NODE_IMAGE=/, '') ?? '';
const entrypoint = JSON.parse(last('ENTRYPOINT')) as string[];
const copies = all('COPY').map((rest) => {
  const words = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
  return {
    fromBuild: rest.includes('--from=build'),
    sources: words.slice(0, -1),
    target: words.at(-1) ?? '',
  };
});

/** What `.dockerignore` lets through: it forbids everything and names the exceptions. */
const allowed = readFileSync(join(root, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));

describe('Dockerfile', () => {
  test('copies existing files, exactly those that .dockerignore allows', () => {
    const sources = copies.filter(({ fromBuild }) => !fromBuild).flatMap((each) => each.sources);
    for (const source of sources) expect(existsSync(join(root, source)), source).toBe(true);
    expect([...sources].sort()).toEqual([...allowed].sort());
  });

  test('runs as an unprivileged user, from a pinned Node image, with one writable folder', () => {
    expect(all('FROM')).toEqual(['$NODE_IMAGE AS build', '$NODE_IMAGE']);
    expect(baseImage).toMatch(/^node:24\.\d+\.\d+-slim@sha256:[0-9a-f]{64}$/);
    expect(baseImage).toContain(`:${packageJson.devDependencies.node}-slim@`);
    expect(last('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(all('VOLUME')).toEqual(['/var/lib/vdcsync']);
    expect(all('ENV')).toContain('VDCSYNC_STATE=/var/lib/vdcsync/state.db');
    expect(instructions.some(({ rest }) => /TOKEN=|SECRET=|PASSWORD=/.test(rest))).toBe(false);
  });

  test('runs no script of a package, and contains packages only inside the built files', () => {
    const installs = all('RUN').filter((rest) => /\bnpm (ci|i|install|prune|rebuild)\b/.test(rest));
    expect(installs).toEqual(['npm ci --ignore-scripts']);
    expect(copies.flatMap(({ sources }) => sources).join(' ')).not.toContain('node_modules');
  });

  test('starts the command under an init process, which forwards signals', () => {
    expect(entrypoint.slice(0, 2)).toEqual(['tini', '--']);
    expect(entrypoint.slice(2, 4)).toEqual(['sh', '-c']);
    expect(entrypoint[4]).toContain('exec node --disable-sigusr1 /app/dist/cli/main.cjs "$@"');
    expect(last('HEALTHCHECK')).toContain('"vdcsync"');
    expect(all('RUN').join('\n')).toContain('ln -s /app/dist/cli/main.cjs /usr/local/bin/vdcsync');
  });
});

describe.runIf(playsAll)('Dockerfile: the image, built in a folder', () => {
  const build = join(scratch, 'build');
  const app = join(scratch, 'app');
  const run = (args: readonly string[], cwd: string) =>
    execFileSync(process.execPath, [join(app, 'dist/cli/main.cjs'), ...args], {
      cwd,
      encoding: 'utf8',
      env: { VDCSYNC_STATE: join(scratch, 'state', 'state.db') },
    });

  beforeAll(() => {
    for (const { sources } of copies.filter(({ fromBuild }) => !fromBuild)) {
      for (const source of sources) cpSync(join(root, source), join(build, source), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(build, 'node_modules'));
    const { scripts } = JSON.parse(readFileSync(join(build, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    execFileSync('sh', ['-c', scripts.build ?? 'false'], {
      cwd: build,
      env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
    });

    for (const { sources } of copies.filter(({ fromBuild }) => fromBuild)) {
      for (const source of sources) {
        const name = source.replace(/^\/build\//, '');
        cpSync(join(build, name), join(app, name), { recursive: true });
      }
    }
  });

  test('prints its version', () => {
    expect(run(['--version'], scratch)).toBe(`${packageJson.version}\n`);
  });

  test('SIGUSR1 opens no debugger in the started process, and its crash writes no memory dump', async () => {
    const [program = '', ...args] = entrypoint.slice(2).map((word) => word.replaceAll('/app/', `${app}/`));
    const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
    const started = spawn(program, [...args, 'emulator', '--port', '0'], { cwd: scratch, env });
    let said = '';
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (chunk) => {
        said += String(chunk);
      });
    try {
      await expect.poll(() => said).toContain('http://127.0.0.1');
      // A core file would hold the token.
      const limits = readFileSync(`/proc/${started.pid}/limits`, 'utf8');
      expect(limits).toMatch(/^Max core file size +0 +0 /m);
      started.kill('SIGUSR1');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(said).not.toContain('Debugger listening');
      expect(started.exitCode ?? started.signalCode).toBeNull();
    } finally {
      started.kill('SIGKILL');
    }
  });

  test('plans the spec in its working folder', () => {
    const spec = join(scratch, 'spec');
    mkdirSync(spec);
    cpSync(join(root, 'examples/shop.yaml'), join(spec, 'vdcsync.yaml'));
    expect(run(['validate'], spec)).toContain('The spec is valid');
    expect(run(['plan', '--emulator'], spec)).toMatch(/Plan: \d+ to create/);
  });

  test('is healthy before it has a state', () => {
    const [, ...args] = JSON.parse(last('HEALTHCHECK').replace(/^.*CMD /, '')) as string[];
    expect(run(args, scratch)).toContain('This state has sent no write');
  });
});

describe('examples: pins', () => {
  test('the GitLab component uses the base image of vdcsync', () => {
    const pipeline = readFileSync(join(root, 'templates/vdcsync.yml'), 'utf8');
    expect([...pipeline.matchAll(/default: (node:.*)/g)].map(([, image]) => image)).toEqual([baseImage]);
  });

  test('the GitHub workflow names each action by its commit, with the version in a comment', () => {
    const workflow = readFileSync(join(root, 'examples/github-actions/vdcsync.yml'), 'utf8');
    const uses = [...workflow.matchAll(/uses: (.*)/g)].map(([, action]) => action);
    expect(uses.length).toBeGreaterThan(0);
    for (const action of uses) expect(action).toMatch(/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });
});
