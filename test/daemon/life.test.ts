import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text as streamText } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { folderWith, oneNetwork, shop, vdcsync } from '../cli/run.ts';
import { emulate, live, startDaemon, until } from './support.ts';

const firewallOpen = shop.replace('policy_in: drop', 'policy_in: accept');

describe('daemon: a project kept as its file says', () => {
  test('an edit is carried out, a change elsewhere repaired, a broken file told and not obeyed', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: shop });
    await daemon.until(({ converged }) => converged, 'the first pass converges');
    const [server] = live(api).servers;
    expect(server?.firewall.policyIn).toBe('drop');

    daemon.write(firewallOpen);
    await daemon.until(() => live(api).servers[0]?.firewall.policyIn === 'accept', 'the edit is carried out');

    daemon.write(firewallOpen.replace('cores: 2', 'cores: many'));
    const broken = await daemon.until(({ spec }) => spec.broken.length > 0, 'the error is told');
    expect(broken.spec.broken[0]).toMatchObject({ line: 12, message: expect.stringContaining('cores') });
    api.emulator.mutate({ do: 'set_firewall', server_id: server?.id ?? 0, policy_in: 'drop' });
    await daemon.until(
      () => live(api).servers[0]?.firewall.policyIn === 'accept',
      'the last good spec repairs it',
    );
    expect(daemon.log().filter(({ msg }) => msg === 'the spec is broken')).toHaveLength(1);

    daemon.write(firewallOpen);
    await daemon.until(
      ({ spec, converged }) => spec.broken.length === 0 && converged,
      'the file is good again',
    );
    expect(await daemon.end()).toBe(0);
  });

  test('with drift: report a change elsewhere is told and left', async () => {
    const api = await emulate();
    const spec = shop.replace('max_deletions: 9', 'max_deletions: 9, drift: report');
    const daemon = await startDaemon(api, { spec });
    await daemon.until(({ converged }) => converged, 'it converges');
    api.emulator.mutate({
      do: 'set_firewall',
      server_id: live(api).servers[0]?.id ?? 0,
      policy_in: 'accept',
    });
    const { drift } = await daemon.until(({ condition }) => condition === 'drifting', 'the drift is seen');
    expect(drift.map(({ key }) => key)).toEqual(['servers.web-1.firewall']);
    expect(live(api).servers[0]?.firewall.policyIn).toBe('accept');
  });

  test('only observing, with a token that may only read, nothing is written', async () => {
    const api = await emulate();
    const token = api.projects[0]?.tokens.read ?? '';
    const daemon = await startDaemon(api, { spec: shop, token, args: ['--mode', 'observe'] });
    const { operations } = await daemon.until(({ condition }) => condition === 'drifting', 'it reports');
    expect(operations.map(({ id }) => id)).toContain('create:servers.web-1');
    expect(api.emulator.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  test('an emptied file is blocked by the guards, and what it made stays', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: shop });
    await daemon.until(({ converged }) => converged, 'it converges');
    daemon.write('');
    await daemon.until(({ spec }) => spec.broken.length > 0, 'an empty file is no spec');
    daemon.write('version: 1\nproject: {id: 4711}\nsettings: {prune: true, max_deletions: 1}\n');
    const { blocked } = await daemon.until(
      ({ condition }) => condition === 'blocked',
      'mass deletion is blocked',
    );
    expect(blocked.map(({ code }) => code)).toContain('max_deletions');
    expect(live(api).servers).toHaveLength(1);
  });

  test('while the project is not paid, spending waits and deletions go on; it resumes by itself', async () => {
    const api = await emulate();
    const both = `${oneNetwork.replace('project: { id: 4711 }', 'project: { id: 4711 }\nsettings: { prune: true }')}`;
    const daemon = await startDaemon(api, { spec: both });
    await daemon.until(({ converged }) => converged, 'it converges');
    api.emulator.mutate({ do: 'set_standing', standing: 'suspended' });
    daemon.write(both.replace(/networks:\n.*\n/, 'ips:\n  web: {}\n'));
    await daemon.until(({ holds }) => holds.some(({ scope }) => scope === 'spending'), 'spending is held');
    await until(
      async () => live(api).networks.filter(({ name }) => name === 'backend').length,
      (count) => count === 0,
      'the deletion goes on',
    );
    const sends = () =>
      api.emulator.requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/ips'));
    const before = sends().length;
    const { passes } = await daemon.until(() => true, 'any');
    await daemon.until((project) => project.passes > passes + 2, 'three more passes');
    expect(sends().length).toBe(before);
    api.emulator.mutate({ do: 'set_standing', standing: 'active' });
    await daemon.until(({ converged }) => converged, 'it resumes after payment');
    expect(live(api).ips).toHaveLength(1);
  });

  test('a token that is refused is not tried in a loop, and a new one is taken at once', async () => {
    const api = await emulate();
    const { readWrite = '', member = '' } = api.projects[0]?.tokens ?? {};
    api.emulator.mutate({ do: 'revoke_token', token: readWrite });
    const daemon = await startDaemon(api, {
      ...{ spec: oneNetwork, args: ['--interval', '2h'] },
      env: { VDC_TOKEN: '', VDC_TOKEN_FILE: 'token' },
      folder: folderWith({ token: readWrite }),
    });
    await daemon.until(({ condition }) => condition === 'unauthorized', 'it is refused');
    expect(api.emulator.requests.length).toBeLessThan(5);
    writeFileSync(`${daemon.folder}/token`, `${member}\n`);
    await daemon.until(({ converged }) => converged, 'the new token is taken');
  });
});

