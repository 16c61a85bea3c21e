import { describe, expect, test } from 'vitest';
import { open } from '../contract.ts';

const MINUTE_MS = 60_000;

describe('§8 limits', () => {
  test('§8 60 reads and 20 writes a minute and token, then 429 without effect and with the seconds left', async () => {
    const api = await open({ limited: true });
    api.advance(MINUTE_MS - (api.now() % MINUTE_MS) + 15_000);
    for (let n = 0; n < 20; n += 1) expect((await api.post('/ips', {})).status).toBe(201);
    for (let n = 0; n < 60; n += 1) expect((await api.get('/project')).status).toBe(200);
    for (const refused of [await api.post('/ips', {}), await api.get('/project')]) {
      expect([refused.status, refused.headers['retry-after']]).toEqual([429, '45']);
    }
    api.advance(44_000);
    expect((await api.post('/ips', {})).headers['retry-after']).toBe('1');
    api.advance(1_000);
    expect((await api.get('/ips')).data).toHaveLength(20);
    expect((await api.post('/ips', {})).status).toBe(201);
  });

  test('§8 tokens of one project do not share a budget', async () => {
    const api = await open({ limited: true });
    for (let n = 0; n < 60; n += 1) await api.get('/project');
    const tokens = [api.tokens.readWrite, api.tokens.read, api.tokens.member];
    const answers = await Promise.all(tokens.map((token) => api.get('/project', { token })));
    expect(answers.map(({ status }) => status)).toEqual([429, 200, 200]);
  });

  test('§8 a refused write uses budget like any other write', async () => {
    const api = await open({ limited: true });
    for (let n = 0; n < 20; n += 1) expect((await api.post('/networks', {})).status).toBe(422);
    expect((await api.post('/networks', {})).status).toBe(429);
  });
});
