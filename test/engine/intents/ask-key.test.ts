import { describe, expect, test } from 'vitest';
import { type FaultAction, faultRule } from '../../../src/emulator/faults.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import { expectFixedPoint, expectInvariants, isProbe, isSpare } from '../../support/invariants.ts';
import { type Rig, rig } from '../../support/rig.ts';
import { executed, gpu, head, hour, ips } from '../shop.ts';

const network = `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`;
const specs = [
  ['a network', network, 'create_network', 'network'],
  ['an address', ips('web'), 'allocate_ip', 'ip'],
  ['a server that no read shows', gpu, 'create_server', 'server'],
] as const;

/** When the API looks at bodies, and whether it stores their refusals. */
const bodyChecks = ['afterKey', 'beforeKey', 'beforeKeyUnstored'] as const;

/** The creation's first send comes out so. */
function disturbed(path: string, action: FaultAction, readings: Partial<Readings> = {}): Rig {
  const played = rig({ emulator: { readings } });
  played.emulator.setFaults([faultRule({ path, nth: 1 }, action)]);
  return played;
}

/** A letter for each send, another one for another key, and `?` for each probe; calibrations are left out. */
function sends(played: Rig): string {
  const letters = new Map<string, string>();
  const shown = played.writes().filter((each) => !isSpare(each));
  return shown
    .map((each) => {
      const { key = '' } = each;
      letters.set(key, letters.get(key) ?? 'abcdef'.charAt(letters.size));
      return isProbe(each) ? '?' : letters.get(key);
    })
    .join('');
}

async function expectMadeOnce(played: Rig, spec: string, kind: string): Promise<void> {
  const report = await played.apply(spec);
  expect(report.blocked).toEqual([]);
  expect(report.outcome).toBe('converged');
  expect(executed(played, kind)).toBe(1);
  await expectInvariants(played);
  expectFixedPoint(await played.plan(spec));
}

describe('src/engine/intents/ask-key.ts', () => {
  const lost = { do: 'reset' } as const;
  const done = { do: 'reset', effect: 'done' } as const;

  test.each([
    ['afterKey', lost, 'a??b'],
    ['beforeKey', lost, 'a??b'],
    ['beforeKeyUnstored', lost, 'aa'],
    ['afterKey', done, 'a?a'],
    ['beforeKey', done, 'a???a'],
  ] as const)('%s, %j: the row of the table', async (bodyCheck, action, follows) => {
    for (const [name, spec, path, kind] of specs) {
      const played = disturbed(path, action, { bodyCheck });
      await expectMadeOnce(played, spec, kind);
      expect(sends(played), name).toBe(follows);
    }
  });

  const reuses = [
    { reusedKeyStatus: 422, reusedKeyCode: 'idempotency_key_reused' },
    { reusedKeyStatus: 422, reusedKeyCode: 'invalid_request' },
    { reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' },
    { reusedKeyStatus: 400, reusedKeyCode: 'conflicting_request' },
  ] as const satisfies readonly Partial<Readings>[];

  test.each(
    reuses,
  )('however a used key is refused (%j), the stored answer is found under it', async (reuse) => {
    for (const bodyCheck of bodyChecks) {
      for (const [, spec, path, kind] of specs)
        await expectMadeOnce(disturbed(path, done, { ...reuse, bodyCheck }), spec, kind);
    }
  });

  test('an original that arrives behind the fence is refused', async () => {
    const played = disturbed('create_server', { do: 'late', ms: 200_000, holdsKey: false });
    await expectMadeOnce(played, gpu, 'server');
    await played.clock.advance(hour);
    expect(sends(played)).toBe('a??b');
    const [first] = played.writes();
    expect(played.emulator.world.executions.map(({ idempotencyKey }) => idempotencyKey)).not.toContain(
      first?.key,
    );
  });
});
