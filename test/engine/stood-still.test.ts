import { describe, expect, test } from 'vitest';
import { memoryState } from '../../src/state/memory.ts';
import { type Rig, rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true}\n';
const wanted = `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`;

/** A machine that stands still once, in the last moment before a write goes out. */
function sleeper(pause: (played: Rig) => Promise<void>): Rig {
  const store = memoryState({ createdAt: 1, lineage: 'test' });
  const record = store.recordUse.bind(store);
  let pauses = 1;
  store.recordUse = async (bucket, at) => {
    await record(bucket, at);
    if (bucket.endsWith(':writes') && pauses-- > 0) await pause(played);
  };
  const played: Rig = rig({ store });
  return played;
}

describe('engine: a machine that stands still right before it sends', () => {
  test('looks again, and sends nothing that was decided before', async () => {
    const played = sleeper(async ({ clock, emulator }) => {
      await clock.sleep(10 * 60_000);
      emulator.mutate({ do: 'add_network', name: 'backend', cidr: '10.20.0.0/24' });
    });

    const report = await played.apply(wanted);

    expect(played.writes()).toEqual([]);
    expect(report.blocked.map(({ code }) => code)).toContain('name_exists');
  });

  test('whichever of its clocks went on', async () => {
    const played = sleeper(async ({ clock }) => clock.jump(3_600_000));

    const report = await played.apply(wanted);

    const [write] = played.writes();
    const look = played.sent.findLast(({ method, path, at }) => {
      return method === 'GET' && path === '/networks' && at <= (write?.at ?? 0);
    });
    expect(report.outcome).toBe('converged');
    expect(played.writes()).toHaveLength(1);
    expect((write?.at ?? 0) - (look?.at ?? 0)).toBeLessThanOrEqual(30_000);
    const [intent] = await played.store.intents({ limit: 1 });
    expect(intent?.sends).toBe(2);
  });
});
