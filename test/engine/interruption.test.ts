import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { memoryState } from '../../src/state/memory.ts';
import { rig } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { converges, executed, hour, shop } from './shop.ts';

describe('src/engine/interruption.ts: stop and halt', () => {
  test.each([
    'stop',
    'halt',
  ] as const)('%s at any time: the run ends, leaves nothing running, and the next one converges', async (signal) => {
    for (let ms = 0; ms < 120_000; ms += 7_300) {
      const played = rig();
      played.emulator.setFaults([
        faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset' }),
        faultRule({ path: 'create_network', nth: 1, times: 3 }, { do: 'answer', status: 409, code: 'odd' }),
        faultRule({ path: 'list_ips', nth: 3, times: 2 }, { do: 'answer', status: 503 }),
      ]);
      const controller = new AbortController();
      let endedAt = Number.POSITIVE_INFINITY;
      void played.clock.sleep(ms).then(() => controller.abort());

      const report = await played.apply(shop, { [signal]: controller.signal }).catch((error: unknown) => {
        expect(error).toBe(controller.signal.reason);
        return undefined;
      });

      endedAt = played.clock.monotonic();
      const sent = played.sent.length;
      if (controller.signal.aborted) {
        if (report !== undefined) expect(report.outcome).toBe('stopped');
        const graceMs = signal === 'halt' ? 31_000 : 120_000;
        expect(endedAt - ms, `${signal} at ${ms}`).toBeLessThan(graceMs);
        expect(played.clock.sleeping, `${signal} at ${ms}: no work is left running`).toBe(0);
        await played.clock.advance(hour);
        expect(played.sent.length).toBe(sent);
      }
      const plans = played.events.flatMap((event) => (event.type === 'planned' ? [event.plan] : []));
      const drift = plans.flatMap((plan) => plan.operations.filter(({ cause }) => cause === 'drift'));
      expect(
        drift.map(({ id }) => id),
        `${signal} at ${ms}: nothing changed outside`,
      ).toEqual([]);
      played.restart();
      await converges(played, shop);
      expect(executed(played, 'server')).toBe(1);
    }
  });

  test('halt while the writes of an earlier run settle: no plan from the reads before these writes', async () => {
    for (let ms = 200; ms < 40_000; ms += 1_700) {
      const played = rig();
      const first = new AbortController();
      void played.clock.sleep(3_000).then(() => first.abort());
      await played.apply(shop, { halt: first.signal }).catch(() => undefined);
      const open = await played.store.openIntents();
      expect(open.map(({ key }) => key)).toContain('servers.web');
      played.restart();
      const before = played.events.length;
      const second = new AbortController();
      void played.clock.sleep(ms).then(() => second.abort());

      await played.apply(shop, { halt: second.signal }).catch((error: unknown) => {
        expect(error).toBe(second.signal.reason);
      });

      const bound = new Set((await played.store.bindings()).map(({ key }) => key));
      const plans = played.events
        .slice(before)
        .flatMap((event) => (event.type === 'planned' ? [event.plan] : []));
      const again = plans
        .flatMap(({ operations }) => operations)
        .filter(({ key, cause }) => cause === 'drift' || (key === 'servers.web' && bound.has(key)));
      expect(
        again.map(({ id }) => id),
        `halt after ${ms} ms`,
      ).toEqual([]);
    }
  });

  test('a state that cannot be written ends the run with its error, and nothing goes on', async () => {
    const inner = memoryState({ createdAt: virtualClock().now(), lineage: 'test' });
    let full = false;
    const store = new Proxy(inner, {
      get(target, name) {
        const member = target[name as keyof typeof inner] as (...given: unknown[]) => Promise<unknown>;
        if (member === undefined) return undefined;
        return async (...given: unknown[]) => {
          if (full && name === 'updateIntent') throw new Error('the disk is full');
          return member.apply(target, given);
        };
      },
    });
    const played = rig({ store });
    void played.clock.sleep(1_500).then(() => {
      full = true;
    });

    await expect(played.apply(shop)).rejects.toThrow('the disk is full');

    expect(played.clock.sleeping).toBe(0);
    full = false;
    await converges(played, shop);
  });
});
