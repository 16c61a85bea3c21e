import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { load, type Rig, rig } from '../../support/rig.ts';

const size = (cores: number) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}`;
const head = 'settings: {exclusive: true, unconfirmed_servers: ask, prune: true, max_deletions: 10}\n';
const file = (cores: number, more = '') =>
  `${head}servers:\n  web: {${size(cores)}, replace: {order: delete_first}}\n${more}`;
const key = 'servers.web' as ResourceKey;

const stands = (played: Rig) => [
  played.project.servers.some(({ id }) => id === 2001),
  played.project.ips.some(({ id }) => id === 5001),
];

async function made(): Promise<Rig> {
  const played = rig();
  await played.apply(file(1));
  return played;
}

describe('src/engine/intents/revalidate.ts: a process that runs again and again', () => {
  test('holds nothing by itself that an operator has lifted in the state', async () => {
    const played = await made();
    const repeating = played.repeating();
    const twoAddresses = `${file(2)}ips:\n  one: {}\n`;
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(`${file(1)}ips:\n  one: {}\n`, { repeating });
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    expect((await played.apply(twoAddresses, { repeating })).outcome).toBe('blocked');

    await played.clock.run(played.engine.resolve(load(twoAddresses), key, { type: 'retry' }));
    const report = await played.apply(twoAddresses, { repeating });

    expect(report.outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });
});
