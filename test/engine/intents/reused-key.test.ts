import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { documentedProfile } from '../../../src/core/profile.ts';
import { DEFAULT_PROFILE } from '../../../src/emulator/profile.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { settleByHand } from '../../support/operator.ts';
import { resolveOf, resolving } from '../../support/resolve.ts';
import { load, type Rig, type RigOptions, rig } from '../../support/rig.ts';

const head = 'settings: {exclusive: true, unmanaged: ignore}\n';
const server = (cores: number | string) =>
  `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

const billsOf = ({ emulator }: Rig) =>
  emulator.world.executions.filter(({ kind }) => kind === 'server').length;

/** One state bought the server; another one, which never heard of it, is given an edited file. */
async function bought(readings: Partial<Readings>, wrap?: RigOptions['wrap']) {
  const played = rig({ emulator: { readings }, ...(wrap === undefined ? {} : { wrap }) });
  const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
  await played.apply(server(1));
  played.restart(other);
  const bills = () => billsOf(played);
  return { ...played, other, bills };
}

describe('src/engine/intents/next-incarnation.ts: a key that was used before this state knew it', () => {
  test.each([
    [422, 'idempotency_key_reused'],
    [422, 'invalid_request'],
    [422, 'conflicting_request'],
    [400, 'conflicting_request'],
  ] as const)('refused with %s %s: asked about, and not bought again when the entry is edited', async (status, code) => {
    const { apply, bills } = await bought({ reusedKeyStatus: status, reusedKeyCode: code });

    const [first] = (await apply(server(2))).blocked;
    const [then] = (await apply(server(4))).blocked;

    expect([first?.code, then?.code]).toEqual(['key_conflict', 'key_conflict']);
    expect(resolveOf(then)).toContain('vdcsync resolve servers.web --adopt');
    expect(resolveOf(then)).not.toContain('correct the entry');
    expect(bills()).toBe(1);
  });

  test('a refusal that names no field, and is replayed, is one of the entry', async () => {
    const operations = { named_address: { body: { ip_id: '{ip_id}' } } };
    const profile = { ...documentedProfile, operations };
    const played = rig({ profile, emulator: { profile: { ...DEFAULT_PROFILE, operations } } });
    const spec = (address: string) =>
      `ips: {spare: {}, right: {server_type_id: 8}}
servers: {gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: l40s-1, public_ipv4: {ip: ${address}}}}\n`;

    const { blocked, plan } = await played.apply(spec('spare'));
    const [refused] = blocked;
    await settleByHand(played, spec('spare'));
    const [again] = (await played.apply(spec('spare'))).blocked;

    expect(refused).toMatchObject({
      code: 'ip_not_usable',
      reason: expect.not.stringContaining('idempotency key'),
      remedies: resolving(expect.stringMatching(/^correct the entry at vdcsync\.yaml:/)),
    });
    expect(plan.warnings).toMatchObject([
      { code: 'address_pool_unchecked', message: expect.stringContaining('`server_type_id: 8`') },
    ]);
    expect(again).toEqual(refused);
    expect((await played.apply(spec('right'))).outcome).toBe('converged');
  });

  test('refused with a 409 that never ends: an operator can have it made under another key', async () => {
    const { apply, emulator, restart, clock, other } = await bought({
      reusedKeyStatus: 409,
      reusedKeyCode: 'conflicting_request',
    });
    emulator.mutate({ do: 'delete_server', id: 2001 });

    const [refused] = (await apply(server(2))).blocked;
    await clock.run(
      restart(other).resolve(load(server(2)), 'servers.web' as ResourceKey, { type: 'absent' }),
    );

    expect(refused).toMatchObject({ code: 'key_conflict' });
    expect(resolveOf(refused)).toMatch(
      /^vdcsync resolve servers\.web --adopt ID .*\| vdcsync resolve servers\.web --absent/,
    );
    expect((await apply(server(2))).outcome).toBe('converged');
  });
});