describe('daemon: what takes long', () => {
  test('an ISO that is being loaded for hours does not hold up an edit, nor a restart', async () => {
    const stuck = faultRule({ path: 'add_iso' }, { do: 'task', outcome: 'stuck' });
    const api = await emulate({ faults: [stuck] });
    const iso = 'isos:\n  rescue: { url: "https://mirror.example.com/rescue.iso" }\n';
    const daemon = await startDaemon(api, { spec: `${oneNetwork}${iso}` });
    await until(
      async () => live(api).isos.length,
      (count) => count === 1,
      'it is being loaded',
    );
    const more = oneNetwork.replace('networks:', 'networks:\n  extra: { cidr: 10.30.0.0/24 }');
    daemon.write(`${more}${iso}`);
    const has = (name: string) => async () => live(api).networks.some((each) => each.name === name);
    await until(has('extra'), Boolean, 'the edit is carried out');
    await daemon.end();
    const next = await startDaemon(api, {
      folder: daemon.folder,
      spec: `${more}  third: { cidr: 10.40.0.0/24 }\n${iso}`,
    });
    await until(has('third'), Boolean, 'so it is after a restart');
    const { condition } = await next.until(() => true, 'any');
    expect(condition).not.toBe('failing');
    expect(live(api).isos).toHaveLength(1);
  });

  test('a server that waits for graphics cards keeps nothing else waiting; it is told when some are found', async () => {
    const api = await emulate();
    const notices = await receiver();
    api.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 0 });
    const gpu =
      '  gpu-1:\n    { server_type: gpu-fixed, gpu_package: l40s-1, image: ubuntu-24.04, ssh_keys: [101] }\n';
    const env = { VDCSYNC_NOTIFY_URL: notices.url };
    const daemon = await startDaemon(api, { spec: `${shop}${gpu}`, env });
    await daemon.until(
      ({ in_flight: flight }) =>
        flight.some(({ key, step }) => key === 'servers.gpu-1' && step === 'waiting'),
      'it waits',
    );
    await until(
      async () => live(api).servers.find(({ name }) => name === 'web-1')?.firewall.policyIn,
      (policy) => policy === 'drop',
      'the other server is whole',
    );
    const [web] = live(api).servers;
    api.emulator.mutate({ do: 'set_firewall', server_id: web?.id ?? 0, policy_in: 'accept' });
    await until(
      async () => live(api).servers[0]?.firewall.policyIn,
      (policy) => policy === 'drop',
      'drift is repaired beside it',
    );
    expect(live(api).servers).toHaveLength(1);
    api.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 1 });
    await daemon.until(({ converged }) => converged, 'it converges');
    expect(notices.events()).toContain('capacity_found');
    expect(live(api).servers).toHaveLength(2);
  });
});

