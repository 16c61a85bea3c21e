import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { folderWith, oneNetwork } from '../cli/run.ts';
import { emulate, type RunningDaemon, startConverged, startDaemon } from './support.ts';

const secret = 'a-webhook-secret-of-40-characters';
const corpus = join(import.meta.dirname, 'deliveries');

/** Sends the bytes as they are. Gives the answer, and whether the daemon closed the connection by itself. */
async function exchange(port: number, bytes: string): Promise<{ text: string; closed: boolean }> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  // A daemon that stops reading resets what is still being sent.
  socket.on('error', () => {});
  const closed = once(socket, 'close').then(() => true);
  socket.write(Buffer.from(bytes, 'latin1'));
  const ended = await Promise.race([closed, pause(5_000, false)]);
  socket.destroy();
  return { text, closed: ended };
}

function readDelivery(name: string): { expected: number; bytes: string } {
  const [first = '', ...lines] = readFileSync(join(corpus, name), 'latin1').split('\n');
  const bytes = lines
    .join('\r\n')
    .replace(/\{\{(\d+) (.)\}\}/g, (_, count: string, character: string) => character.repeat(Number(count)));
  return { expected: Number(first.replace('expect ', '')), bytes };
}

const portOf = ({ url }: RunningDaemon) => Number(new URL(url).port);

/** The status of a request from one of this machine's addresses. */
async function statusFrom(daemon: RunningDaemon, localAddress: string, path: string): Promise<number> {
  const request = get(`${daemon.url}${path}`, { localAddress, agent: false, timeout: 8_000 });
  // The server closes slow connections after 10 s.
  request.on('timeout', () => request.destroy(new Error('no answer within 8 s')));
  const [response] = (await once(request, 'response')) as [{ statusCode: number; resume(): void }];
  response.resume();
  return response.statusCode;
}

async function slowConnections(
  daemon: RunningDaemon,
  count: number,
  localAddress: string,
): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () =>
    connect({ port: portOf(daemon), host: '127.0.0.1', localAddress }),
  );
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(
    sockets.map(async (socket, index) => {
      socket.on('error', () => {});
      await once(socket, 'connect');
      const half = index % 2 === 0 ? 'Content-Length: 900\r\n\r\n{' : 'X-Slow: ';
      const signed = `X-Hub-Signature-256: sha256=${'a'.repeat(64)}\r\n`;
      socket.write(`POST /hooks/github HTTP/1.1\r\nHost: 127.0.0.1\r\n${signed}${half}`);
    }),
  );
  return sockets;
}

