import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { expectFixedPoint, expectInvariants } from '../../support/invariants.ts';
import { resolving } from '../../support/resolve.ts';
import { rig } from '../../support/rig.ts';
import { executed, gpu, hour, ips, server } from '../shop.ts';

const alone = (spec: string) => spec.replace('exclusive: true', 'exclusive: false');
const cases = [
  ['an address', alone(ips('web')), 'allocate_ip', 'ip'],
  ['a server that only its address shows', alone(server()), 'create_server', 'server'],
  ['a server that no read shows', gpu, 'create_server', 'server'],
  [
    'the same, where an operator decides',
    gpu.replace('{', '{unconfirmed_servers: ask, '),
    'create_server',
    'server',
  ],
] as const;

describe('src/engine/intents/evidence.ts', () => {
  test.each(
    cases,
  )('%s whose acceptance is unreadable three times is replayed by the next run, and nobody is asked', async (_name, spec, path, kind) => {
    const played = rig();
    played.emulator.setFaults([faultRule({ path, nth: 1, times: 3 }, { do: 'malformed' })]);

    const report = await played.apply(spec);

    expect(report.blocked).toMatchObject([{ code: 'key_not_answered' }]);
    expect(played.clock.monotonic()).toBeLessThan(5 * 60_000);
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(executed(played, kind)).toBe(1);
    await expectInvariants(played);
    expectFixedPoint(await played.plan(spec));
  });

  test('an acceptance that stays unreadable is replayed at most twice by each run, and the operator is asked when the key is old', async () => {
    const played = rig();
    played.emulator.setFaults([faultRule({ path: 'create_server' }, { do: 'malformed' })]);
    await played.apply(gpu);
    const sent = played.writes().length;

    expect((await played.apply(gpu)).blocked).toMatchObject([{ code: 'key_not_answered' }]);
    expect(played.writes().length - sent).toBeOneOf([1, 2]);
    const most = played.writes().length;
    await played.clock.advance(23 * hour);

    expect((await played.apply(gpu)).blocked).toMatchObject([
      { code: 'key_too_old', remedies: resolving(expect.stringContaining('--absent')) },
    ]);
    expect(played.writes()).toHaveLength(most);
    expect(executed(played, 'server')).toBe(1);
  });
});
