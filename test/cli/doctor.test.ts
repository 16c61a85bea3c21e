import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import { contentsOf, folderWith, inProcess, oneNetwork, type Served, serve, served } from './run.ts';

const profile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');

let emulator: Served;

beforeAll(async () => {
  emulator = await serve({ profile: loadProfile(profile.replace('reads: 60', 'reads: 6000')) });
  emulator.emulator.mutate({ do: 'add_server', name: 'one' });
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
  const env = { ...emulator.readEnv, ...more };
  const { code, stdout } = await inProcess(['doctor', '--format', 'json'], { cwd, env });
  return { ...(JSON.parse(stdout) as Told), code };
}

function levels({ findings }: Told): Record<string, string> {
  return Object.fromEntries(findings.map(({ id, level }) => [id, level]));
}

describe('src/cli/commands/doctor.ts', () => {
  test('probes on a server with a backup, also where another server comes first', async () => {
    const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const first = `version: 1\nproject: {id: 4711}\nservers:\n  a: {${size}, public_ipv4: {new: true}}\n`;
    const cwd = folderWith({ 'vdcsync.yaml': first });
    const call = (...args: string[]) => inProcess([...args, '--emulator'], { cwd });
    expect((await call('apply', '--yes')).code).toBe(0);
    writeFileSync(
      `${cwd}/vdcsync.yaml`,
      `${first}  b: {${size}, public_ipv4: {new: true}, backup: {max_age: 24h}}\n`,
    );
    expect((await call('apply', '--yes')).code).toBe(0);
    const { findings } = JSON.parse((await call('doctor', '--format', 'json')).stdout);
    const probe = findings.find(({ id }: { id: string }) => id === 'probe:delete_backup');
    expect(probe.message).not.toContain('there is no server with a backup');
  });

  test('finds the operations of the API by GET alone, and changes nothing', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const before = contentsOf(cwd);
    const told = await diagnose(cwd);

    expect(told).toMatchObject({ code: 0, healthy: true });
    expect(levels(told)).toMatchObject({ api: 'ok', project: 'ok', clock: 'ok', token_level: 'unknown' });
    const list = told.findings.find(({ id }) => id === 'probe:list_servers');
    expect(list?.advice).toContain('operations: {list_servers: {method: GET, path: "/servers"}}');
    const card = told.findings.find(({ id }) => id === 'probe:remove_network_interface');
    expect(card?.message).toContain('is available, but not documented');
    expect(new Set(emulator.emulator.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('reports the documented operations without a payload, and asks each path once', async () => {
    const asked = emulator.emulator.requests.length;
    const told = await diagnose(folderWith());
    const insert = told.findings.find(({ id }) => id === 'probe:insert_iso');
    expect(insert?.message).toContain(
      'PUT /servers/{id}/iso is available, but its payload is not documented',
    );
    expect(insert?.advice).toContain('body: {iso_id: "{iso_id}"}');
    const image = told.findings.find(({ id }) => id === 'probe:take_server_image');
    expect(image?.message).toContain('POST /server-images is available');
    expect(image?.advice).toContain('{server_id: "{server_id}", name: "{name}"}');
    const iso = emulator.emulator.requests.slice(asked).filter(({ url }) => url.endsWith('/iso'));
    expect(iso.map(({ method }) => method)).toEqual(['GET']);
  });

  test('that a token may write is proven by a write under it, and by no other', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const { env, readEnv } = emulator;
    expect((await inProcess(['apply', '--yes'], { cwd, env })).code).toBe(0);

    const level = (told: Told) => told.findings.find(({ id }) => id === 'token_level');
    expect(level(await diagnose(cwd, env))).toMatchObject({
      level: 'ok',
      message: expect.stringMatching(/^the token may write: the API accepted create_network at 2/),
    });
    expect(level(await diagnose(cwd))).toMatchObject({ level: 'unknown' });

    const more = `${oneNetwork}  other: { cidr: 10.21.0.0/24 }\n`;
    writeFileSync(`${cwd}/vdcsync.yaml`, more);
    expect((await inProcess(['apply', '--yes'], { cwd, env: readEnv })).code).not.toBe(0);
    const refused = await diagnose(cwd);
    expect(refused.healthy).toBe(false);
    expect(level(refused)).toMatchObject({
      level: 'error',
      message: expect.stringContaining('with insufficient_scope'),
    });
    expect(level(await diagnose(cwd, env))).toMatchObject({ level: 'ok' });
    for (const name of readdirSync(`${cwd}/.vdcsync`)) {
      const kept = readFileSync(`${cwd}/.vdcsync/${name}`).toString('latin1');
      for (const { VDC_TOKEN: secret } of [env, readEnv]) expect(kept).not.toContain(secret);
    }
  });

  test('reports a pause, and the refusal of a token that writes', async () => {
    const { env, files, ...own } = await served({ speed: 60 });
    const cwd = folderWith({ ...files, 'vdcsync.yaml': `${oneNetwork}ips:\n  one: {}\n` });
    const refusal = (status: number, code: string) =>
      own.emulator.setFaults([faultRule({ path: 'allocate_ip' }, { do: 'answer', status, code })]);
    refusal(403, 'insufficient_privileges');
    expect((await inProcess(['apply', '--yes'], { cwd, env })).code).toBe(3);
    const level = (await diagnose(cwd, env)).findings.find(({ id }) => id === 'token_level');
    expect(level?.message).toMatch(
      /^the token may write: the API accepted create_network at 2.*\. But the API refused allocate_ip at 2/,
    );

    refusal(402, 'payment_required');
    await inProcess(['resolve', 'ips.one', '--abandon'], { cwd, env });
    await inProcess(['apply', '--yes'], { cwd, env });
    const held = (await diagnose(cwd, env)).findings.find(({ id }) => id === 'paused');
    expect(held).toMatchObject({ level: 'warning', advice: expect.stringContaining('then vdcsync apply') });
    expect(held?.message).toMatch(/^new spending is paused since 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d UTC: /);
  });

  test('a fast clock is reported with its speed and the setting', async () => {
    const { readEnv } = await served({ speed: 60 });
    const cwd = folderWith({
      'none.yaml': '',
      'right.yaml': 'time_scale: 60\n',
      'wrong.yaml': 'time_scale: 600\n',
    });
    const clock = async (profile: string) => {
      const { findings } = await diagnose(cwd, { ...readEnv, VDCSYNC_API_PROFILE: profile });
      return findings.find(({ id }) => id === 'clock');
    };
    await setTimeout(300);
    const told = await clock('none.yaml');
    expect(told).toMatchObject({ level: 'error', message: expect.stringMatching(/about (5|6)\d times/) });
    expect(told?.advice).toContain('time_scale: N');
    expect(await clock('right.yaml')).toMatchObject({ level: 'ok' });
    expect(await clock('wrong.yaml')).toMatchObject({ level: 'error' });
  });

  test.each([
    [429, 'info', 'is available'],
    [503, 'unknown', 'does not show whether the operation exists'],
  ])('an answer %i takes no operation for absent', async (status, level, message) => {
    emulator.emulator.setFaults([
      faultRule({ path: 'list_servers', times: 1 }, { do: 'answer', status, retryAfter: 1 }),
    ]);
    const told = await diagnose(folderWith());
    emulator.emulator.setFaults([]);
    const list = told.findings.find(({ id }) => id === 'probe:list_servers');
    expect(list).toMatchObject({ level, message: expect.stringContaining(message) });
  });

  test('a write that the profile has in the wrong place is a warning, and a read, which every look takes, an error', async () => {
    const wrong =
      "operations: {list_servers: {path: /vms}, read_server: {}, eject_iso: {method: DELETE, path: '/vms/{server_id}/iso'}}\n";
    const cwd = folderWith({ 'p.yaml': wrong, 'vdcsync.yaml': oneNetwork });
    const more = { VDCSYNC_API_PROFILE: 'p.yaml' };
    const told = await diagnose(cwd, more);
    expect(levels(told)).toMatchObject({
      'probe:list_servers': 'error',
      'probe:read_server': 'ok',
      'probe:eject_iso': 'warning',
    });
    const planned = await inProcess(['plan'], { cwd, env: { ...emulator.readEnv, ...more } });
    expect(planned.code).toBe(1);
    expect(planned.stderr).toContain(
      'GET /vms answered 404 not_found: The path does not exist; the API profile enables list_servers at this path: correct the path, or remove the operation',
    );
    expect(planned.stderr).not.toContain('trying again');
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
