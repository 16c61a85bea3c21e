import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { folderWith, oneNetwork, shop } from '../cli/run.ts';
import { emulate, live, startConverged, startDaemon } from './support.ts';

describe('src/daemon/project/project.ts: specs and tokens', () => {
  test('guards block an emptied spec, and its resources stay', async () => {
    const { api, daemon } = await startConverged(shop);
    daemon.write('');
    await daemon.until(({ spec }) => spec.broken.length > 0);
    daemon.write('version: 1\nproject: {id: 4711}\nsettings: {prune: true, max_deletions: 1}\n');
    const { blocked } = await daemon.until(({ condition }) => condition === 'blocked');
    expect(blocked.map(({ code }) => code)).toContain('max_deletions');
    expect(live(api).servers).toHaveLength(1);
  });

  test('a refused token is not retried in a loop, and a new token is used at once', async () => {
    const api = await emulate();
    const { readWrite = '', member = '' } = api.projects[0]?.tokens ?? {};
    api.emulator.mutate({ do: 'revoke_token', token: readWrite });
    const daemon = await startDaemon(api, {
      ...{ spec: oneNetwork, args: ['--interval', '2h'] },
      env: { VDC_TOKEN: '', VDC_TOKEN_FILE: 'token' },
      folder: folderWith({ token: readWrite }),
    });
    await daemon.until(({ condition }) => condition === 'unauthorized');
    expect(api.emulator.requests.length).toBeLessThan(5);
    writeFileSync(`${daemon.folder}/token`, `${member}\n`);
    await daemon.until(({ converged }) => converged);
  });
});

describe('src/daemon/project/project.ts: lost writes and a second process', () => {
  test('resolves a lost write over several reconciliations, also with a short interval', async () => {
    const lost = faultRule({ method: 'POST', path: '/networks', times: 1 }, { do: 'reset', effect: 'none' });
    const { api } = await startConverged(oneNetwork, { faults: [lost], args: ['--interval', '1m'] });
    expect(live(api).networks.filter(({ name }) => name === 'backend')).toHaveLength(1);
  });

  test('a second daemon on the same state waits, alive and not ready, and takes over', async () => {
    const { api, daemon: first } = await startConverged(oneNetwork);
    const token = 'approve-canary-of-some-length';
    const second = await startDaemon(api, { folder: first.folder, env: { VDCSYNC_APPROVE_TOKEN: token } });
    await second.until(({ daemon: { waiting_for: holder } }) => holder !== null);
    expect((await fetch(`${second.url}/healthz`)).status).toBe(200);
    for (const path of ['/', '/healthz', '/readyz', '/status', '/metrics']) {
      const wrong = await fetch(`${second.url}${path}`, { method: 'POST' });
      expect([path, wrong.status, wrong.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD']);
    }
    expect((await fetch(`${second.url}/nothing`, { method: 'POST' })).status).toBe(404);
    const headers = { authorization: `Bearer ${token}` };
    const approval = { method: 'POST', headers, body: '{"digest": "0123456789ab"}' };
    expect((await fetch(`${second.url}/approve`, approval)).status).toBe(409);
    expect(await second.ready()).toBe(false);
    await first.end('SIGKILL');
    await second.until(({ converged }) => converged);
    expect(await second.ready()).toBe(true);
  });
});
