import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { report } from '../../src/cli/exit.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { TransportError } from '../../src/core/transport.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

/** What may answer in the API's place, by the first part of the path. */
const answers: Readonly<Record<string, readonly [status: number, type: string, body: string]>> = {
  page: [200, 'text/html', '<h1>Log in</h1>'],
  elsewhere: [302, 'text/html', ''],
  other: [200, 'application/json', '{"data": {"id": "x"}}'],
  member: [403, 'application/problem+json', '{"title": "Forbidden", "code": "insufficient_privileges"}'],
};

let server: Server;
let origin: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const name = request.url?.split('/')[1] ?? '';
    const [status, type, body] = answers[name] ?? [404, 'text/html', ''];
    const id = type === 'text/html' ? {} : { 'x-request-id': 'req-1' };
    response.writeHead(status, { 'content-type': type, ...id }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => void server.close());

describe('src/cli/exit.ts: what is not the API', () => {
  test.each([
    ['page', /is not the API: GET \/project: 200 without X-Request-Id.*\. Check VDC_BASE_URL, and any proxy/],
    ['nowhere', /is not the API: GET \/project: 404 without X-Request-Id.*Check VDC_BASE_URL/],
    ['elsewhere', /302 is a redirect.*Check VDC_BASE_URL/],
    ['other', /is not as documented: data\.id.*Check VDC_BASE_URL: it may name another service/],
    ['member', /403 insufficient_privileges.*a team member without this permission/],
  ])('%s: says what answers and what to do, exit 1', async (name, words) => {
    const call = {
      cwd: folderWith({ 'vdcsync.yaml': oneNetwork }),
      env: { VDC_BASE_URL: `${origin}/${name}/v1`, VDC_TOKEN: 'some-token', LOG_LEVEL: 'error' },
    };
    const { code, stderr } = await inProcess(['plan'], call);
    expect(code).toBe(1);
    expect(stderr).toMatch(words);
  });

  test('a base URL that cannot be used is named by its variable', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const env = { VDC_BASE_URL: 'https://api.example.com', VDC_TOKEN: 'some-token' };
    const { code, stderr } = await inProcess(['plan'], { cwd, env });
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^vdcsync: VDC_BASE_URL/),
    });
  });

  test.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'NODE_EXTRA_CA_CERTS'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'check the host name'],
    ['CERT_HAS_EXPIRED', 'the clock of this machine'],
    ['ECONNREFUSED', 'check VDC_BASE_URL and the network'],
  ])('a connection that fails with %s says what helps', (code, advice) => {
    const stderr = new PassThrough();
    const error = new TransportError('no connection to https://api.example.com/v1: why', 'none', code);
    expect(report(error, { stderr, env: {} } as unknown as Io)).toBe(1);
    expect(String(stderr.read()).toLowerCase()).toContain(advice.toLowerCase());
  });
});
