import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { memoryState } from '../../src/state/memory.ts';
import { settleByHand } from '../support/operator.ts';
import { load, rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true, unmanaged: ignore}\n';
const server = (cores: number | string) =>
  `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

/** One state bought the server; another one, which never heard of it, is given an edited file. */
async function bought(readings: Partial<Readings>) {
  const played = rig({ emulator: { readings } });
  const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
  await played.apply(server(1));
  played.restart(other);
  const bills = () => played.emulator.world.executions.filter(({ kind }) => kind === 'server').length;
  return { ...played, other, bills };
}

describe('engine: a key that was used before this state knew it', () => {
  test.each([
    [422, 'idempotency_key_reused'],
    [422, 'invalid_request'],
    [422, 'conflicting_request'],
    [400, 'conflicting_request'],
  ] as const)('refused with %s %s: asked about, and not bought again when the entry is edited', async (status, code) => {
    const { apply, bills } = await bought({ reusedKeyStatus: status, reusedKeyCode: code });

    const [first] = (await apply(server(2))).blocked;
    const [then] = (await apply(server(4))).blocked;

    expect([first?.code, then?.code]).toEqual([code, code]);
    expect(then?.resolve).toContain('vdcsync resolve servers.web --adopt');
    expect(then?.resolve).not.toContain('correct the entry');
    expect(bills()).toBe(1);
  });

  test('a person who says that there is nothing has it bought', async () => {
    const played = rig({ emulator: { readings: { reusedKeyCode: 'invalid_request' } } });
    const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
    await played.apply(server(1));
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    const second = { ...played, store: other, engine: played.restart(other) };
    await played.apply(server(2));

    await settleByHand(second, server(2));

    expect((await played.apply(server(2))).outcome).toBe('converged');
  });

  test('refused with a 409 of unknown code: not bought again when the entry is edited', async () => {
    const { apply, bills } = await bought({ reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' });
    await apply(server(2));

    const [edited] = (await apply(server(4))).blocked;

    expect(edited?.code).toBe('outcome_unknown');
    expect(edited?.resolve).toContain('vdcsync resolve servers.web --adopt');
    expect(bills()).toBe(1);
  });

  test('refused with a 409 that never ends: a person can have it made under another key', async () => {
    const { apply, emulator, restart, clock, other } = await bought({
      reusedKeyStatus: 409,
      reusedKeyCode: 'conflicting_request',
    });
    emulator.mutate({ do: 'delete_server', id: 2001 });

    const [refused] = (await apply(server(2))).blocked;
    await clock.run(
      restart(other).resolve(load(server(2)), 'servers.web' as ResourceKey, { type: 'absent' }),
    );

    expect(refused).toMatchObject({ code: 'conflicting_request' });
    expect(refused?.resolve).toMatch(/^vdcsync apply .*\| vdcsync resolve servers\.web --absent/);
    expect((await apply(server(2))).outcome).toBe('converged');
  });

  test('a body that is refused for its fields waits for the file alone', async () => {
    const played = rig({ emulator: { readings: { sizeBounds: 'on' } } });

    const [blocked] = (await played.apply(server(10_000))).blocked;
    const edited = await played.apply(server(2));

    expect(blocked).toMatchObject({ code: 'invalid_request' });
    expect(blocked?.resolve).toContain('correct the entry');
    expect(edited.outcome).toBe('converged');
  });
});
