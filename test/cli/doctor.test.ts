import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import { newFolder } from '../support/folders.ts';
import { contentsOf, oneNetwork, type Served, serve, served } from './run.ts';
import { emulated, Workspace } from './workspace.ts';

const profile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');

let emulator: Served;

beforeAll(async () => {
  emulator = await serve({ profile: loadProfile(profile.replace('reads: 60', 'reads: 6000')) });
  emulator.emulator.mutate({ do: 'add_server', name: 'one' });
});

afterAll(() => emulator.close());

interface Finding {
  readonly id: string;
  readonly level: string;
  readonly message: string;
  readonly advice: string | null;
}

/** The findings of `doctor` by their ids, with a token that may only read. */
async function diagnose(place: Workspace) {
  const { code, stdout } = await place.run('doctor --format json');
  const { healthy, findings }: { healthy: boolean; findings: readonly Finding[] } = JSON.parse(stdout);
  const byId = new Map(findings.map((each) => [each.id, each]));
  return {
    code,
    healthy,
    findings,
    byId,
    levels: Object.fromEntries(findings.map(({ id, level }) => [id, level])),
  };
}

const placed = (files: Record<string, string> = {}, env: Record<string, string> = {}) =>
  new Workspace(files, { ...emulator.readEnv, ...env });

