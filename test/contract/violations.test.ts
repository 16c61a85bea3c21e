import { describe, expect, test } from 'vitest';
import type { HttpRequest, HttpResponse } from '../../src/core/transport.ts';
import { OpenApiDocument } from './document.ts';
import { violations } from './violations.ts';

// The canary of the suite: a checker that finds nothing wrong with a wrong answer would let everything pass.
const BASE = 'http://emulator.test/v1';
const document = OpenApiDocument.read();
const ip = {
  id: 7,
  address: '203.0.113.7',
  prefix: '/24',
  gateway: '203.0.113.1',
  server_id: null,
  primary: false,
};
const task = {
  id: 't-1',
  status: 'pending',
  is_terminal: false,
  poll: '/v1/tasks/t-1',
  created_at: '2026-01-01T00:00:00+00:00',
};
const refusalBy = (code: string, status = 409) => ({
  ...{ type: `https://docs.test/errors/${code}`, title: 'No', status, code, request_id: 'r-1' },
});
const refusal = refusalBy('ip_in_use');

function request(method: string, path: string, over: Partial<HttpRequest> = {}): HttpRequest {
  return { method, url: `${BASE}${path}`, headers: { authorization: 'Bearer x' }, ...over };
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', 'x-request-id': 'r-1', ...headers },
    body: JSON.stringify(body),
  };
}

function problem(status: number, body: unknown, headers: Record<string, string> = {}): HttpResponse {
  return json(status, body, { 'content-type': 'application/problem+json', ...headers });
}

const found = (sent: HttpRequest, answer: HttpResponse) =>
  violations(document, BASE, sent, answer).join('\n');

describe('schemas/openapi.yaml: the check of answers against the schema', () => {
  test('reports nothing for answers that match the document, unknown fields included', () => {
    expect(found(request('GET', '/ips/7'), json(200, { data: { ...ip, colour: 'red' } }))).toBe('');
    expect(found(request('DELETE', '/ips/7'), problem(409, refusal))).toBe('');
    expect(found(request('GET', '/tasks/t-1'), json(200, { data: task }))).toBe('');
  });

  test.each([
    ['a status that is not declared', json(204, { data: ip }), 'not declared'],
    ['a missing payload', json(200, ip), "required property 'data'"],
    ['a missing field', json(200, { data: { ...ip, gateway: undefined } }), "required property 'gateway'"],
    ['a field of another type', json(200, { data: { ...ip, primary: 1 } }), 'must be boolean'],
    ['a value of another format', json(200, { data: { ...ip, prefix: '24' } }), 'must match pattern'],
    ['a missing X-Request-Id', json(200, { data: ip }, { 'x-request-id': '' }), 'no X-Request-Id'],
    ['another content type', json(200, { data: ip }, { 'content-type': 'text/plain' }), 'content type'],
    ['a remaining-allowance header', json(200, { data: ip }, { 'x-ratelimit-remaining': '3' }), 'allowance'],
    ['a body that is not JSON', { ...json(200, 1), body: '<html>' }, 'not JSON'],
  ])('reports %s', (_what, answer, expected) => {
    expect(found(request('GET', '/ips/7'), answer)).toContain(expected);
  });

  test.each([
    ['a problem served as plain JSON', json(409, refusal), 'not a problem'],
    ['a problem without a code', problem(409, { ...refusal, code: undefined }), "required property 'code'"],
    ['a problem of another status', problem(409, { ...refusal, status: 422 }), 'status 422'],
    [
      'a request id that differs from the header',
      problem(409, { ...refusal, request_id: 'r-2' }),
      'request_id',
    ],
    [
      'a type with the URL of another page',
      problem(409, { ...refusal, type: 'https://docs.test/x' }),
      'page',
    ],
    ['a known code with another status', problem(422, { ...refusal, status: 422 }), 'answered with 409'],
    ['server_busy without Retry-After', problem(409, refusalBy('server_busy')), 'carries Retry-After'],
    [
      'no_gpu_capacity with Retry-After',
      problem(409, refusalBy('no_gpu_capacity'), { 'retry-after': '3' }),
      'carries no Retry-After',
    ],
    ['invalid_request without a field', problem(422, refusalBy('invalid_request', 422)), 'invalid_params'],
  ])('reports %s', (_what, answer, expected) => {
    expect(found(request('DELETE', '/ips/7'), answer)).toContain(expected);
  });

  test('reports a 429 without a numeric Retry-After', () => {
    const limited = refusalBy('limit', 429);
    expect(found(request('GET', '/ips'), problem(429, limited))).toContain('no Retry-After');
    expect(found(request('GET', '/ips'), problem(429, limited, { 'retry-after': 'soon' }))).toContain(
      'Retry-After',
    );
  });

  test('reports an incorrect answer to an unknown path or method', () => {
    expect(found(request('GET', '/nowhere'), json(200, { data: 1 }))).toContain('unknown path');
    const refused = refusalBy('m', 405);
    expect(found(request('DELETE', '/project'), problem(405, refused))).toContain('no Allow');
    expect(found(request('DELETE', '/ips'), problem(405, refused, { allow: 'GET' }))).toContain(
      'does not list POST',
    );
  });

  test('reports a task with contradictory fields, and a missing task', () => {
    expect(
      found(request('GET', '/tasks/t-1'), json(200, { data: { ...task, is_terminal: true } })),
    ).toContain('is_terminal');
    expect(found(request('GET', '/tasks/t-1'), json(200, { data: { ...task, status: 'done' } }))).toContain(
      'allowed values',
    );
    expect(found(request('DELETE', '/networks/1'), json(202, { data: null }))).toContain(
      "required property 'task'",
    );
  });

  test('reports a success where the document refuses the request', () => {
    const headers = { 'content-type': 'application/json' };
    const taken = json(201, { data: ip });
    const ips = (body: string, over: Partial<HttpRequest> = {}) =>
      found(request('POST', '/ips', { headers, body, ...over }), taken);
    expect(ips('{}')).toBe('');
    expect(ips('{"colour":"red"}')).toContain('additional properties');
    expect(ips('{"server_type_id":0}')).toContain('>= 1');
    expect(ips('{"server_type_id":"1"}')).toContain('must be integer');
    expect(ips('{}', { headers: { 'content-type': 'application/x-www-form-urlencoded' } })).toContain(
      'not sent as JSON',
    );
    expect(ips('{}', { headers: { ...headers, 'idempotency-key': 'short' } })).toContain('fewer than 8');
    expect(found(request('GET', '/ips?colour=red'), json(200, { data: [] }))).toContain(
      'query parameter colour',
    );
  });

  test('measures the length of strings of a request after trimming', () => {
    const name = `  ${'n'.repeat(30)}  `;
    const sent = request('POST', '/networks', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, cidr: '10.0.0.0/24' }),
    });
    expect(found(sent, json(202, { data: null, task }))).toBe('');
  });
});
