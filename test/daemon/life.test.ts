import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { folderWith, oneNetwork, shop } from '../cli/run.ts';
import { emulate, live, startDaemon, until } from './support.ts';

describe('src/daemon/project/project.ts: a project kept as its spec says', () => {
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
    await daemon.until(
      ({ daemon: { pauses } }) => pauses.some(({ scope }) => scope === 'spending'),
      'spending is held',
    );
    await until(
      async () => live(api).networks.filter(({ name }) => name === 'backend').length,
      (count) => count === 0,
      'the deletion goes on',
    );
    const sends = () =>
      api.emulator.requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/ips'));
    const before = sends().length;
    const {
      daemon: { reconciliations },
    } = await daemon.until(() => true, 'any');
    await daemon.until(
      (project) => project.daemon.reconciliations > reconciliations + 2,
      'three more passes',
    );
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

describe('src/daemon/project/project.ts: a token that is revoked', () => {
  test('is told once, with what to do, and the process stays ready', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: oneNetwork, args: ['--interval', '1m'] });
    await daemon.until(({ converged }) => converged, 'it converges');
    const before = daemon.log().length;
    api.emulator.mutate({ do: 'revoke_token', token: api.projects[0]?.tokens.readWrite ?? '' });
    const {
      daemon: { reconciliations },
    } = await daemon.until(({ condition }) => condition === 'unauthorized', 'it is refused');
    await daemon.until(
      (project) => project.daemon.reconciliations > reconciliations + 2,
      'three more passes',
    );

    const notified = daemon
      .log()
      .slice(before)
      .filter(({ level }) => level !== 'info');

    expect(notified).toMatchObject([
      { level: 'error', msg: 'reconciliation failed', status: 401 },
      {
        level: 'warn',
        condition: 'unauthorized',
        error: { message: expect.stringContaining('401') },
        resolve: expect.stringContaining('VDC_TOKEN_FILE'),
      },
    ]);
    expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);
  });
});

describe('src/daemon/project/project.ts: life and death', () => {
  test('SIGTERM between a server and its firewall ends the daemon once the firewall is there', async () => {
    // A stopped run has a minute for the firewall: 6 s here, of which the creation takes 1.5 s.
    const slower = { speed: 10 };
    const api = await emulate({ ...slower, durations: { create_server: [15_000, 15_000] } });
    const spec = `version: 1
project: {id: ${api.projects[0]?.id}}
servers: {web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop, rules: []}, backup: {max_age: 24h}}}
`;
    const daemon = await startDaemon(api, { spec, ...slower });
    await until(async () => live(api).servers.length, Boolean, 'the server is being created');

    expect(await daemon.end()).toBe(0);

    expect(live(api).servers).toMatchObject([{ firewall: { enabled: true } }]);
    expect(live(api).backups).toEqual([]);
  });

  test('what became of a lost write is found out, pass by pass, however short the interval is', async () => {
    const lost = faultRule({ method: 'POST', path: '/networks', times: 1 }, { do: 'reset', effect: 'none' });
    const api = await emulate({ faults: [lost] });
    const daemon = await startDaemon(api, { spec: oneNetwork, args: ['--interval', '1m'] });
    await daemon.until(
      ({ converged }) => converged,
      'it is sent again, once it is seen to have had no effect',
    );
    expect(live(api).networks.filter(({ name }) => name === 'backend')).toHaveLength(1);
  });

  test('a second one on the same state waits, alive and not ready, and takes over', async () => {
    const api = await emulate();
    const first = await startDaemon(api, { spec: oneNetwork });
    await first.until(({ converged }) => converged, 'the first works');
    const token = 'approve-canary-of-some-length';
    const second = await startDaemon(api, { folder: first.folder, env: { VDCSYNC_APPROVE_TOKEN: token } });
    await second.until(({ daemon: { waiting_for: holder } }) => holder !== null, 'the second waits');
    expect((await fetch(`${second.url}/healthz`)).status).toBe(200);
    for (const path of ['/', '/healthz', '/readyz', '/status', '/metrics']) {
      const wrong = await fetch(`${second.url}${path}`, { method: 'POST' });
      expect([path, wrong.status, wrong.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD']);
    }
    expect((await fetch(`${second.url}/nothing`, { method: 'POST' })).status).toBe(404);
    const headers = { authorization: `Bearer ${token}` };
    const approval = { method: 'POST', headers, body: '{"digest": "0123456789ab"}' };
    expect((await fetch(`${second.url}/approve`, approval)).status).toBe(409);
    expect((await fetch(`${second.url}/readyz`)).status).toBe(503);
    await first.end('SIGKILL');
    await second.until(({ converged }) => converged, 'the second takes over');
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);
  });
});