describe('src/cli/commands/doctor.ts', () => {
  test('probes on a server with a backup, also where another server comes first', async () => {
    const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const first = `version: 1\nproject: {id: 4711}\nservers:\n  a: {${size}, public_ipv4: {new: true}}\n`;
    const place = emulated(first);
    await place.out('apply --yes');
    place.write('vdcsync.yaml', `${first}  b: {${size}, public_ipv4: {new: true}, backup: {max_age: 24h}}\n`);
    await place.out('apply --yes');
    const { byId } = await diagnose(place);
    expect(byId.get('probe:delete_backup')?.message).not.toContain('was not tried');
  });

  test('finds the operations of the API with GET alone, and changes nothing', async () => {
    const place = placed({ 'vdcsync.yaml': oneNetwork });
    const before = contentsOf(place.cwd);
    const { byId, ...told } = await diagnose(place);
    expect(told).toMatchObject({ code: 0, healthy: true });
    expect(told.levels).toMatchObject({ api: 'ok', project: 'ok', clock: 'ok', token_level: 'unknown' });
    expect(byId.get('probe:list_servers')?.advice).toContain(
      'operations: {list_servers: {method: GET, path: "/servers"}}',
    );
    const card = byId.get('probe:remove_network_interface');
    expect(card?.message).toContain('is available, but not documented');
    expect(new Set(emulator.emulator.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
    expect(contentsOf(place.cwd)).toEqual(before);
  });

  test('reports the documented operations without a payload, and requests each path once', async () => {
    const asked = emulator.emulator.requests.length;
    const { byId } = await diagnose(placed());
    const insert = byId.get('probe:insert_iso');
    expect(insert?.message).toContain(
      'PUT /servers/{id}/iso is available, but its payload is not documented',
    );
    expect(insert?.advice).toContain('body: {iso_id: "{iso_id}"}');
    const image = byId.get('probe:take_server_image');
    expect(image?.message).toContain('POST /server-images is available');
    expect(image?.advice).toContain('{server_id: "{server_id}", name: "{name}"}');
    const iso = emulator.emulator.requests.slice(asked).filter(({ url }) => url.endsWith('/iso'));
    expect(iso.map(({ method }) => method)).toEqual(['GET']);
  });

  test('only a write under a token shows that the token can write', async () => {
    const { env, readEnv } = emulator;
    const state = join(newFolder('vdcsync-state-'), 'state.db');
    const [reading, writing] = [readEnv, env].map((own) => {
      return new Workspace({ 'vdcsync.yaml': oneNetwork }, { ...own, VDCSYNC_STATE: state });
    }) as [Workspace, Workspace];
    await writing.out('apply --yes');
    const level = async (place: Workspace) => (await diagnose(place)).byId.get('token_level');
    expect(await level(writing)).toMatchObject({
      level: 'ok',
      message: expect.stringMatching(/^the token may write: the API accepted create_network at 2/),
    });
    expect(await level(reading)).toMatchObject({ level: 'unknown' });
    reading.write('vdcsync.yaml', `${oneNetwork}  other: { cidr: 10.21.0.0/24 }\n`);
    expect(await reading.code('apply --yes')).not.toBe(0);
    const refused = await diagnose(reading);
    expect(refused.healthy).toBe(false);
    expect(refused.byId.get('token_level')).toMatchObject({
      level: 'error',
      message: expect.stringContaining('with insufficient_scope'),
    });
    expect(await level(writing)).toMatchObject({ level: 'ok' });
    for (const name of readdirSync(dirname(state))) {
      const kept = readFileSync(join(dirname(state), name), 'latin1');
      for (const { VDC_TOKEN: secret } of [env, readEnv]) expect(kept).not.toContain(secret);
    }
  });

  test('reports a pause, and a refused operation of a token that can write', async () => {
    const { env, files, ...own } = await served({ speed: 60 });
    const place = new Workspace({ ...files, 'vdcsync.yaml': `${oneNetwork}ips:\n  one: {}\n` }, env);
    const refusal = (status: number, code: string) =>
      own.emulator.setFaults([faultRule({ path: 'allocate_ip' }, { do: 'answer', status, code })]);
    refusal(403, 'insufficient_privileges');
    await place.refused(3, 'apply --yes');
    expect((await diagnose(place)).byId.get('token_level')?.message).toMatch(
      /^the token may write: the API accepted create_network at 2.*\. But the API refused allocate_ip at 2/,
    );
    refusal(402, 'payment_required');
    await place.run('resolve ips.one --abandon');
    await place.run('apply --yes');
    const held = (await diagnose(place)).byId.get('paused');
    expect(held).toMatchObject({ level: 'warning', advice: expect.stringContaining('then vdcsync apply') });
    expect(held?.message).toMatch(/^new spending is paused since 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d UTC: /);
  });

  test('reports a fast clock with its speed and the setting', async () => {
    const { readEnv } = await served({ speed: 60 });
    const clock = async (profile: string) => {
      const place = placed({ 'p.yaml': profile }, { ...readEnv, VDCSYNC_API_PROFILE: 'p.yaml' });
      return (await diagnose(place)).byId.get('clock');
    };
    await setTimeout(300);
    const told = await clock('');
    expect(told).toMatchObject({ level: 'error', message: expect.stringMatching(/about (5|6)\d times/) });
    expect(told?.advice).toContain('time_scale: N');
    expect(await clock('time_scale: 60\n')).toMatchObject({ level: 'ok' });
    expect(await clock('time_scale: 600\n')).toMatchObject({ level: 'error' });
  });

  test.each([
    [429, 'info', 'is available'],
    [503, 'unknown', 'does not show whether the operation exists'],
  ])('an answer %i does not count as a missing operation', async (status, level, message) => {
    emulator.emulator.setFaults([
      faultRule({ path: 'list_servers', times: 1 }, { do: 'answer', status, retryAfter: 1 }),
    ]);
    const { byId } = await diagnose(placed());
    emulator.emulator.setFaults([]);
    const list = byId.get('probe:list_servers');
    expect(list).toMatchObject({ level, message: expect.stringContaining(message) });
  });

  test('a wrong path in the profile is a warning for a write, and an error for a read', async () => {
    const wrong =
      "operations: {list_servers: {path: /vms}, read_server: {}, eject_iso: {method: DELETE, path: '/vms/{server_id}/iso'}}\n";
    const place = placed({ 'p.yaml': wrong, 'vdcsync.yaml': oneNetwork }, { VDCSYNC_API_PROFILE: 'p.yaml' });
    expect((await diagnose(place)).levels).toMatchObject({
      'probe:list_servers': 'error',
      'probe:read_server': 'ok',
      'probe:eject_iso': 'warning',
    });
    const planned = await place.refused(1, 'plan');
    expect(planned).toContain(
      'GET /vms answered 404 not_found: The path does not exist; the API profile enables list_servers at this path: correct the path, or remove the operation',
    );
    expect(planned).not.toContain('trying again');
  });

  test.each<[string, Record<string, string>, Record<string, string>, string]>([
    ['another project', { 'vdcsync.yaml': 'version: 1\nproject: {id: 9}\n' }, {}, 'project'],
    ['an unknown token', {}, { VDC_TOKEN: 'nobody' }, 'token'],
    ['an unreachable API', {}, { VDC_BASE_URL: 'http://127.0.0.1:1/v1' }, 'api'],
    ['an invalid file', { 'vdcsync.yaml': 'version: 2\n' }, {}, 'spec'],
    ['an invalid profile', { 'p.yaml': 'limits: 3\n' }, { VDCSYNC_API_PROFILE: 'p.yaml' }, 'profile'],
    ['a damaged state', { '.vdcsync/state.db': 'no database' }, {}, 'state'],
  ])('reports %s as an error with a remedy, and exits with 1', async (_name, files, env, id) => {
    const { code, healthy, findings } = await diagnose(placed(files, env));
    expect({ code, healthy }).toEqual({ code: 1, healthy: false });
    expect(findings.filter(({ level }) => level === 'error').map((each) => each.id)).toContain(id);
  });
});
