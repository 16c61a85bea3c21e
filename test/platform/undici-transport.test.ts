import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createNetServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isLoopbackAddress, isLoopbackHost } from '../../src/core/text.ts';
import type { Transport, TransportError } from '../../src/core/transport.ts';
import { type UndiciTransportOptions, undiciTransport } from '../../src/platform/undici-transport.ts';
import { portOf } from '../support/serving.ts';

function transport(options: UndiciTransportOptions = {}): Transport {
  const made = undiciTransport(options);
  onTestFinished(() => made.close());
  return made;
}

async function serve(
  listener: RequestListener,
): Promise<{ url: string; server: Server; sockets: Set<Socket> }> {
  const server = createServer(listener);
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  const url = `http://127.0.0.1:${await portOf(server)}/v1/x`;
  onTestFinished(() => server.closeAllConnections());
  return { url, server, sockets };
}

/** A server below HTTP, for answers that no HTTP server would give. */
async function serveRaw(onData: (socket: Socket, count: number) => void): Promise<string> {
  let count = 0;
  const server = createNetServer((socket) => {
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.on('data', () => onData(socket, ++count));
  });
  return `http://127.0.0.1:${await portOf(server)}/v1/x`;
}

const get = (made: Transport, url: string, timeoutMs = 5_000) =>
  made.send({ method: 'GET', url, headers: {} }, { timeoutMs });
const post = (made: Transport, url: string, timeoutMs = 5_000) =>
  made.send(
    { method: 'POST', url, headers: { 'content-type': 'application/json' }, body: '{}' },
    { timeoutMs },
  );

/** The effect and the code of the failure that it has to end in. */
async function failure(sending: Promise<unknown>): Promise<string> {
  const error = await sending.then(
    () => expect.unreachable('it was answered'),
    (reason: TransportError) => reason,
  );
  expect(error.name).toBe('TransportError');
  return `${error.effect} ${error.code}`;
}

