import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { isProbe } from '../../support/invariants.ts';
import { rig } from '../../support/rig.ts';
import { converges, executed, hour, ips, shop } from '../shop.ts';

describe('src/engine/intents: the clock', () => {
  test.each([
    ['back', -25 * hour],
    ['forward', 25 * hour],
  ])('set %s a day while a task runs and while an answer is lost: bought once', async (_way, ms) => {
    for (const fault of [undefined, { do: 'reset', effect: 'done' } as const, { do: 'reset' } as const]) {
      for (const moment of [1_000, 30_000, 61_000, 100_000]) {
        const played = rig();
        if (fault !== undefined)
          played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, fault)]);
        void played.clock.sleep(moment).then(() => played.clock.jump(ms));

        await converges(played, shop);

        expect(executed(played, 'server'), `${moment}`).toBe(1);
        expect(played.clock.monotonic(), 'no wait that the clock made endless').toBeLessThan(4 * hour);
      }
    }
  });

  test('a key of 23 h is not sent again, though nothing is to be seen', async () => {
    const played = rig();
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset' })]);
    const stop = new AbortController();
    void played.clock.sleep(70_000).then(() => stop.abort());
    await played.apply(ips('web'), { stop: stop.signal });
    await played.clock.advance(24 * hour);
    played.restart();

    const report = await played.apply(ips('web'));

    expect(report.blocked).toMatchObject([{ key: 'ips.web', code: 'key_too_old' }]);
    expect(played.writes().filter((each) => !isProbe(each))).toHaveLength(1);
    await converges(played, ips('web'));
    expect(executed(played, 'ip')).toBe(1);
  });
});
