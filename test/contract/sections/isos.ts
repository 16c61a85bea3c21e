import { describe, expect } from 'vitest';
import { type Data, open, test } from '../contract.ts';

const url = 'https://images.example/rescue.iso';
const statusOf = (iso: Data) => iso.status ?? iso.download_status;

describe('§4 /isos', () => {
  test('§4 ISO: add (202, task, Location), download (§2 status), list, delete; §4.1 an empty list is an array', async ({
    api,
  }) => {
    expect((await api.get('/isos')).data).toEqual([]);
    const answer = await api.post('/isos', { url, name: 'rescue' });
    expect([answer.status, answer.data.name]).toEqual([202, 'rescue']);
    await api.finish(answer);
    const iso = (await api.follow(answer)).data;
    expect(iso).toMatchObject({ id: answer.data.id, name: 'rescue' });
    expect([statusOf(answer.data), statusOf(iso)]).toEqual([expect.any(String), expect.any(String)]);
    expect(statusOf(iso)).not.toBe(statusOf(answer.data));
    expect((await api.get('/isos')).data).toEqual([iso]);
    const deleted = await api.delete(`/isos/${iso.id}`);
    expect([deleted.status, typeof deleted.data]).toEqual([200, 'object']);
    expect((await api.get(`/isos/${iso.id}`)).status).toBe(404);
    expect((await api.get('/isos')).data).toEqual([]);
  });

  test('§4 POST /isos may answer 200 with task null; the name defaults to the file name', async () => {
    const api = await open({ readings: { isoCreate: 'sync' } });
    const answer = await api.post('/isos', { url });
    expect([answer.status, answer.task]).toEqual([200, null]);
    expect((await api.get('/isos')).data).toMatchObject([{ id: answer.data.id, name: 'rescue.iso' }]);
  });

  test('§2 an ISO whose download failed has the reason', async ({ api }) => {
    const answer = await api.post('/isos', { url: 'https://localhost/not-reachable-from-the-internet.iso' });
    expect((await api.ended(answer)).status).toBe('failed');
    const iso = (await api.get(`/isos/${answer.data.id}`)).data;
    expect(iso.error ?? iso.reason ?? iso.failure_reason).toEqual(expect.any(String));
  });

  test('§3.3 an ISO in a server’s drive cannot be deleted', async ({ api }) => {
    const iso = await api.iso();
    const server = await api.server();
    expect((await api.insertIso(server.id, iso.id)).status).toBeLessThan(300);
    expect((await api.delete(`/isos/${iso.id}`)).status).toBe(409);
    expect((await api.get(`/isos/${iso.id}`)).status).toBe(200);
  });

  test('§8 during an image operation, ISO writes wait 3 s, then get 409 server_busy; the same key works later (§8.3)', async () => {
    const api = await open({ submissionMs: 60_000 });
    const iso = await api.post('/isos', { url });
    const add = () => api.waiting(() => api.post('/isos', { url }, { key: 'add-after-busy' }));
    const begunMs = api.now();
    const added = await add();
    expect([added.status, added.code]).toEqual([409, 'server_busy']);
    expect(Number(added.headers['retry-after'])).toBeGreaterThan(0);
    expect(api.now() - begunMs).toBe(3_000);
    const deleted = await api.waiting(() => api.delete(`/isos/${iso.data.id}`));
    expect([deleted.status, deleted.code]).toEqual([409, 'server_busy']);
    expect((await api.get('/isos')).data).toHaveLength(1);
    expect((await api.post('/ips', {})).status).toBe(201);
    expect((await api.post('/isos', { url }, { token: api.otherProjectToken })).status).toBe(202);
    api.advance(61_000);
    const answer = await add();
    expect([answer.status, answer.replayed]).toEqual([202, false]);
  });

  test('§8 a waiting ISO operation succeeds when the other operation is submitted within 3 seconds', async () => {
    const api = await open({ submissionMs: 1_500 });
    await api.post('/isos', { url });
    const begunMs = api.now();
    const answer = await api.waiting(() => api.post('/isos', { url }));
    expect(answer.status).toBe(202);
    expect(api.now() - begunMs).toBe(1_500);
  });

  test('§7 server_busy: taking an image of a server also blocks ISO writes', async () => {
    const api = await open({ submissionMs: 60_000 });
    const server = await api.server();
    expect((await api.takeImage(server.id)).status).toBeLessThan(300);
    expect((await api.waiting(() => api.post('/isos', { url }))).code).toBe('server_busy');
  });
});