describe('src/daemon/http/webhooks.ts: hostile deliveries', () => {
  let daemon: RunningDaemon;

  test('each delivery of the corpus is refused and its connection closed, and a valid delivery is accepted', async () => {
    const api = await emulate();
    daemon = await startDaemon(api, { spec: oneNetwork, env: { VDCSYNC_WEBHOOK_SECRET: secret } });
    const names = readdirSync(corpus);
    expect(names.length).toBeGreaterThan(10);
    const answers = await Promise.all(
      names.map(async (name) => {
        const { expected, bytes } = readDelivery(name);
        const { text, closed } = await exchange(portOf(daemon), bytes);
        return { name, expected, status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), closed };
      }),
    );
    for (const { name, expected, status, closed } of answers) {
      expect([name, status, closed]).toEqual([name, expected, true]);
    }
    const refused = daemon.log().filter(({ forge }) => forge !== undefined);
    expect(refused.length).toBeGreaterThan(3);
    for (const line of refused) expect(JSON.stringify(line).length).toBeLessThan(600);
    expect(JSON.stringify(refused)).not.toMatch(/[\p{Cc}\p{Cf}]/u);

    const body = '{"ref":"refs/heads/main"}';
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = { 'x-hub-signature-256': `sha256=${signature}` };
    const taken = await fetch(`${daemon.url}/hooks/github`, { method: 'POST', body, headers });
    expect(taken.status).toBe(202);
  });

  test('while slow connections use every slot, health answers at once, and other addresses are unaffected', async () => {
    const api = await emulate();
    daemon = await startDaemon(api, { spec: oneNetwork, env: { VDCSYNC_WEBHOOK_SECRET: secret } });
    const patient = connect({ port: portOf(daemon), host: '127.0.0.1', localAddress: '127.0.0.3' });
    patient.write('GET /healthz HTTP/1.1\r\n');
    const slow = await slowConnections(daemon, 205, '127.0.0.1');
    for (let times = 0; times < 5; times += 1) {
      expect(await statusFrom(daemon, '127.0.0.1', '/healthz')).toBe(200);
      expect(await statusFrom(daemon, '127.0.0.2', '/healthz')).toBe(200);
    }
    // Connections that are opened, and send nothing.
    const idle = Array.from({ length: 300 }, () =>
      connect({ port: portOf(daemon), host: '127.0.0.1', localAddress: '127.0.0.10' }).on('error', () => {}),
    );
    onTestFinished(() => {
      for (const socket of idle) socket.destroy();
    });
    expect(await statusFrom(daemon, '127.0.0.2', '/healthz')).toBe(200);
    const others = ['127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7', '127.0.0.8'];
    expect(slow.filter(({ destroyed }) => !destroyed).length).toBeLessThanOrEqual(100);
    expect(patient.destroyed).toBe(false);
    for (const address of others) await slowConnections(daemon, 100, address);
    expect(await statusFrom(daemon, '127.0.0.9', '/healthz')).toBe(200);
    patient.destroy();
  });
});

describe('src/daemon/http/app.ts: access', () => {
  test('without a token, a request with the host name of another domain is refused, except for health', async () => {
    const { daemon: open } = await startConverged(oneNetwork, { args: ['--listen', '0.0.0.0:0'] });
    const answerTo = async (host: string, path: string) => {
      const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      return (await exchange(portOf(open), request)).text;
    };
    const ask = async (host: string, path = '/status') =>
      Number(/^HTTP\/1\.1 (\d+)/.exec(await answerTo(host, path))?.[1]);
    for (const host of ['localhost', '127.0.0.1:9464', '10.1.2.3:9464', '[fd00::1]:9464', 'vdcsync:9464']) {
      expect([host, await ask(host)]).toEqual([host, 200]);
    }
    for (const host of [
      'evil.example',
      'evil.example:9464',
      '',
      '1',
      '0x7f.1',
      'localhost.',
      '[evil]',
      'a@b',
    ]) {
      expect([host, [400, 421].includes(await ask(host))]).toEqual([host, true]);
    }
    expect(await ask('evil.example', '/healthz')).toBe(200);
    for (const path of ['/', '/page', '/status', '/metrics', '/events', '/readyz']) {
      const text = await answerTo('evil.example', path);
      expect([path, text.includes('backend'), text.includes('4711')]).toEqual([path, false, false]);
      expect(text).not.toMatch(/access-control-allow/i);
    }
  });

  test('without a token, readiness shows no path and no program output; the status shows both', async () => {
    const api = await emulate();
    const env = { VDCSYNC_HTTP_TOKEN: 'a-token-of-some-length' };
    const folder = folderWith();
    const args = ['--git-url', `file://${folder}/no-such.git`, '--git-allow-insecure'];
    const daemon = await startDaemon(api, { folder, args, env });
    await expect
      .poll(async () => (await fetch(`${daemon.url}/readyz`)).text())
      .toContain('the source cannot be read');
    const answer = await fetch(`${daemon.url}/readyz`);
    expect(await answer.json()).toEqual({ ready: false, reasons: ['the source cannot be read'] });
    expect((await daemon.status()).not_ready[0]).toMatch(/^the source cannot be read: git ls-remote/);
  });
});
