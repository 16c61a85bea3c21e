import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import { contentsOf, oneNetwork, type Served, serve } from './run.ts';
import { emulated, Workspace } from './workspace.ts';

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

const files = { 'vdcsync.yaml': oneNetwork, 'profile.yaml': 'time_scale: 60\n' };

/** With the served emulator, and further files and variables. */
const placed = (env: Record<string, string> = {}, more: Record<string, string> = {}) =>
  new Workspace({ ...files, ...more }, { ...api.env, ...env });

describe('src/cli/settings: token and URL', () => {
  // test/golden/mistakes.txt has further ones.
  const unusable: readonly (readonly [string, Record<string, string>, number, RegExp])[] = [
    ['two tokens', { VDC_TOKEN_FILE: 'profile.yaml' }, 64, /both set/],
    ['an invalid URL', { VDC_BASE_URL: 'nowhere' }, 1, /is not a URL/],
    ['a URL with a path after the version', { VDC_BASE_URL: 'https://api.example.com/v1/x' }, 1, /\/v1/],
    [
      'a URL with a password',
      { VDC_BASE_URL: 'https://me:canary@api.example.com/v1' },
      1,
      /user name or password/,
    ],
    ['a token with a space', { VDC_TOKEN: 'can ary' }, 1, /characters that a token cannot have/],
    ['a missing token file', { VDC_TOKEN: '', VDC_TOKEN_FILE: 'gone' }, 1, /gone cannot be read/],
    ['an empty token file', { VDC_TOKEN: '', VDC_TOKEN_FILE: 'empty' }, 1, /holds no token/],
    ['a missing profile', { VDCSYNC_API_PROFILE: 'gone.yaml' }, 1, /gone\.yaml cannot be read/],
    ['an unknown token', { VDC_TOKEN: 'canary' }, 1, /VDC_TOKEN/],
  ];
  test.each(unusable)('refuses %s', async (_name, env, expected, message) => {
    const { code, stdout, stderr } = await placed(env, { empty: '\n' }).run('plan');
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('canary');
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
  });

  test('refuses a token of another project', async () => {
    expect(await placed({ VDC_TOKEN: other }).refused(1, 'plan')).toMatch(/4712/);
  });

  test('reads the token from a file, and a read-only token is enough for a plan', async () => {
    const token = `${api.emulator.tokens(4711).read}\n`;
    const place = placed({ VDC_TOKEN: '', VDC_TOKEN_FILE: 'token' }, { token });
    expect(await place.run('plan')).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('src/cli/settings: a wrong base URL', () => {
  test('reports another path, also as JSON', async () => {
    const place = placed({ VDC_BASE_URL: api.baseUrl.replace('/v1', '/v2') });
    const { code, stdout, stderr } = await place.run('plan --format json');
    expect(stderr).toMatch(/GET \/project answered 404.*Check VDC_BASE_URL/);
    const { message, ...rest } = JSON.parse(stdout);
    expect(stderr).toBe(`vdcsync: ${message}\n`);
    expect(rest).toMatchObject({ type: 'error', error: 'ApiProblem', status: 404, exit_code: 1 });
    expect(code).toBe(1);
  });
});

describe('src/cli/settings: status --detailed-exitcode', () => {
  test('exits with 0 if converged, 2 if pending, 3 if blocked and 1 if unknown', async () => {
    const place = emulated(oneNetwork, { 'empty.yaml': 'version: 1\nproject: { id: 4711 }\n' });
    await place.refused(2, 'status --detailed-exitcode');
    await place.out('apply --yes');
    await place.out('status --detailed-exitcode');
    await place.refused(1, 'status --detailed-exitcode --offline');
    await place.refused(3, 'status --detailed-exitcode -f empty.yaml');
  });
});

describe('src/cli/settings: the API profile', () => {
  test('an invalid profile ends a plan', async () => {
    const place = placed({}, { 'profile.yaml': 'time_scale: 0\n' });
    expect(await place.refused(1, 'plan')).toContain('profile.yaml:1:13: `time_scale` must be');
  });

  test('an operation accepts any name of an id, in the path or in the body', () => {
    const text = `operations:
  list_servers: {}
  read_server: { path: "/vms/{vm}" }
  remove_network_interface: { method: POST, path: "/cards/{id}/remove", body: { vm: "{server_id}" } }
`;
    expect(Object.keys(loadProfile(text, 'p.yaml').operations)).toHaveLength(3);
  });

  test('every key is optional', async () => {
    await placed({}, { 'empty.yaml': '' }).out('plan --api-profile empty.yaml');
  });
});

describe('src/cli/settings: the state', () => {
  test('refuses :memory:, and writes nothing to the disk', async () => {
    const place = placed({}, { 'vdcsync.yaml': 'version: 1\nproject: { id: 4711 }\n' });
    const before = contentsOf(place.cwd);
    await place.refused(64, 'apply --yes --state :memory:');
    expect(contentsOf(place.cwd)).toEqual(before);
  });

  test('refuses a file that is not a state, and does not change the file', async () => {
    const place = placed({}, { 'notes.txt': 'not a state\n' });
    const before = contentsOf(place.cwd);
    for (const command of ['plan', 'apply --yes', 'status --offline', 'history'])
      expect(await place.refused(1, `${command} --state notes.txt`)).toMatch(/notes\.txt/);
    expect(contentsOf(place.cwd)).toEqual(before);
  });

  test('refuses a damaged state, and does not change the file', async () => {
    const place = emulated(oneNetwork);
    await place.out('apply --yes');
    const state = join(place.cwd, '.vdcsync', 'state.db');
    const damaged = Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(9000, 7)]);
    writeFileSync(state, damaged);
    await place.refused(1, 'apply --yes');
    expect(readFileSync(state)).toEqual(damaged);
  });

  test('refuses the state of another project', async () => {
    const place = placed({ VDC_TOKEN: '', VDC_TOKEN_FILE: 'token' }, { token: api.env.VDC_TOKEN ?? '' });
    await place.out('apply --yes');
    place.write('token', other);
    place.write('vdcsync.yaml', oneNetwork.replace('4711', '4712'));
    expect(await place.refused(1, 'apply --yes')).toMatch(/4711/);
  });

  test('refuses a state of the embedded emulator with a real API', async () => {
    const place = placed();
    await place.out('apply --yes --emulator');
    expect(await place.refused(1, 'plan')).toMatch(/embedded emulator.*--state/);
  });

  test('refuses a state of a local emulator with a real API', async () => {
    const local = placed();
    await local.out('apply --yes');
    const real = placed({
      VDC_BASE_URL: 'https://127.0.0.1:1/v1',
      VDCSYNC_STATE: `${local.cwd}/.vdcsync/state.db`,
    });
    for (const command of ['plan', 'apply --yes'])
      expect(await real.refused(1, command)).toMatch(/`vdcsync emulator`.*a real API.*--state/);
  });

  test('reports that a state file has no project yet', async () => {
    const refused = placed({ VDC_TOKEN: 'vdc_unknown' });
    await refused.refused(1, 'apply --yes');
    const forget = await refused.refused(64, 'forget networks.backend');
    expect(forget).toContain('belongs to no project yet');
  });

  test('without a state, refuses adopt, forget, ignore and resolve, and creates no state', async () => {
    const place = placed();
    const before = contentsOf(place.cwd);
    for (const words of [
      'resolve networks.backend --absent --state made-up',
      'forget networks.backend --state made-up',
      'forget networks.backend',
      'ignore --undo 2001',
      'adopt networks.backend 1 --state URL',
      'ignore 2001 --state URL',
    ])
      expect(await place.refused(64, words)).toContain('there is no state at');
    for (const state of [
      '&state=4711',
      '?state=4711',
      '"postgres://me:canary@db/x',
      'x postgres://me:canary@db/x',
    ]) {
      const stderr = await place.refused(64, 'adopt networks.backend 1 --state', state);
      expect(stderr).toContain('neither a path nor a URL');
      expect(stderr).not.toContain('canary');
    }
    expect(contentsOf(place.cwd)).toEqual(before);
  });

  test('refuses a folder and an unreachable database as the state', async () => {
    const place = placed({}, { 'folder/x': '' });
    for (const state of ['folder', 'postgres://me:canary@db.example.com/x'])
      expect(await place.refused(1, `plan --state ${state}`)).not.toContain('canary');
  });
});