/** Takes notifications. */
async function receiver() {
  const bodies: { event: string }[] = [];
  const server = createServer(async (incoming, outgoing) => {
    bodies.push(JSON.parse(await streamText(incoming)) as { event: string });
    outgoing.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, events: () => bodies.map(({ event }) => event) };
}

describe('daemon: what only a person can settle', () => {
  test('adopt and resolve work while it runs, and it goes on from there at once', async () => {
    const api = await emulate();
    api.emulator.mutate({ do: 'add_ip' });
    const daemon = await startDaemon(api, { spec: shop, args: ['--interval', '10h'] });
    const { blocked } = await daemon.until(({ condition }) => condition === 'blocked', 'it asks');
    expect(blocked.map(({ code }) => code)).toContain('unmanaged_resources');
    const [ip] = live(api).ips;
    const call = { cwd: daemon.folder };
    const adopted = await vdcsync(['adopt', 'ips.web', String(ip?.id)], call);
    expect([adopted.code, adopted.stdout]).toEqual([0, `ips.web is bound to ${ip?.id}.\n`]);
    await daemon.until(({ converged }) => converged, 'it goes on');
    expect(live(api).ips).toHaveLength(1);
    const nothing = await vdcsync(['resolve', 'servers.web-1', '--absent'], call);
    expect([nothing.code, nothing.stderr]).toEqual([64, expect.stringContaining('has no unsettled write')]);
    await daemon.end();
    expect(existsSync(join(daemon.folder, '.vdcsync/control.sock'))).toBe(false);
  });
});

describe('daemon: many projects in one process', () => {
  test('each file is a project with a token and a state of its own; a broken one holds up no other', async () => {
    const api = await emulate({
      projects: [
        { id: 1, name: 'one' },
        { id: 2, name: 'two' },
      ],
    });
    const [one, two] = api.projects.map(({ tokens }) => tokens.readWrite);
    const spec = (id: number, token: string) => oneNetwork.replace('{ id: 4711 }', `{ id: ${id}, ${token} }`);
    const folder = folderWith({
      'specs/one.yaml': spec(1, 'token_env: TOKEN_ONE'),
      'specs/two.yaml': spec(2, 'token_file: two.token'),
      'specs/broken.yaml': 'version: 2\n',
      'two.token': two ?? '',
    });
    const daemon = await startDaemon(api, {
      ...{ folder, args: ['-f', 'specs'], file: 'specs/three.yaml' },
      env: { VDC_TOKEN: '', TOKEN_ONE: one ?? '' },
    });
    await daemon.until(
      (_, { projects }) => projects.length === 2 && projects.every((each) => each.converged),
      'both converge',
    );
    expect((await daemon.status()).source.broken.map(({ file }) => file)).toContain('specs/broken.yaml');
    expect(readdirSync(join(folder, '.vdcsync')).sort()).toEqual(['1', '2']);
    rmSync(join(folder, 'specs/one.yaml'));
    const gone = await daemon.until(({ spec: { broken } }) => broken.length > 0, 'its file is missed');
    expect(gone.spec.broken[0]?.message).toContain('nothing is deleted');
    expect(api.emulator.world.projects.map(({ networks }) => networks.length)).toEqual([2, 2]);
  });
});

describe('daemon: life and death', () => {
  test('SIGTERM in the middle of a write ends it within seconds, and the next start goes on', async () => {
    const slow = faultRule({ method: 'POST', path: '/servers' }, { do: 'slow', ms: 60_000 });
    const api = await emulate({ faults: [slow] });
    const daemon = await startDaemon(api, { spec: shop });
    await daemon.until((_, { projects }) => projects[0] !== undefined, 'it works');
    await until(
      async () =>
        api.emulator.requests.some(({ method, url }) => method === 'POST' && url.endsWith('/servers')) ||
        live(api).servers.length > 0,
      Boolean,
      'the server is being created',
    );
    const startedAt = performance.now();
    expect(await daemon.end()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    api.emulator.setFaults([]);
    const next = await startDaemon(api, { folder: daemon.folder });
    await next.until(({ converged }) => converged, 'it goes on');
    expect(live(api).servers).toHaveLength(1);
    expect(live(api).ips).toHaveLength(1);
  });

  test('kill -9 loses nothing', async () => {
    const api = await emulate();
    // With a lost answer only a project that is nobody else's lets the difference of two lists decide.
    const spec = shop.replace('max_deletions: 9', 'max_deletions: 9, exclusive: true');
    const daemon = await startDaemon(api, { spec });
    await until(
      async () => live(api).servers.length,
      (count) => count > 0,
      'a server is there',
    );
    await daemon.end('SIGKILL');
    const next = await startDaemon(api, { folder: daemon.folder });
    await next.until(({ converged }) => converged, 'it goes on');
    expect([live(api).servers.length, live(api).ips.length]).toEqual([1, 1]);
  });

  test('a second one on the same state waits, alive and not ready, and takes over', async () => {
    const api = await emulate();
    const first = await startDaemon(api, { spec: oneNetwork });
    await first.until(({ converged }) => converged, 'the first works');
    const second = await startDaemon(api, { folder: first.folder });
    await second.until(({ waiting_for: holder }) => holder !== null, 'the second waits');
    expect((await fetch(`${second.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${second.url}/readyz`)).status).toBe(503);
    await first.end('SIGKILL');
    await second.until(({ converged }) => converged, 'the second takes over');
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);
  });

  test('SIGHUP has it look again', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: oneNetwork, args: ['--interval', '10h'] });
    const { passes } = await daemon.until(({ converged }) => converged, 'it converges');
    daemon.child.kill('SIGHUP');
    await daemon.until(
      (project) => project.passes > passes && project.last_pass?.triggers[0] === 'signal',
      'it looks',
    );
  });
});
