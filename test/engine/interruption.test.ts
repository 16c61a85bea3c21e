import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { moments } from '../support/drawn.ts';
import { rig } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { converges, executed, hour, shop } from './shop.ts';

describe('src/engine/run/drain.ts: stop and halt', () => {
  test.each([
    'stop',
    'halt',
  ] as const)('%s at any time: the run ends, leaves nothing running, and the next one converges', async (signal) => {
    for (const ms of moments(0, 120_000, 7_300)) {
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
        expect(endedAt - ms, `${signal} at ${ms}`).toBeLessThan(31_000);
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

  const always = { nth: 1, times: 999 };
  test.each([
    ['the time that a refused write names', 'ip', { do: 'answer', status: 429, retryAfter: 900 }, 20_000],
    ['the time that a refusal names', 'list_ips', { do: 'answer', status: 429, retryAfter: 900 }, 20_000],
    ['the next attempt at a read', 'list_ips', { do: 'answer', status: 503 }, 2_000],
    ['the next attempt at a write', 'ip', { do: 'answer', status: 409, code: 'odd' }, 20_000],
    ['the outcome of a lost write', 'ip', { do: 'reset', effect: 'none' }, 20_000],
    ['a task', 'server', { do: 'task', outcome: 'stuck' }, 200_000],
  ] as const)('a stop ends the wait for %s at once', async (_what, of, action, stopMs) => {
    const paths = { ip: ['allocate_ip', 'delete_ip'], server: ['create_server', 'delete_server'] };
    for (const destroy of [false, true]) {
      const played = rig();
      if (destroy) await converges(played, shop);
      played.emulator.setFaults(
        (of === 'list_ips' ? [of] : paths[of]).map((path) => faultRule({ path, ...always }, action)),
      );
      const startedAt = played.clock.monotonic();

      const stop = played.signalAfter(stopMs);
      const report = await played.apply(shop, { stop, destroy }).catch((error: unknown) => {
        expect(error).toBe(stop.reason);
        return undefined;
      });

      expect(report?.outcome ?? 'stopped').toBe('stopped');
      expect(played.clock.monotonic() - startedAt).toBeLessThan(stopMs + 1_000);
      expect(played.clock.sleeping).toBe(0);
    }
  });

  test('a state that cannot be written ends the run with its error, and nothing continues', async () => {
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
