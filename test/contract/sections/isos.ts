import { describe, expect } from 'vitest';
import { type Data, open, test } from '../contract.ts';

const URL_OF_ISO = 'https://images.example/rescue.iso';

describe('§4 /isos', () => {
  test('§4 POST /isos answers 202 with the ISO and a task, and Location leads to it', async ({ api }) => {
    const answer = await api.post('/isos', { url: URL_OF_ISO, name: 'rescue' });
    expect(answer.status).toBe(202);
    expect(answer.data).toMatchObject({ name: 'rescue' });
    await api.finish(answer);
    expect((await api.follow(answer)).data).toMatchObject({ id: answer.data.id, name: 'rescue' });
  });

  test('§4 POST /isos may answer 200 with task null', async () => {
    const api = await open({ readings: { isoCreate: 'sync' } });
    const answer = await api.post('/isos', { url: URL_OF_ISO });
    expect([answer.status, answer.task]).toEqual([200, null]);
    expect((await api.get('/isos')).data.map((iso) => iso.id)).toEqual([answer.data.id]);
  });

  test('§4 POST /isos: name is optional and defaults to the file name', async ({ api }) => {
    expect((await api.post('/isos', { url: URL_OF_ISO })).data.name).toBe('rescue.iso');
  });

  test('§4 POST /isos: url is required', async ({ api }) => {
    const answer = await api.post('/isos', { name: 'rescue' });
    expect([answer.status, answer.code, answer.invalidParams]).toEqual([422, 'invalid_request', ['url']]);
  });

  test('§8 ISO url has 8 to 2048 characters', async ({ api }) => {
    const longest = `https://images.example/${'i'.repeat(2048 - 23)}`;
    expect(longest).toHaveLength(2048);
    expect((await api.post('/isos', { url: longest, name: 'long' })).status).toBe(202);
    for (const url of ['http://', `${longest}i`, '']) {
      const answer = await api.post('/isos', { url, name: 'wrong' });
      expect([url.length, answer.status, answer.invalidParams]).toEqual([url.length, 422, ['url']]);
    }
    // Eight characters are long enough: whatever it answers, the length is not what it complains about.
    const shortest = await api.post('/isos', { url: 'http://a', name: 'short' });
    expect(JSON.stringify(shortest.problem?.invalid_params ?? [])).not.toMatch(/at least|character/);
  });

  test('§8 ISO name has 1 to 50 characters, measured after trimming (§4.3)', async ({ api }) => {
    expect((await api.post('/isos', { url: URL_OF_ISO, name: 'n' })).status).toBe(202);
    expect((await api.post('/isos', { url: URL_OF_ISO, name: ` ${'n'.repeat(50)}\t` })).status).toBe(202);
    for (const name of ['', '   ', 'n'.repeat(51), 7, null]) {
      const answer = await api.post('/isos', { url: URL_OF_ISO, name });
      expect([name, answer.status, answer.invalidParams]).toEqual([name, 422, ['name']]);
    }
  });

  test('§4 GET /isos lists the ISOs, empty at first', async ({ api }) => {
    expect((await api.get('/isos')).data).toEqual([]);
    const iso = await api.iso();
    expect((await api.get('/isos')).data).toMatchObject([{ id: iso.id, name: iso.name }]);
  });

  test('§2 an ISO has a download status; it moves on when the task is done', async ({ api }) => {
    const answer = await api.post('/isos', { url: URL_OF_ISO });
    const statusOf = (iso: Data) => iso.status ?? iso.download_status;
    expect(statusOf(answer.data)).toEqual(expect.any(String));
    await api.finish(answer);
    const after = (await api.get(`/isos/${answer.data.id}`)).data;
    expect(statusOf(after)).toEqual(expect.any(String));
    expect(statusOf(after)).not.toBe(statusOf(answer.data));
  });

  test('§2 if the download failed, the ISO has the reason', async ({ api }) => {
    const answer = await api.post('/isos', { url: 'https://localhost/not-reachable-from-the-internet.iso' });
    expect((await api.ended(answer)).status).toBe('failed');
    const iso = (await api.get(`/isos/${answer.data.id}`)).data;
    expect(iso.error ?? iso.reason ?? iso.failure_reason).toEqual(expect.any(String));
  });

  test('§2 ISO ids are `uiso-` and 1 to 10 digits; another form never answers an ISO', async ({ api }) => {
    expect((await api.iso()).id).toMatch(/^uiso-[0-9]{1,10}$/);
    for (const id of ['1', 'uiso-', 'uiso-12345678901', 'iso-1', 'uiso-1x']) {
      expect([400, 404, 422]).toContain((await api.get(`/isos/${id}`)).status);
      expect([400, 404, 422]).toContain((await api.delete(`/isos/${id}`)).status);
    }
    expect((await api.get('/isos/uiso-9876543210')).status).toBe(404);
  });

  test('§4 DELETE /isos/{id} answers 200 with an object; then the ISO is gone', async ({ api }) => {
    const iso = await api.iso();
    const answer = await api.delete(`/isos/${iso.id}`);
    expect([answer.status, typeof answer.data]).toEqual([200, 'object']);
    expect((await api.get(`/isos/${iso.id}`)).status).toBe(404);
    expect((await api.get('/isos')).data).toEqual([]);
  });

  test('§3.3 an ISO currently in a server’s drive cannot be deleted', async ({ api }) => {
    const iso = await api.iso();
    const server = await api.server();
    expect((await api.insertIso(server.id, iso.id)).status).toBeLessThan(300);
    expect((await api.delete(`/isos/${iso.id}`)).status).toBe(409);
    expect((await api.get(`/isos/${iso.id}`)).status).toBe(200);
  });

  test('§8 a parallel image operation makes ISO add and delete wait up to 3 seconds, then 409 server_busy with Retry-After', async () => {
    const api = await open({ submissionMs: 60_000 });
    const iso = await api.post('/isos', { url: URL_OF_ISO });
    const begunMs = api.now();
    const added = await api.waiting(() => api.post('/isos', { url: URL_OF_ISO }));
    expect([added.status, added.code]).toEqual([409, 'server_busy']);
    expect(Number(added.headers['retry-after'])).toBeGreaterThan(0);
    expect(api.now() - begunMs).toBe(3_000);
    const deleted = await api.waiting(() => api.delete(`/isos/${iso.data.id}`));
    expect([deleted.status, deleted.code]).toEqual([409, 'server_busy']);
    expect((await api.get('/isos')).data).toHaveLength(1);
  });

  test('§8 an ISO operation that waits goes through when the other is submitted within 3 seconds', async () => {
    const api = await open({ submissionMs: 1_500 });
    await api.post('/isos', { url: URL_OF_ISO });
    const begunMs = api.now();
    const answer = await api.waiting(() => api.post('/isos', { url: URL_OF_ISO }));
    expect(answer.status).toBe(202);
    expect(api.now() - begunMs).toBe(1_500);
  });

  test('§8 the wait is for an image operation of the same project: another project’s goes through', async () => {
    const api = await open({ submissionMs: 60_000 });
    await api.post('/isos', { url: URL_OF_ISO });
    const other = await api.post('/isos', { url: URL_OF_ISO }, { token: api.otherProjectToken });
    expect(other.status).toBe(202);
  });

  test('§7 server_busy: an image taken from a server holds back ISOs, too', async () => {
    const api = await open({ submissionMs: 60_000 });
    const server = await api.server();
    expect((await api.takeImage(server.id)).status).toBeLessThan(300);
    expect((await api.waiting(() => api.post('/isos', { url: URL_OF_ISO }))).code).toBe('server_busy');
  });

  test('§8 only image operations wait', async () => {
    const api = await open({ submissionMs: 60_000 });
    await api.post('/isos', { url: URL_OF_ISO });
    expect((await api.get('/isos')).status).toBe(200);
    expect((await api.post('/ips', {})).status).toBe(201);
  });

  test('§8.3 after 409 server_busy the same key goes through', async () => {
    const api = await open({ submissionMs: 60_000 });
    await api.post('/isos', { url: URL_OF_ISO });
    const busy = await api.waiting(() => api.post('/isos', { url: URL_OF_ISO }, { key: 'add-after-busy' }));
    expect(busy.code).toBe('server_busy');
    api.advance(61_000);
    const answer = await api.post('/isos', { url: URL_OF_ISO }, { key: 'add-after-busy' });
    expect([answer.status, answer.replayed]).toEqual([202, false]);
  });
});
