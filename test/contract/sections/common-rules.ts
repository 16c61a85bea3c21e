import { describe, expect } from 'vitest';
import { document, open, test, writes } from '../contract.ts';
import { validWrite } from '../valid-write.ts';

const IDS: Record<string, string> = { '/isos/{id}': 'uiso-9876543210', '/tasks/{id}': 'no-such-task' };
/** The path with an id of nothing. */
const concrete = (path: string) => path.replace('{id}', IDS[path] ?? '987654');

const NOT_FOUND = { '/servers/': 'server_not_found', '/server-types/': 'server_type_not_found' };

describe('§4 common rules', () => {
  test('§4.2 every response has a unique X-Request-Id; §7 an unknown path gets 404 for every method', async ({
    api,
  }) => {
    const answers = [await api.get('/project'), await api.get('/nowhere'), await api.post('/nowhere', {})];
    expect(answers.map((answer) => answer.status)).toEqual([200, 404, 404]);
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

  test.each([
    'multipart/form-data; boundary=b',
    'text/plain',
    'application/xml',
  ])('§4.3 write bodies are JSON only: %s is refused', async (type) => {
    const api = await open();
    expect((await api.send('POST', '/ips', { raw: '{}', type })).status).toBe(415);
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test.each(
    document.operations,
  )('§4.3 unknown query parameters are refused with 422, without effect: $id', async ({ method, path }) => {
    const api = await open();
    const answer = await api.send(method, `${concrete(path)}?colour=red`);
    expect([answer.status, answer.code, answer.invalidParams]).toEqual([422, 'invalid_request', ['colour']]);
    expect(api.emulator.world.executions).toEqual([]);
  });

  test.each(
    document.operations.filter(({ path }) => path.includes('{id}')),
  )('§7 an unknown id is not found: $id', async (operation) => {
    const api = await open();
    const [, json] = await validWrite(api, operation);
    const answer = await api.send(operation.method, concrete(operation.path), { json });
    const [, code = expect.any(String)] =
      Object.entries(NOT_FOUND).find(([start]) => operation.path.startsWith(start)) ?? [];
    expect([answer.status, answer.code]).toEqual([404, code]);
  });

  test.each([
    ['/ips', { server_type_id: 987_654 }, 'server_type_not_found'],
    ['/servers', { name: 'a', image: 'b', server_type_id: 987_654 }, 'server_type_not_found'],
    ['/servers/{id}/network-interfaces', { network_id: 987_654 }, expect.any(String)],
  ])('§7 a reference to a missing resource is not found: POST %s %j', async (path, body, code) => {
    const api = await open();
    const answer = await api.post(await api.existing(path), body);
    expect([answer.status, answer.code]).toEqual([404, code]);
  });

  test.each([
    '/ips/seven',
    ...['1', 'uiso-', 'uiso-12345678901', 'iso-1', 'uiso-1x'].map((id) => `/isos/${id}`),
  ])('§2, §4 an id of another form never returns a resource: %s', async (path) => {
    const api = await open();
    expect([400, 404, 422]).toContain((await api.get(path)).status);
    expect([400, 404, 422]).toContain((await api.delete(path)).status);
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

  test('§9.1 the version begins the base path: another version is not found', async ({ api }) => {
    expect(api.baseUrl).toMatch(/\/v1$/);
    expect((await api.unchecked('GET', '/v2/project')).status).toBe(404);
    expect((await api.unchecked('GET', '/project')).status).toBe(404);
  });
});
