import { describe, expect, test } from 'vitest';
import { documentedProfile } from '../../../src/core/profile.ts';
import { DEFAULT_PROFILE } from '../../../src/emulator/profile.ts';
import { settleByHand } from '../../support/operator.ts';
import { resolving } from '../../support/resolve.ts';
import { rig } from '../../support/rig.ts';

describe('src/engine/intents/next-incarnation.ts: a key that was used before this state knew it', () => {
  test('a replayed refusal that names no field is a refusal of the entry', async () => {
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
});
