import { describe, expect, test } from 'vitest';
import { open } from '../contract.ts';

const MINUTE_MS = 60_000;

describe('§8 limits', () => {
  test('§8 reads: 60 per minute per token, then 429 with Retry-After', async () => {
    const api = await open({ limited: true });
    const statuses: number[] = [];
    for (let n = 0; n < 61; n += 1) statuses.push((await api.get('/project')).status);
    expect(statuses.slice(0, 60)).toEqual(Array(60).fill(200));
    expect(statuses[60]).toBe(429);
  });

  test('§8 writes: 20 per minute per token, then 429 and nothing done', async () => {
    const api = await open({ limited: true });
    const statuses: number[] = [];
    for (let n = 0; n < 21; n += 1) statuses.push((await api.post('/ips', {})).status);
    expect(statuses.slice(0, 20)).toEqual(Array(20).fill(201));
    expect(statuses[20]).toBe(429);
    expect((await api.get('/ips')).data).toHaveLength(20);
  });

  test('§8 Retry-After gives the seconds left in the current minute', async () => {
    const api = await open({ limited: true });
    api.advance(MINUTE_MS - (api.now() % MINUTE_MS) + 15_000);
    for (let n = 0; n < 20; n += 1) await api.post('/ips', {});
    for (let n = 0; n < 60; n += 1) await api.get('/project');
    for (const refused of [await api.post('/ips', {}), await api.get('/project')]) {
      expect([refused.status, refused.headers['retry-after']]).toEqual([429, '45']);
    }
    api.advance(44_000);
    expect((await api.post('/ips', {})).headers['retry-after']).toBe('1');
    api.advance(1_000);
    expect((await api.post('/ips', {})).status).toBe(201);
  });

  test('§8 tokens of one project do not share a budget', async () => {
    const api = await open({ limited: true });
    for (let n = 0; n < 61; n += 1) await api.get('/project');
    expect((await api.get('/project')).status).toBe(429);
    expect((await api.get('/project', { token: api.tokens.read })).status).toBe(200);
    expect((await api.get('/project', { token: api.tokens.member })).status).toBe(200);
  });

  test('§8 a refused write costs budget like any other; §8 no header tells the remaining allowance', async () => {
    const api = await open({ limited: true });
    for (let n = 0; n < 20; n += 1) expect((await api.post('/networks', {})).status).toBe(422);
    expect((await api.post('/networks', {})).status).toBe(429);
  });
});
