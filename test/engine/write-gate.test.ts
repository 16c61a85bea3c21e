import { describe, expect, test } from 'vitest';
import { firewallKey, type ResourceKey } from '../../src/core/keys.ts';
import { createWriteGate } from '../../src/engine/write-gate.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';

const sleep = () => new Promise<void>(() => {});

describe('src/engine/write-gate.ts', () => {
  /** The names of works in the order of their turns; all of them wait while the first one has its turn. */
  async function turnsOf(works: readonly (readonly [name: string, urgency: number, at?: number])[]) {
    let now = 0;
    const gate = createWriteGate({ monotonic: () => now, sleep });
    const order: string[] = [];
    const first = Promise.withResolvers<void>();
    const all = [gate.run(() => first.promise, { urgency: 1 })];
    for (const [name, urgency, at = 0] of works) {
      now = at;
      all.push(gate.run(async () => void order.push(name), { urgency }));
    }
    expect(gate.isWaited()).toBe(true);
    first.resolve();
    await Promise.all(all);
    expect(gate.isWaited()).toBe(false);
    return order;
  }

  test('waiting writes take turns in proportion to their urgency, so that none is left for the end', async () => {
    const servers = Array.from({ length: 40 }, (_, at) => [`server ${at}`, 4] as const);
    const cards = Array.from({ length: 30 }, (_, at) => [`card ${at}`, 3] as const);
    const order = await turnsOf([...servers, ...cards]);
    for (const length of [14, 28, 56]) {
      const count = order.slice(0, length).filter((name) => name.startsWith('server')).length;
      expect(Math.abs(count - (length * 4) / 7), `of ${length} turns`).toBeLessThanOrEqual(1);
    }
    expect(order).toHaveLength(70);
  });

  test('a write of infinite urgency precedes all other writes', async () => {
    const firewalls = [
      ['firewall 1', Number.POSITIVE_INFINITY] as const,
      ['firewall 2', Number.POSITIVE_INFINITY] as const,
    ];
    const order = await turnsOf([['server', 4], ['card', 3], ...firewalls]);
    expect(order).toEqual(['firewall 1', 'firewall 2', 'server', 'card']);
  });

  test('of equally urgent writes, fresh reads come first, then the longest wait', async () => {
    const order = await turnsOf([
      ['old 1', 3, 0],
      ['old 2', 3, 1_000],
      ['fresh 1', 3, 50_000],
      ['fresh 2', 3, 60_000],
    ]);
    expect(order).toEqual(['fresh 1', 'fresh 2', 'old 1', 'old 2']);
  });

  test('the writes with the next turns prepare their reads, each once', async () => {
    const gate = createWriteGate({ monotonic: () => 0, sleep });
    const first = Promise.withResolvers<void>();
    const ready: string[] = [];
    const order: string[] = [];
    const all = [gate.run(() => first.promise, { urgency: 1 })];
    for (const [name, urgency] of [
      ['card', 1],
      ['server 1', 4],
      ['server 2', 4],
      ['server 3', 4],
      ['server 4', 4],
    ] as const)
      all.push(
        gate.run(async () => void order.push(name), { urgency, getReady: () => void ready.push(name) }),
      );
    gate.readyNext();
    gate.readyNext();
    const early = [...ready];
    first.resolve();
    await Promise.all(all);
    expect(early).toEqual(order.slice(0, 4));
  });

  describe('with a write budget', () => {
    /** A budget whose slots are free at these times. */
    function budget(clock: VirtualClock, freeAt: readonly number[]) {
      const slots = freeAt.toSorted((a, b) => a - b);
      const order: string[] = [];
      const roomMs = (writes: number) => Math.max(0, (slots[writes - 1] ?? 60_000) - clock.monotonic());
      const gate = createWriteGate(clock, { roomMs, writeIntervalMs: () => 7_000 });
      const write = (name: string, urgency: number, exposes = false) =>
        gate.run(
          async () => {
            slots.shift();
            slots.push(clock.monotonic() + 60_000);
            order.push(`${name} at ${clock.monotonic() / 1000}`);
            if (exposes) gate.expect(firewallKey(`servers.${name}` as ResourceKey));
          },
          { urgency, exposes },
        );
      return { gate, write, order };
    }
    const firewall = Number.POSITIVE_INFINITY;

    test('a server is created when its firewall has a slot too, and other writes precede it', async () => {
      const clock = virtualClock();
      const { gate, write, order } = budget(clock, [0, 30_000, 30_400]);
      const done = [write('server', 4, true), write('card', 3)];
      void done[0]?.then(async () => {
        await write('firewall', firewall);
        gate.settle(firewallKey('servers.server' as ResourceKey));
      });
      done.push(write('card 2', 3));
      await clock.run(Promise.all(done));
      expect(order).toEqual(['card at 0', 'server at 30', 'firewall at 30.4', 'card 2 at 60']);
    });

    test('while a firewall waits for the end of a creation, other writes leave a slot to it', async () => {
      const clock = virtualClock();
      const { gate, write, order } = budget(clock, [0, 0, 0]);
      gate.firewallAfterMs = 40_000;
      await clock.run(write('server', 4, true));
      const others = [write('card 1', 3), write('card 2', 3)];
      await clock.run(clock.sleep(40_000));
      await clock.run(write('firewall', firewall));
      gate.settle(firewallKey('servers.server' as ResourceKey));
      await clock.run(Promise.all(others));
      expect(order).toEqual(['server at 0', 'card 1 at 0', 'firewall at 40', 'card 2 at 60']);
    });

    test('the slot of a firewall serves other writes until the next poll of the creation', async () => {
      const clock = virtualClock();
      const { gate, write, order } = budget(clock, [0, 0, 20_000]);
      gate.firewallAfterMs = 10_000;
      await clock.run(write('server', 4, true));
      const card = write('card', 3);
      await clock.run(clock.sleep(10_000));
      expect(order).toEqual(['server at 0']);
      gate.postpone(firewallKey('servers.server' as ResourceKey), 14_000);
      await clock.run(card);
      expect(order).toEqual(['server at 0', 'card at 10']);
    });

    test('while firewalls wait for the ends of creations, the other writes are spread evenly', async () => {
      const clock = virtualClock();
      const { gate, write, order } = budget(clock, Array(20).fill(0));
      gate.firewallAfterMs = 40_000;
      const names = Array.from({ length: 5 }, (_, at) => `${at + 1}`);
      await clock.run(Promise.all(names.map((name) => write(name, 4, true))));
      expect(order).toEqual(['1 at 0', '2 at 0', '3 at 1.4', '4 at 16.1', '5 at 30.8']);
    });

    test('an aborted wait leaves no alarm', async () => {
      const clock = virtualClock();
      const { gate } = budget(clock, [30_000]);
      const stop = new AbortController();
      const work = gate.run(async () => undefined, { urgency: 1, signal: stop.signal });
      stop.abort(new Error('stopped'));
      await expect(work).rejects.toThrow('stopped');
      expect([gate.isWaited(), clock.sleeping]).toEqual([false, 0]);
    });
  });
});
