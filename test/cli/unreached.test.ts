import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { report } from '../../src/cli/exit.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { TransportError } from '../../src/core/transport.ts';
import { serving } from '../support/serving.ts';
import { oneNetwork } from './run.ts';
import { Workspace } from './workspace.ts';

describe('src/cli/exit.ts: an answer that is not from the API', () => {
  test.each([
    [
      200,
      'text/html',
      '<h1>Log in</h1>',
      /is not the API: GET \/project: 200 without X-Request-Id.*\. Check VDC_BASE_URL, and any proxy/,
    ],
    [404, 'text/html', '', /is not the API: GET \/project: 404 without X-Request-Id.*Check VDC_BASE_URL/],
    [302, 'text/html', '', /302 is a redirect.*Check VDC_BASE_URL/],
    [
      200,
      'application/json',
      '{"data": {"id": "x"}}',
      /is not as documented: data\.id.*Check VDC_BASE_URL: it may name another service/,
    ],
    [
      403,
      'application/problem+json',
      '{"title": "Forbidden", "code": "insufficient_privileges"}',
      /403 insufficient_privileges.*a team member without this permission/,
    ],
  ])('%i %s %s: names the cause and a remedy, and exits with 1', async (status, type, body, words) => {
    const id = type === 'text/html' ? {} : { 'x-request-id': 'req-1' };
    const origin = await serving((_request, response) => {
      response.writeHead(status, { 'content-type': type, ...id }).end(body);
    });
    const env = { VDC_BASE_URL: `${origin}/v1`, VDC_TOKEN: 'some-token', LOG_LEVEL: 'error' };
    const place = new Workspace({ 'vdcsync.yaml': oneNetwork }, env);
    expect(await place.refused(1, 'plan')).toMatch(words);
  });

  test.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'NODE_EXTRA_CA_CERTS'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'check the host name'],
    ['CERT_HAS_EXPIRED', 'the clock of this machine'],
    ['ECONNREFUSED', 'check VDC_BASE_URL and the network'],
  ])('names a remedy for a connection that fails with %s', (code, advice) => {
    const stderr = new PassThrough();
    const error = new TransportError('no connection to https://api.example.com/v1: why', 'none', code);
    expect(report(error, { stderr, env: {} } as unknown as Io)).toBe(1);
    expect(String(stderr.read()).toLowerCase()).toContain(advice.toLowerCase());
  });
});
