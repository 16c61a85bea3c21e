import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of every shape
const read = (answer: Response): Promise<any> => answer.json();

describe('src/emulator/http-server.ts', () => {
  let running: RunningEmulator;
  beforeEach(async () => {
    running = await startEmulator({ seed: 1, speed: 1000 });
  });
  afterEach(() => running.close());

  const send = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
    fetch(`${running.baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${running.projects[0]?.tokens.readWrite}`, ...headers },
      redirect: 'manual',
      ...(body === undefined ? {} : { body }),
    });
  const control = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
    fetch(`${new URL(running.baseUrl).origin}/_emulator${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
  const ips = () => running.emulator.world.projects[0]?.ips.length;

  const answerTo = async (sent: string) => {
    const socket = connect(Number(new URL(running.baseUrl).port), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => undefined);
    socket.write(sent);
    await once(socket, 'close');
    return text;
  };

  test('closes a connection that sends no HTTP, without an answer', async () => {
    expect(await answerTo('GARBAGE\r\n\r\n')).toBe('');
  });

  test('a request without a host gets a problem with a request id', async () => {
    const [head = '', body = ''] = (
      await answerTo('GET /v1/project HTTP/1.1\r\nconnection: close\r\n\r\n')
    ).split('\r\n\r\n');
    expect(head).toContain('HTTP/1.1 401 ');
    const requestId = /^x-request-id: (\S+)/im.exec(head)?.[1];
    expect(JSON.parse(body)).toMatchObject({ status: 401, request_id: requestId });
  });

  test('a POST without a body needs no content type; broken JSON gets 400; a long body gets 413', async () => {
    expect((await send('POST', '/ips')).status).toBe(201);
    const json = { 'content-type': 'application/json; charset=utf-8' };
    expect((await send('POST', '/ips', '{}', json)).status).toBe(201);
    expect((await send('POST', '/ips', '{', json)).status).toBe(400);
    const long = await send('POST', '/ips', `"${'x'.repeat(1_048_576)}"`, json);
    expect(long.status).toBe(413);
    expect(long.headers.get('x-request-id')).toMatch(/^req_/);
    expect(ips()).toBe(2);
  });

  test('resets, with and without effect, and truncated bodies reach the socket', async () => {
    running.emulator.setFaults([
      faultRule({ method: 'POST', nth: 1 }, { do: 'reset' }),
      faultRule({ method: 'POST', nth: 1 }, { do: 'reset', effect: 'done' }),
      faultRule({ method: 'POST', nth: 1 }, { do: 'truncate', keep: 10 }),
    ]);
    await expect(send('POST', '/ips')).rejects.toThrow();
    expect(ips()).toBe(0);
    await expect(send('POST', '/ips')).rejects.toThrow();
    expect(ips()).toBe(1);
    const cut = await send('POST', '/ips');
    expect(cut.status).toBe(201);
    await expect(cut.text()).rejects.toThrow();
    expect(ips()).toBe(2);
  });

  test('the control API shows and changes the world without a token', async () => {
    const tokens = (await read(await control('GET', '/tokens'))).data;
    expect(tokens[0].tokens.read_write).toBe(running.projects[0]?.tokens.readWrite);
    const added = await control('POST', '/mutations', '{"do": "add_server", "name": "foreign"}');
    expect((await read(added)).data).toMatchObject({ name: 'foreign', status: 'active' });
    await control('POST', '/mutations', 'do: set_standing\nstanding: suspended\n');
    await control('PUT', '/faults', '[{when: {path: list_ips, nth: 1}, then: {do: answer, status: 503}}]');
    expect((await send('GET', '/ips')).status).toBe(503);
    await control('PATCH', '/readings', '{pageSize: 0}');
    expect((await read(await send('GET', '/ips'))).data).toEqual([]);
    const world = (await read(await control('GET', '/world'))).data;
    expect(world.projects[0]).toMatchObject({ standing: 'suspended', servers: [{ name: 'foreign' }] });
    expect(world.billed).toHaveLength(2);
    const log = (await read(await control('GET', '/requests'))).data;
    expect(log.at(-1)).toMatchObject({ method: 'GET', operation: 'list_ips', status: 200, project: 4711 });
    expect(JSON.stringify([world, log])).not.toContain(running.projects[0]?.tokens.readWrite);
  });

  test('the control API names the error, and refuses clients on other machines', async () => {
    for (const body of ['{"do": "explode"}', '{"do": "delete_ip", "id": 1}', '[']) {
      expect((await control('POST', '/mutations', body)).status).toBe(422);
    }
    expect((await control('GET', '/nothing')).status).toBe(404);
    expect((await control('GET', '/world', undefined, { origin: 'https://evil.example' })).status).toBe(403);
    const stranger = await running.emulator.handle(
      { method: 'GET', url: 'http://x/_emulator/world', headers: {} },
      { remote: '192.0.2.1' },
    );
    expect(stranger).toMatchObject({ response: { status: 403 } });
  });

  test('the clock can be moved forward', async () => {
    const before = running.emulator.now();
    await control('POST', '/mutations', '{"do": "forward_clock", "ms": 86400000}');
    expect(running.emulator.now() - before).toBeGreaterThanOrEqual(86_400_000);
  });

  test('a client that disconnects during its body changes nothing', async () => {
    const url = new URL(`${running.baseUrl}/ips`);
    const headers = {
      authorization: `Bearer ${running.projects[0]?.tokens.readWrite}`,
      'content-length': '100',
    };
    await new Promise<void>((resolve) => {
      const half = request(url, { method: 'POST', headers });
      half.on('error', () => resolve());
      half.write('{"server', () => setTimeout(() => half.destroy(new Error('gone')), 50));
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(ips()).toBe(0);
    expect((await send('GET', '/project')).status).toBe(200);
  });

  test('`close` ends open connections', async () => {
    const other = await startEmulator({ host: 'localhost', projects: [{ id: 5, name: 'x' }] });
    expect(other.baseUrl).toMatch(/^http:\/\/localhost:\d+\/v1$/);
    await fetch(`${other.baseUrl}/project`);
    await other.close();
    await expect(fetch(`${other.baseUrl}/project`)).rejects.toThrow();
  });
});
