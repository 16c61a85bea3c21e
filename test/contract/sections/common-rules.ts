import { describe, expect } from 'vitest';
import { document, open, reads, test, writes } from '../contract.ts';

const IDS: Record<string, string> = { '/isos/{id}': 'uiso-1', '/tasks/{id}': 'no-such-task' };
const concrete = (path: string) => path.replace('{id}', IDS[path] ?? '1');

describe('§4 common rules', () => {
  test('§4.2 every response has an X-Request-Id of its own; §7 request_id is the same', async ({ api }) => {
    const answers = [await api.get('/project'), await api.get('/nowhere'), await api.get('/ips/987654')];
    const ids = answers.map((answer) => answer.headers['x-request-id']);
    expect(new Set(ids).size).toBe(3);
    expect(ids.every(Boolean)).toBe(true);
  });

  test.each(
    writes,
  )('§4.3 form-encoded bodies are refused with 415, declared on every write operation: $id', async (operation) => {
    const api = await open();
    const answer = await api.send(operation.method, concrete(operation.path), {
      raw: 'name=backend&cidr=10.0.0.0%2F24',
      type: 'application/x-www-form-urlencoded',
    });
    expect(answer.status).toBe(415);
  });

  test('§4.3 multipart bodies are form-encoded too', async ({ api }) => {
    const raw = '--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nbackend\r\n--b--\r\n';
    const answer = await api.send('POST', '/networks', { raw, type: 'multipart/form-data; boundary=b' });
    expect(answer.status).toBe(415);
  });

  test('§4.3 write bodies are JSON only: text and XML are refused', async ({ api }) => {
    for (const type of ['text/plain', 'application/xml']) {
      const answer = await api.send('POST', '/ips', { raw: '{}', type });
      expect([type, answer.status]).toEqual([type, 415]);
    }
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test('§4.3 a JSON body may name its charset', async ({ api }) => {
    const answer = await api.send('POST', '/ips', { raw: '{}', type: 'application/json; charset=utf-8' });
    expect(answer.status).toBe(201);
  });

  test('§4.3 a body that is no JSON object is refused', async ({ api }) => {
    for (const raw of ['{"name":', '[]', '"text"', '7', 'name=backend']) {
      const answer = await api.send('POST', '/networks', { raw, type: 'application/json' });
      expect([400, 422]).toContain(answer.status);
    }
  });

  test('§4.3 null is no JSON object either, also where a body is optional', async ({ api }) => {
    const answer = await api.send('POST', '/ips', { raw: 'null', type: 'application/json' });
    expect(answer.status).toBe(422);
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test('§4.3 strings are trimmed in payloads that are not shown, too', async ({ api }) => {
    const { id } = await api.server();
    const iso_id = ` ${(await api.iso()).id} `;
    expect((await api.send('PUT', `/servers/${id}/iso`, { json: { iso_id } })).status).toBe(200);
  });

  test('§4.3 types are strict in payloads that are not shown, too', async ({ api }) => {
    const { id } = await api.server();
    const image = await api.post('/server-images', { server_id: String(id), name: 'image' });
    expect([image.status, image.invalidParams]).toEqual([422, ['server_id']]);
    for (const iso_id of [1, null, 'rescue']) {
      const drive = await api.send('PUT', `/servers/${id}/iso`, { json: { iso_id } });
      expect([drive.status, drive.invalidParams]).toEqual([422, ['iso_id']]);
    }
  });

  test('§4.3 unknown body fields are refused with 422 that names them', async ({ api, server }) => {
    const bodies: [string, string, object][] = [
      ['POST', '/ips', {}],
      ['POST', '/isos', { url: 'https://images.example/a.iso' }],
      ['POST', '/networks', { name: 'backend', cidr: '10.0.0.0/24' }],
      ['POST', '/servers', await api.serverBody()],
      ['POST', `/servers/${server.id}/network-interfaces`, { network_id: 1 }],
      ['PUT', `/servers/${server.id}/firewall`, { enabled: false, policy_in: 'drop', rules: [] }],
      ['POST', `/servers/${server.id}/backups`, {}],
    ];
    for (const [method, path, body] of bodies) {
      const answer = await api.send(method, path, { json: { ...body, colour: 'red' } });
      expect([path, answer.status, answer.code, answer.invalidParams]).toEqual([
        path,
        422,
        'invalid_request',
        ['colour'],
      ]);
    }
  });

  test.each(reads)('§4.3 unknown query parameters are refused with 422: $id', async (operation) => {
    const api = await open();
    const answer = await api.get(`${await api.existing(operation.path)}?colour=red`);
    expect([answer.status, answer.code, answer.invalidParams]).toEqual([422, 'invalid_request', ['colour']]);
  });

  test('§4.3 unknown query parameters are refused on writes too, and nothing is done', async ({ api }) => {
    const answer = await api.post('/ips?colour=red', {});
    expect([answer.status, answer.code, answer.invalidParams]).toEqual([422, 'invalid_request', ['colour']]);
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test('§4.3 a refusal names every offending field at once', async ({ api }) => {
    const answer = await api.post('/networks', { name: '', cidr: 7, colour: 'red' });
    expect(answer.invalidParams.toSorted()).toEqual(['cidr', 'colour', 'name']);
  });

  test.each([
    ...new Set(document.operations.map((operation) => operation.path)),
  ])('§4.7 a path that exists with an unsupported method answers 405 with Allow: %s', async (path) => {
    const api = await open();
    const answer = await api.send('PATCH', concrete(path));
    expect(answer.status).toBe(405);
    const allowed = (answer.headers.allow ?? '').split(/, */);
    expect(allowed).toEqual(expect.arrayContaining([...document.methodsOf(path)]));
    expect(allowed).not.toContain('PATCH');
  });

  test('§2 (A35) the Date header is the clock of the timestamps inside resources, which carry a UTC offset', async ({
    api,
  }) => {
    const answer = await api.post('/networks', { name: 'backend', cidr: '10.0.0.0/24' });
    expect(answer.task?.created_at).toMatch(
      /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/,
    );
    expect(Date.parse(answer.task?.created_at ?? '')).toBe(api.now());
    expect(Date.parse(answer.headers.date ?? '')).toBe(api.now());
  });

  test('§7 404: a path that does not exist, whatever the method', async ({ api }) => {
    expect((await api.get('/nowhere')).status).toBe(404);
    expect((await api.post('/nowhere', {})).status).toBe(404);
  });

  test('§9.1 the version begins the base path: another version is not found', async ({ api }) => {
    expect(api.baseUrl).toMatch(/\/v1$/);
    expect((await api.outside('/v2/project')).status).toBe(404);
    expect((await api.outside('/project')).status).toBe(404);
  });

  test('§7 type links to the page of the code, and code is a word of its own', async ({ api }) => {
    const answer = await api.get('/server-types/987654/images');
    expect(answer.problem).toMatchObject({
      type: expect.stringMatching(/^https?:\/\/.+\/errors\/server_type_not_found$/),
      status: 404,
      code: 'server_type_not_found',
    });
  });
});