describe('src/platform/undici-transport.ts', () => {
  test('sends method, headers and body unchanged, and returns the answer unchanged', async () => {
    let seen: unknown;
    const { url } = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        seen = [
          request.method,
          request.url,
          request.headers['idempotency-key'],
          request.headers['content-type'],
          body,
        ];
        response.writeHead(201, { 'X-Request-Id': 'r-1', 'Content-Type': 'application/json' });
        response.end('{"data":"ü"}');
      });
    });
    const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' };
    const answer = await transport().send(
      { method: 'PUT', url, headers, body: '{"a":"ü"}' },
      { timeoutMs: 5_000 },
    );
    expect(seen).toEqual(['PUT', '/v1/x', 'k', 'application/json', '{"a":"ü"}']);
    expect(answer).toMatchObject({
      status: 201,
      headers: { 'x-request-id': 'r-1', 'content-type': 'application/json' },
      body: '{"data":"ü"}',
    });
  });

  test('sends a POST without a body with neither body nor content type', async () => {
    let headers: NodeJS.Dict<string | string[]> = {};
    const { url } = await serve((request, response) => {
      headers = request.headers;
      response.end();
    });
    await transport().send({ method: 'POST', url, headers: {} }, { timeoutMs: 5_000 });
    expect(headers).toMatchObject({ 'content-length': '0' });
    expect(headers).not.toHaveProperty('content-type');
  });

  test('keeps and reuses connections', async () => {
    const { url, sockets } = await serve((_request, response) => response.end('{}'));
    const made = transport();
    for (let index = 0; index < 20; index++) await get(made, url);
    // A connection is free again a moment after its answer, so the next request may have opened one more.
    expect(sockets.size).toBeLessThanOrEqual(2);
  });

  test('opens at most the configured number of connections', async () => {
    const { url, sockets } = await serve((_request, response) => setTimeout(() => response.end('{}'), 20));
    const made = transport({ connections: 2 });
    await Promise.all(Array.from({ length: 8 }, () => get(made, url)));
    expect(sockets.size).toBe(2);
  });

  test('a refused connection and a name that does not resolve had no effect', async () => {
    const { url, server } = await serve(() => {});
    await new Promise((resolve) => server.close(resolve));
    expect(await failure(post(transport(), url))).toBe('none ECONNREFUSED');
    const unknown = await failure(post(transport(), 'https://no-such-host.invalid/v1/x'));
    expect(unknown).toMatch(/^none /);
  });

  test('a failed TLS handshake had no effect', async () => {
    const { url } = await serve((_request, response) => response.end('{}'));
    const secure = url.replace('http:', 'https:');
    expect(await failure(post(transport(), secure))).toMatch(/^none /);
  });

  test('a TLS handshake that never ends had no effect', async () => {
    const url = (await serveRaw(() => {})).replace('http:', 'https:');
    const ended = await failure(post(transport({ connectTimeoutMs: 200 }), url, 10_000));
    expect(ended).toBe('none UND_ERR_CONNECT_TIMEOUT');
  });

  test('a reset after the request may have had its effect, and the request is not sent again', async () => {
    let requests = 0;
    const url = await serveRaw((socket) => {
      requests += 1;
      socket.resetAndDestroy();
    });
    expect(await failure(post(transport(), url))).toMatch(/^unknown /);
    expect(await failure(get(transport(), url))).toMatch(/^unknown /);
    expect(requests).toBe(2);
    await expect(get(transport(), url)).rejects.toThrow(/^the connection was reset$/);
  });

  test('does not retry a request whose kept connection is lost', async () => {
    for (const send of [post, get]) {
      let requests = 0;
      const url = await serveRaw((socket, count) => {
        requests = count;
        if (count > 1) socket.destroy();
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
      });
      const made = transport();
      await send(made, url);
      expect(await failure(send(made, url))).toMatch(/^unknown /);
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(requests).toBe(2);
    }
  });

  test('a truncated answer is no answer', async () => {
    for (const head of ['content-length: 100', 'transfer-encoding: chunked']) {
      const url = await serveRaw((socket) => socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\n{"dat`));
      expect(await failure(post(transport(), url))).toMatch(/^unknown /);
    }
  });

  test('an answer that is not HTTP is no answer', async () => {
    const url = await serveRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'));
    expect(await failure(post(transport(), url))).toMatch(/^unknown /);
  });

  test('the time-out ends silence, slow headers and a slow body', async () => {
    const silent = await serve(() => {});
    expect(await failure(post(transport(), silent.url, 150))).toBe('unknown TIMEOUT');
    const drip = await serve((_request, response) => {
      const timer = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(timer));
    });
    expect(await failure(post(transport(), drip.url, 200))).toBe('unknown TIMEOUT');
  });

  test('rejects a body beyond the limit', async () => {
    const { url } = await serve((_request, response) => {
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', write);
      write();
    });
    expect(await failure(get(transport({ maxBodyBytes: 1_000_000 }), url))).toBe('unknown BODY_TOO_LARGE');
  });

  test('a redirect is an answer and is not followed', async () => {
    let requests = 0;
    const { url } = await serve((_request, response) => {
      requests += 1;
      response.writeHead(307, { location: '/v1/elsewhere' });
      response.end();
    });
    expect((await post(transport(), url)).status).toBe(307);
    expect(requests).toBe(1);
  });

  test('a stop before the request had no effect; a stop during the request may have had its effect', async () => {
    const { url } = await serve(() => {});
    const made = transport();
    const stop = new AbortController();
    const message = { method: 'POST', url, headers: {} };
    const sending = failure(made.send(message, { timeoutMs: 5_000, signal: stop.signal }));
    setTimeout(() => stop.abort(), 50);
    expect(await sending).toBe('unknown ABORTED');
    expect(await failure(made.send(message, { timeoutMs: 5_000, signal: stop.signal }))).toBe('none ABORTED');
  });

  describe('a request that waits for a connection', () => {
    /** Both connections are busy until `free` is called. */
    async function busy() {
      const held: (() => void)[] = [];
      const seen: string[] = [];
      const { url } = await serve((request, response) => {
        seen.push(request.method ?? '');
        if (request.method === 'GET') held.push(() => response.end('{}'));
        else response.end('{}');
      });
      const made = transport({ connections: 2 });
      const reads = [get(made, url), get(made, url)];
      while (held.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      const free = async () => {
        for (const answer of held) answer();
        await Promise.all(reads);
      };
      return { made, url, seen, free, message: { method: 'POST', url, headers: {}, body: '{}' } };
    }

    test('is revalidated when a connection is free, and not sent if no longer valid', async () => {
      const { made, message, seen, free } = await busy();
      let isHeld = true;
      const sending = failure(made.send(message, { timeoutMs: 5_000, mayGo: () => isHeld }));
      isHeld = false;
      await free();

      expect(await sending).toBe('none TOO_OLD');
      expect(seen).toEqual(['GET', 'GET']);
      expect((await made.send(message, { timeoutMs: 5_000, mayGo: () => true })).status).toBe(200);
    });

    test('had no effect if it is aborted while it waits', async () => {
      const { made, message, url, seen, free } = await busy();
      const stop = new AbortController();
      const stopped = failure(made.send(message, { timeoutMs: 5_000, signal: stop.signal }));
      stop.abort();

      expect(await failure(post(made, url, 100))).toBe('none TIMEOUT');
      expect(await stopped).toBe('none ABORTED');
      await free();
      await get(made, url.replace('/x', '/y'), 100).catch(() => undefined);
      expect(seen).not.toContain('POST');
    });
  });

  test('a request that `close` interrupts fails with CLOSED', async () => {
    const { url } = await serve(() => {});
    const made = undiciTransport();
    const sent = get(made, url);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await made.close();
    expect(await failure(sent)).toBe('unknown CLOSED');
    expect(await failure(get(made, url))).toBe('none CLOSED');
  });

  test('allows plain HTTP on this machine only', async () => {
    expect(await failure(get(transport(), 'http://api.example.com/v1/x'))).toBe('none INSECURE_URL');
    expect(['localhost', 'a.localhost', '127.0.0.1', '127.9.9.9', '[::1]'].every(isLoopbackHost)).toBe(true);
    expect(['localhost', '127.9.9.9', '::1', '[::1]'].every(isLoopbackAddress)).toBe(true);
    expect(isLoopbackAddress('a.localhost')).toBe(false);
    expect(
      ['127.0.0.1.example.com', 'localhost.example.com', '10.0.0.1', '[::2]', ''].some(isLoopbackHost),
    ).toBe(false);
  });

  test('no failure contains sent data', async () => {
    const url = await serveRaw((socket) => socket.resetAndDestroy());
    const headers = { authorization: 'Bearer canary-secret' };
    const error = await transport()
      .send({ method: 'GET', url, headers }, { timeoutMs: 1_000 })
      .catch((reason: unknown) => reason);
    const seen: unknown[] = [];
    for (let each = error; each instanceof Error; each = each.cause) {
      seen.push(each.message, each.stack, Object.entries(each));
    }
    expect(JSON.stringify(seen)).not.toContain('canary');
  });
});
