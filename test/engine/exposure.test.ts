import { describe, expect, test } from 'vitest';
import { exposureOf } from '../../bench/exposure.ts';

describe('src/engine/intents/created-server.ts: how long new servers are exposed', () => {
  test.each([
    1, 20, 40,
  ])('%i servers: each firewall is accepted before the task of its server ends', async (servers) => {
    const { afterTask, exposed } = await exposureOf(servers);
    expect(afterTask).toHaveLength(servers);
    expect(Math.max(...afterTask)).toBeLessThanOrEqual(0);
    expect(Math.max(...exposed)).toBeLessThanOrEqual(5);
  });

  test.each([
    ['a refusal during the creation', { firewallWhileCreating: 409 } as const],
    ['a public network interface that comes late', { publicCardAt: 'taskDone' } as const],
  ])('%s: the firewall follows the end of the task, and the run goes on', async (_name, readings) => {
    const { afterTask } = await exposureOf(5, readings);
    expect(Math.min(...afterTask)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...afterTask)).toBeLessThanOrEqual(15);
  });
});
