import { describe, expect, test } from 'vitest';
import type { Readings } from '../../../src/emulator/readings.ts';
import { type Rig, type RigOptions, rig } from '../../support/rig.ts';

const file = (cores: number, more = '') =>
  `ips: {web: {}}\nservers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {ip: web}, replace: allowed${more}}\n`;
/** More than the emulator can host, if it checks that. */
const tooLarge = 64;

const servers = (played: Rig) => played.project.servers.map(({ id, cores }) => [id, cores]);
const addresses = (played: Rig) => played.project.ips.map(({ id, serverId }) => [id, serverId]);

async function made(readings: Partial<Readings> = {}, options: RigOptions = {}): Promise<Rig> {
  const played = rig({ emulator: { readings }, ...options });
  await played.apply(file(1));
  return played;
}

describe('src/engine/intents/prove.ts: the old server is deleted first', () => {
  test.each([
    ['nothing', 0],
    ['forms', 0],
    ['limits', 0],
    ['everything', 1],
  ] as const)('with an API that names %s next to an unknown field, %i of 1 servers survives a refused size', async (besideUnknownField, alive) => {
    const played = await made({ besideUnknownField, sizeBounds: 'on' });

    await played.apply(file(tooLarge));

    expect(servers(played)).toHaveLength(alive);
    expect(addresses(played)).toHaveLength(1);
    expect((await played.apply(file(2))).outcome).toBe('converged');
    expect(servers(played).map(([, cores]) => cores)).toEqual([2]);
  });

  test.each([
    ['nothing', true],
    ['forms', true],
    ['everything', false],
  ] as const)('an API that names %s leaves the size unproven: %s', async (besideUnknownField, isUnproven) => {
    const played = await made({ besideUnknownField, sizeBounds: 'on' });
    const unproven = async () =>
      (await played.plan(file(4))).warnings.filter(({ code }) => code === 'replacement_unchecked');

    expect(await unproven()).toMatchObject([{ message: expect.stringContaining('unproven: `cores: 4`') }]);
    await played.apply(file(2));

    const values = isUnproven ? '`cores: 4`, payment and quota' : 'payment and quota';
    expect(await unproven()).toMatchObject([{ message: expect.stringContaining(`unproven: ${values}.`) }]);
  });
});
