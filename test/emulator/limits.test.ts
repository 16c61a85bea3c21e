import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/emulator/profile.ts';
import { stage } from './support.ts';

describe('src/emulator/limits.ts', () => {
  test('Retry-After is in real seconds when the clock runs faster', async () => {
    const { call } = stage({ speed: 10 });
    for (let read = 0; read < 60; read += 1) await call('GET', '/project');
    expect((await call('GET', '/project')).headers['retry-after']).toBe('6');
  });

  test('the profile sets the window and its limits, and the reading sets the phase', async () => {
    const profile = loadProfile('limits: {window: 10s, reads: 2, writes: 1}');
    const { call, clock } = stage({ profile, readings: { minutePhaseMs: 4000 } });
    await call('GET', '/project');
    await call('GET', '/project');
    expect((await call('GET', '/project')).headers['retry-after']).toBe('4');
    await clock.advance(4000);
    expect((await call('GET', '/project')).status).toBe(200);
  });

  test('with `refusalsCost`, a 429 uses budget of the next minute', async () => {
    const { call, clock } = stage({ readings: { refusalsCost: true } });
    for (let write = 0; write < 25; write += 1) await call('POST', '/ips', {});
    await clock.advance(60_000);
    const statuses = [];
    for (let write = 0; write < 16; write += 1) statuses.push((await call('POST', '/ips', {})).status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(15);
  });
});
