import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import { contentsOf, folderWith, inProcess, oneNetwork, type Served, serve } from './run.ts';

let api: Served;
let other: string;

beforeAll(async () => {
  api = await serve({
    speed: 60,
    projects: [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ],
  });
  other = api.emulator.tokens(4712).readWrite;
});
afterAll(() => api.close());

const env = (more: Record<string, string> = {}) => ({ ...api.env, ...more });
const files = { 'vdcsync.yaml': oneNetwork, 'profile.yaml': 'time_scale: 60\n' };

async function planned(more: Record<string, string>, args: readonly string[] = []) {
  const cwd = folderWith(files);
  return inProcess(['plan', ...args], { cwd, env: env(more) });
}

describe('src/cli/settings: token and URL', () => {
  // test/golden/mistakes.txt has further ones.
  const unusable: readonly (readonly [string, Record<string, string>, number, RegExp])[] = [
    ['two tokens', { VDC_TOKEN_FILE: 'profile.yaml' }, 64, /both set/],
    ['a URL that is none', { VDC_BASE_URL: 'nowhere' }, 1, /is not a URL/],
    ['a URL with more after the version', { VDC_BASE_URL: 'https://api.example.com/v1/x' }, 1, /\/v1/],
    [
      'a password in the URL',
      { VDC_BASE_URL: 'https://me:canary@api.example.com/v1' },
      1,
      /user name or password/,
    ],
    ['a token with a space in it', { VDC_TOKEN: 'can ary' }, 1, /characters that a token cannot have/],
    ['a token file that is not there', { VDC_TOKEN: '', VDC_TOKEN_FILE: 'gone' }, 1, /gone cannot be read/],
    ['an empty token file', { VDC_TOKEN: '', VDC_TOKEN_FILE: 'empty' }, 1, /holds no token/],
    ['a profile that is not there', { VDCSYNC_API_PROFILE: 'gone.yaml' }, 1, /gone\.yaml cannot be read/],
    ['an unknown token', { VDC_TOKEN: 'canary' }, 1, /VDC_TOKEN/],
  ];
  test.each(unusable)('%s', async (_name, more, expected, message) => {
    const cwd = folderWith({ ...files, empty: '\n' });
    const { code, stdout, stderr } = await inProcess(['plan'], { cwd, env: env(more) });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('canary');
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
  });

  test('a token of another project is refused', async () => {
    const { code, stderr } = await planned({ VDC_TOKEN: other });
    expect(stderr).toMatch(/4712/);
    expect(code).toBe(1);
  });

  test('the token may stand in a file, and a read-only one is enough for a plan', async () => {
    const cwd = folderWith({ ...files, token: `${api.emulator.tokens(4711).read}\n` });
    const { code, stderr } = await inProcess(['plan'], {
      cwd,
      env: env({ VDC_TOKEN: '', VDC_TOKEN_FILE: 'token' }),
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('src/cli/settings: what does not answer as the API does', () => {
  test('another path is told as one, and as JSON where that is asked for', async () => {
    const cwd = folderWith(files);
    const wrong = env({ VDC_BASE_URL: api.baseUrl.replace('/v1', '/v2') });
    const { code, stdout, stderr } = await inProcess(['plan', '--format', 'json'], { cwd, env: wrong });
    expect(stderr).toMatch(/GET \/project answered 404.*Check VDC_BASE_URL/);
    const { message, ...rest } = JSON.parse(stdout);
    expect(stderr).toBe(`vdcsync: ${message}\n`);
    expect(rest).toMatchObject({ type: 'error', error: 'ApiProblem', status: 404, exit_code: 1 });
    expect(code).toBe(1);
  });
});

describe('src/cli/settings: status --detailed-exitcode', () => {
  test('0 converged, 2 not yet, 3 blocked, 1 where it cannot be told', async () => {
    const cwd = folderWith(files);
    const status = async (...more: string[]) =>
      (await inProcess(['status', '--emulator', '--detailed-exitcode', ...more], { cwd })).code;
    expect(await status()).toBe(2);
    await inProcess(['apply', '--emulator', '--yes'], { cwd });
    expect(await status()).toBe(0);
    expect(await status('--offline')).toBe(1);
    writeFileSync(join(cwd, 'empty.yaml'), 'version: 1\nproject: { id: 4711 }\n');
    expect(await status('-f', 'empty.yaml')).toBe(3);
  });
});

describe('src/cli/settings: the API profile', () => {
  test('that cannot be used ends a plan', async () => {
    const cwd = folderWith({ ...files, 'profile.yaml': 'time_scale: 0\n' });
    const { code, stderr } = await inProcess(['plan'], { cwd, env: env() });
    expect([code, stderr]).toEqual([1, expect.stringContaining('profile.yaml:1:13: `time_scale` must be')]);
  });

  test('ids have any name, and may stand in the body', () => {
    const text = `operations:
  list_servers: {}
  read_server: { path: "/vms/{vm}" }
  remove_network_interface: { method: POST, path: "/cards/{id}/remove", body: { vm: "{server_id}" } }
`;
    expect(Object.keys(loadProfile(text, 'p.yaml').operations)).toHaveLength(3);
  });

  test('every key is optional', async () => {
    const cwd = folderWith({ ...files, 'empty.yaml': '' });
    const { code } = await inProcess(['plan', '--api-profile', 'empty.yaml'], { cwd, env: env() });
    expect(code).toBe(0);
  });
});

describe('src/cli/settings: the state', () => {
  test(':memory: is refused, and touches no disk', async () => {
    const cwd = folderWith({ ...files, 'vdcsync.yaml': 'version: 1\nproject: { id: 4711 }\n' });
    const before = contentsOf(cwd);
    expect((await inProcess(['apply', '--yes', '--state', ':memory:'], { cwd, env: env() })).code).toBe(64);
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('a foreign file is refused and left as it is', async () => {
    const cwd = folderWith({ ...files, 'notes.txt': 'not a state\n' });
    const before = contentsOf(cwd);
    for (const command of [['plan'], ['apply', '--yes'], ['status', '--offline'], ['history']]) {
      const { code, stderr } = await inProcess([...command, '--state', 'notes.txt'], { cwd, env: env() });
      expect(stderr).toMatch(/notes\.txt/);
      expect(code).toBe(1);
    }
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('a damaged one is refused and left as it is', async () => {
    const cwd = folderWith(files);
    await inProcess(['apply', '--yes', '--emulator'], { cwd });
    const state = join(cwd, '.vdcsync', 'state.db');
    writeFileSync(state, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(9000, 7)]));
    const before = contentsOf(cwd);
    const { code } = await inProcess(['apply', '--yes', '--emulator'], { cwd });
    expect(code).toBe(1);
    expect(contentsOf(cwd)[join('.vdcsync', 'state.db')]).toBe(before[join('.vdcsync', 'state.db')]);
  });

  test('one of another project is refused', async () => {
    const cwd = folderWith({ ...files, 'other.yaml': oneNetwork.replace('4711', '4712') });
    expect((await inProcess(['apply', '--yes'], { cwd, env: env() })).code).toBe(0);
    const { code, stderr } = await inProcess(['apply', '--yes', '-f', 'other.yaml'], {
      cwd,
      env: env({ VDC_TOKEN: other }),
    });
    expect(stderr).toMatch(/4711/);
    expect(code).toBe(1);
  });

  test('one made with the embedded emulator never meets a real API', async () => {
    const cwd = folderWith(files);
    await inProcess(['apply', '--yes', '--emulator'], { cwd });
    const { code, stderr } = await inProcess(['plan'], { cwd, env: env() });
    expect(stderr).toMatch(/embedded emulator.*--state/);
    expect(code).toBe(1);
  });

  test('one made with an emulator on this machine never meets a real API', async () => {
    const cwd = folderWith(files);
    await inProcess(['apply', '--yes'], { cwd, env: env() });
    const real = env({ VDC_BASE_URL: 'https://127.0.0.1:1/v1' });
    for (const args of [['plan'], ['apply', '--yes']]) {
      const { code, stderr } = await inProcess(args, { cwd, env: real });
      expect(stderr).toMatch(/`vdcsync emulator`.*a real API.*--state/);
      expect(code).toBe(1);
    }
  });

  test('a state file of no project is named as that', async () => {
    const cwd = folderWith(files);
    const refused = env({ VDC_TOKEN: 'vdc_unknown' });
    expect((await inProcess(['apply', '--yes'], { cwd, env: refused })).code).toBe(1);
    const forget = await inProcess(['forget', 'networks.backend'], { cwd, env: env() });
    expect([forget.code, forget.stderr]).toEqual([64, expect.stringContaining('belongs to no project yet')]);
  });

  test('where none is, nothing is settled, and none is begun', async () => {
    const cwd = folderWith(files);
    const before = contentsOf(cwd);
    for (const args of [
      ['resolve', 'networks.backend', '--absent', '--state', 'made-up'],
      ['forget', 'networks.backend', '--state', 'made-up'],
      ['forget', 'networks.backend'],
      ['ignore', '--undo', '2001'],
      ['adopt', 'networks.backend', '1', '--state', 'URL'],
      ['ignore', '2001', '--state', 'URL'],
    ]) {
      const { code, stderr } = await inProcess(args, { cwd, env: env() });
      expect([code, stderr]).toEqual([64, expect.stringContaining('there is no state at')]);
    }
    for (const state of [
      '&state=4711',
      '?state=4711',
      '"postgres://me:canary@db/x',
      'x postgres://me:canary@db/x',
    ]) {
      const { code, stderr } = await inProcess(['adopt', 'networks.backend', '1', '--state', state], {
        ...{ cwd, env: env() },
      });
      expect([code, stderr]).toEqual([64, expect.stringContaining('neither a path nor a URL')]);
      expect(stderr).not.toContain('canary');
    }
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('a folder and a database server are no state here', async () => {
    const cwd = folderWith(files);
    mkdirSync(join(cwd, 'folder'));
    for (const state of ['folder', 'postgres://me:canary@db.example.com/x']) {
      const { code, stderr } = await inProcess(['plan', '--state', state], { cwd, env: env() });
      expect(stderr).not.toContain('canary');
      expect(code).toBe(1);
    }
  });
});
