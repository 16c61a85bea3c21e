import { describe, expect, test } from 'vitest';
import type { ReadPort } from '../../src/core/ports.ts';
import type { ServerId } from '../../src/core/resources.ts';
import { createReadCache } from '../../src/engine/observe.ts';
import { virtualClock } from '../support/virtual-clock.ts';

describe('src/engine/observe.ts', () => {
  test('an earlier read does not show a server whose parts are gone', async () => {
    let there = true;
    const read: Partial<ReadPort> = {
      findNetworkInterfaces: async () => (there ? [] : undefined),
      findFirewall: async () =>
        there ? { enabled: true, policy_in: 'drop', policy_out: null, rules: [] } : undefined,
    };
    const cache = createReadCache(read as ReadPort, virtualClock(), () => '');
    const [gone, other] = [2001 as ServerId, 2002 as ServerId];
    for (const id of [gone, other]) {
      await cache.since(0).findNetworkInterfaces(id);
      await cache.since(0).findFirewall(id);
    }
    there = false;

    expect(await cache.refresh('server 2001 findFirewall', read as ReadPort)).toBe(true);

    expect(await cache.since(0).findNetworkInterfaces(gone)).toBeUndefined();
    expect(await cache.since(0).findNetworkInterfaces(other)).toEqual([]);
  });
});
