import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { PostgresInspection } from '../../src/state/postgres-inspection.ts';
import { folderWith, inProcess, oneNetwork } from '../cli/run.ts';
import { postgresServer } from '../support/postgres.ts';
import { portOf } from '../support/serving.ts';

const server = postgresServer();
const read = { mode: 'read', now: 1, lineage: 'test' } as const;
const write = { mode: 'write', now: 1, lineage: 'test' } as const;

/** A server that accepts connections on loopback, does `answer` with each, and never closes one. */
async function listener(answer: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const listening = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    answer(socket);
  });
  const port = await portOf(listening);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { port, sockets };
}

/** Answers the client's first message, which asks for TLS, and stays silent from then on. */
function afterRequest(answer: string): (socket: Socket) => void {
  return (socket) => void socket.once('data', () => socket.write(answer));
}

/** `0.0.0.0` leads to this machine, and is no loopback address. */
function elsewhere(url: string, query: string): string {
  return `${url.replace('127.0.0.1', '0.0.0.0')}?${query}`;
}

describe('src/state/postgres-connection.ts: servers on other machines', () => {
  test.each([
    'state=a',
    'sslmode=disable',
    'sslmode=no-verify',
    'ssl=0',
    'uselibpqcompat=true&sslmode=require',
    'allow_insecure=1',
  ])('with %s, sends no byte', async (query) => {
    const { port, sockets } = await listener(() => undefined);
    const url = elsewhere(`postgres://me:canary@127.0.0.1:${port}/vdc`, query);
    for (const opened of [
      openPostgresState(url, read),
      openPostgresState(url, write),
      new PostgresInspection(url).states({}),
    ]) {
      await expect(opened).rejects.toThrow(StateError);
      await expect(opened).rejects.toThrow(/sslmode=verify-full .*allow_insecure=true/);
      await expect(opened).rejects.not.toThrow(/canary/);
    }
    expect(sockets).toHaveLength(0);
  });

  test('PGHOST and `?host=` cannot circumvent the TLS requirement', async () => {
    const { port, sockets } = await listener(() => undefined);
    vi.stubEnv('PGHOST', '0.0.0.0');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    for (const url of [`postgres:///vdc?port=${port}`, `postgres://127.0.0.1:${port}/vdc?host=0.0.0.0`])
      await expect(openPostgresState(url, read)).rejects.toThrow(/sslmode=verify-full/);
    expect(sockets).toHaveLength(0);
  });

  test('with allow_insecure=true, connects without TLS', async () => {
    const store = await openPostgresState(elsewhere(server.url(), 'allow_insecure=true'), write);
    await store.putNote('n', 1);
    await store.close();
    const here = await openPostgresState(server.url(), read);
    expect(await here.note('n')).toBe(1);
    await here.close();
  });
});

describe('src/state/postgres-connection.ts: silent servers and servers without TLS', () => {
  test.each([
    ['refuses TLS', 'N'],
    ['answers the request for TLS with an error', 'E\0\0\0\x08no\0\0'],
    ['speaks another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ])('reports a server that %s, and closes the connection', async (_, answer) => {
    const { port, sockets } = await listener(afterRequest(answer));
    const url = `postgres://me:canary@127.0.0.1:${port}/vdc?sslmode=verify-full`;
    const ended = await inProcess(['plan', '--state', url], {
      cwd: folderWith({ 'vdcsync.yaml': oneNetwork }),
      env: { VDC_BASE_URL: 'http://127.0.0.1:1/v1', VDC_TOKEN: 'token' },
    });
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/no trusted TLS connection could be made.*\n$/);
    await expect.poll(() => sockets.every((socket) => socket.destroyed || socket.readableEnded)).toBe(true);
  });

  test('gives up on a server that does not answer, or that stops after agreeing to TLS', async () => {
    const silent = await listener(() => undefined);
    const half = await listener(afterRequest('S'));
    const urls = [
      `postgres://me:canary@127.0.0.1:${silent.port}/vdc`,
      `postgres://me:canary@127.0.0.1:${silent.port}/vdc?sslmode=verify-full`,
      `postgres://me:canary@127.0.0.1:${half.port}/vdc?sslmode=verify-full`,
    ];
    await Promise.all(
      urls.map((url) =>
        expect(openPostgresState(url, read)).rejects.toThrow(/cannot be reached.*timeout expired/),
      ),
    );
  });

  test('a server that no longer answers does not delay the close', async () => {
    let forward = true;
    const { port } = await listener((client) => {
      const upstream = connect(server.port, '127.0.0.1');
      upstream.on('error', () => undefined);
      client.on('data', (chunk) => forward && upstream.write(chunk));
      upstream.on('data', (chunk) => forward && client.write(chunk));
      onTestFinished(() => void upstream.destroy());
    });
    const store = await openPostgresState(server.url().replace(`:${server.port}/`, `:${port}/`), read);
    forward = false;
    await store.close();
  });
});
