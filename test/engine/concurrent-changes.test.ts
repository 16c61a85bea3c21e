import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { moments } from '../support/drawn.ts';
import { expectInvariants } from '../support/invariants.ts';
import { applyWithHelp } from '../support/operator.ts';
import { around, type Rig, rig } from '../support/rig.ts';
import { converges, executed, head, shop } from './shop.ts';

describe('src/engine: a project that changes in mid-run', () => {
  test('suspended: what spends is held, what does not goes on, and later the rest', async () => {
    const played = rig();
    await played.apply(`${head}ips:\n  old: {server_type_id: 3}\n`);
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'standing', standing: 'suspended' }),
    ]);

    const report = await played.apply(shop);

    expect(report.outcome).toBe('blocked');
    expect(played.emulator.billed().some(({ kind }) => kind === 'server')).toBe(false);
    expect(report.results.find(({ key }) => key === 'ips.old')?.outcome).toBe('done');
    expect(played.writes().filter(({ path }) => path === '/servers')).toHaveLength(1);
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    await converges(played, shop);
  });

  test.each([
    ['another client allocates an address', { do: 'add_ip' }],
    ['another client makes a server', { do: 'add_server', name: 'foreign' }],
    [
      'another client makes a network of that name',
      { do: 'add_network', name: 'backend', cidr: '10.20.0.0/24' },
    ],
  ] as const)('%s at any request: ours are bought once, and theirs is left alone', async (_name, mutation) => {
    const spec = shop.replace('exclusive: true', 'exclusive: false');
    const requests = rig();
    await requests.apply(spec);
    for (const at of moments(1, requests.sent.length, 3)) {
      const played: Rig = rig({
        wrap: around(async (_request, send) => {
          if (played.sent.length === at) played.emulator.mutate(mutation);
          return send();
        }),
      });

      await applyWithHelp(played, spec);

      await expectInvariants(played);
      expect(executed(played, 'server'), `${at}`).toBeLessThanOrEqual(1);
      expect(executed(played, 'ip'), `${at}`).toBeLessThanOrEqual(2);
      expect(played.writes().every(({ method }) => method !== 'DELETE')).toBe(true);
    }
  });

  test('the server goes while its card and firewall are made: it is made again, once', async () => {
    const requests = rig();
    await requests.apply(shop);
    for (const at of moments(12, requests.sent.length, 2)) {
      const played: Rig = rig({
        wrap: around(async (_request, send) => {
          const [made] = played.emulator.world.projects[0]?.servers ?? [];
          if (played.sent.length === at && made !== undefined)
            played.emulator.mutate({ do: 'delete_server', id: made.id });
          return send();
        }),
      });

      await applyWithHelp(played, shop);
      await converges(played, shop);

      expect(played.emulator.world.projects[0]?.servers, `${at}`).toHaveLength(1);
    }
  });

  test('another client uses up the same token: its 429s are waited out, and everything is made once', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule(
        { method: 'POST', probability: 0.5, times: 10 },
        { do: 'answer', status: 429, retryAfter: 30 },
      ),
      faultRule(
        { method: 'GET', probability: 0.2, times: 20 },
        { do: 'answer', status: 429, retryAfter: 10 },
      ),
    ]);

    await converges(played, shop);

    expect(played.emulator.billed()).toHaveLength(4);
  });
});
