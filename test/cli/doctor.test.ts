import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import { contentsOf, folderWith, inProcess, oneNetwork } from './run.ts';

const profile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');

let emulator: RunningEmulator;
let env: Record<string, string>;

beforeAll(async () => {
  emulator = await startEmulator({ profile: loadProfile(profile) });
  emulator.emulator.mutate({ do: 'add_server', name: 'one' });
  env = { VDC_BASE_URL: emulator.baseUrl, VDC_TOKEN: emulator.projects[0]?.tokens.read ?? '' };
});

afterAll(() => emulator.close());

interface Told {
  readonly healthy: boolean;
  readonly findings: readonly {
    readonly id: string;
    readonly level: string;
    readonly message: string;
    readonly advice: string | null;
  }[];
}

async function diagnose(
  cwd: string,
  more: Record<string, string> = {},
): Promise<Told & { code: number | null }> {
  const { code, stdout } = await inProcess(['doctor', '--format', 'json'], { cwd, env: { ...env, ...more } });
  return { ...(JSON.parse(stdout) as Told), code };
}

function levels({ findings }: Told): Record<string, string> {
  return Object.fromEntries(findings.map(({ id, level }) => [id, level]));
}

describe('cli: doctor', () => {
  test('finds what the API answers by GET alone, and changes nothing', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const before = contentsOf(cwd);
    const told = await diagnose(cwd);

    expect(told).toMatchObject({ code: 0, healthy: true });
    expect(levels(told)).toMatchObject({ api: 'ok', project: 'ok', clock: 'ok', token_level: 'unknown' });
    const list = told.findings.find(({ id }) => id === 'probe:list_servers');
    expect(list?.advice).toContain('operations: {list_servers: {method: GET, path: "/servers"}}');
    const card = told.findings.find(({ id }) => id === 'probe:remove_network_interface');
    expect(card?.message).toContain('is there, though undocumented');
    expect(new Set(emulator.emulator.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('an operation that the profile has in the wrong place is a warning', async () => {
    const cwd = folderWith({ 'p.yaml': 'operations: {list_servers: {path: /vms}, read_server: {}}\n' });
    const told = await diagnose(cwd, { VDCSYNC_API_PROFILE: 'p.yaml' });
    expect(levels(told)).toMatchObject({ 'probe:list_servers': 'warning', 'probe:read_server': 'ok' });
  });

  test.each([
    ['another project', { 'vdcsync.yaml': 'version: 1\nproject: {id: 9}\n' }, {}, 'project'],
    ['a token that is unknown', {}, { VDC_TOKEN: 'nobody' }, 'token'],
    ['an API that is not there', {}, { VDC_BASE_URL: 'http://127.0.0.1:1/v1' }, 'api'],
    ['an invalid file', { 'vdcsync.yaml': 'version: 2\n' }, {}, 'spec'],
    ['an invalid profile', { 'p.yaml': 'limits: 3\n' }, { VDCSYNC_API_PROFILE: 'p.yaml' }, 'profile'],
    ['a damaged state', { '.vdcsync/state.db': 'no database' }, {}, 'state'],
  ])('%s is an error with what to do, exit 1', async (_name, files, more, id) => {
    const told = await diagnose(folderWith(files as Record<string, string>), more as Record<string, string>);
    expect(told).toMatchObject({ code: 1, healthy: false });
    expect(told.findings.filter(({ level }) => level === 'error').map((each) => each.id)).toContain(id);
  });
});
