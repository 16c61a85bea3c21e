import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { folderWith, mainFile, oneNetwork } from './run.ts';

const hook = `import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
process.on('exit', () => process.stderr.write(loaded.join('\\n')));`;

/** The packages and rooms of the source that a call loads. */
function loadedBy(args: readonly string[]): ReadonlySet<string> {
  const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, mainFile, ...args],
    { cwd, encoding: 'utf8', env: { PATH: process.env.PATH ?? '' } },
  );
  expect(status).toBe(0);
  return new Set(
    [...stderr.matchAll(/node_modules\/([a-z-]+)\/|\/src\/([a-z]+)\//g)].map(
      ([, name, room]) => name ?? `src/${room}`,
    ),
  );
}

describe('src/cli/main.ts: the modules that a command loads', () => {
  test('--help loads neither the spec, nor the API, nor the emulator', () => {
    expect([...loadedBy(['--help'])].sort()).toEqual(['commander', 'src/cli', 'src/core']);
  });

  test('validate loads no API, log, state or emulator', () => {
    const loaded = loadedBy(['validate']);
    expect([...loaded]).toContain('zod');
    const apart = [
      'undici',
      'pino',
      'hono',
      'src/api',
      'src/emulator',
      'src/engine',
      'src/state',
      'src/daemon',
    ];
    expect(apart.filter((each) => loaded.has(each))).toEqual([]);
  });

  test('plan --emulator loads no HTTP client, server or database', () => {
    const loaded = loadedBy(['plan', '--emulator']);
    expect(['undici', 'hono', 'pg', 'src/daemon'].filter((each) => loaded.has(each))).toEqual([]);
  });
});
