import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { rig } from '../support/rig.ts';
import { converges, head, shop } from './shop.ts';

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
});
