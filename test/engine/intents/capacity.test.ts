import { describe, expect, test } from 'vitest';
import { expectInvariants } from '../../support/invariants.ts';
import { rig } from '../../support/rig.ts';
import { gpu } from '../shop.ts';

const minute = 60_000;
const hour = 60 * minute;
const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

describe('src/engine/intents/capacity.ts', () => {
  test('the next preference has a key of its own; with none left the list begins anew after a pause', async () => {
    const played = rig();
    for (const name of ['l40s-2', 'l40s-1'])
      played.emulator.mutate({ do: 'set_capacity', package: name, capacity: 0 });
    void played.clock
      .sleep(hour)
      .then(() => played.emulator.mutate({ do: 'set_capacity', package: 'l40s-2', capacity: 1 }));

    const report = await played.apply(gpu);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.world.projects[0]?.servers.map(({ gpuPackage }) => gpuPackage)).toEqual([
      'l40s-2',
    ]);
    expect(played.clock.monotonic()).toBeLessThan(hour + 20 * 60_000);
    expect(played.writes().length).toBeLessThan(60);
    await expectInvariants(played);
  });
});

describe('src/engine/intents/settle.ts: a list of GPU packages', () => {
  test('tells which of them was bought', async () => {
    const played = rig();
    played.emulator.mutate({ do: 'set_capacity', package: 'l40s-2', capacity: 0 });
    const gpu = `${head}servers:\n  gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: [l40s-2, l40s-1]}\n`;

    const { results } = await played.apply(gpu);

    const [kept] = await played.store.intents({ limit: 1 });
    expect([results[0]?.detail, kept?.detail]).toEqual(['gpu_package l40s-1', 'gpu_package l40s-1']);
    const sent = played.events.flatMap((event) =>
      event.type === 'progress' && event.step === 'sent' ? [event.detail.split(' ').at(-1)] : [],
    );
    expect(sent).toEqual(['l40s-2', 'l40s-1']);
  });
});
