import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { applyWithHelp } from '../support/operator.ts';
import { resolveOf } from '../support/resolve.ts';
import { rig } from '../support/rig.ts';
import { converges, executed, head, ips, shop } from './shop.ts';

describe('src/engine: reads that fail', () => {
  test('for good, inside one operation: it is told, the others go on, the intent stays open', async () => {
    const played = rig();
    const spec = `${shop}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`;
    played.emulator.setFaults([
      faultRule({ path: 'read_iso', nth: 1, times: 1000 }, { do: 'answer', status: 500 }),
    ]);

    const outcome = await played.apply(spec).catch((error: Error) => error);

    const results = played.events.flatMap((event) => (event.type === 'ended' ? [event.result] : []));
    expect(results.find(({ key }) => key === 'ips.one')?.outcome).toBe('done');
    expect(results.find(({ key }) => key === 'isos.rescue')).toMatchObject({
      outcome: 'unresolved',
      code: 'read_failed',
    });
    expect(outcome).toBeDefined();
    played.emulator.setFaults([]);
    await converges(played, spec);
    expect(executed(played, 'iso')).toBe(1);
  });

  test('for good, of a write that the spec asks for no more: what could not be read is told, with the ways out', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'read_iso', nth: 1, times: 1000 }, { do: 'answer', status: 500 }),
    ]);
    await played.apply(`${head}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`);

    const { outcome, blocked } = await played.apply(head);

    expect(outcome).toBe('blocked');
    expect(blocked).toMatchObject([{ key: 'isos.rescue', verb: 'create', code: 'read_failed' }]);
    expect(blocked[0]?.reason).toMatch(
      /^a read failed, so nothing is known: GET \/isos\/uiso-\d+ answered 500/,
    );
    expect(resolveOf(blocked[0])).toContain('vdcsync apply (once the cause is gone) | ');
    expect(resolveOf(blocked[0])).toContain('vdcsync resolve isos.rescue --abandon');
    played.emulator.setFaults([]);
    await converges(played, head);
  });

  test('of one purchase in doubt: another under its own key does not wait for its end', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'answer', status: 503 }),
      faultRule({ path: 'read_project', nth: 2 }, { do: 'answer', status: 404 }),
    ]);

    const { results } = await played.apply(ips('one', 'two'));

    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['done', 'unresolved']));
    await converges(played, ips('one', 'two'));
    expect(executed(played, 'ip')).toBe(2);
  });

  test('of one purchase that waits for an operator: a plan holds back another as an apply does, and what needs it', async () => {
    const played = rig();
    const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const web = (address: string) => `  ${address}: {${size}, public_ipv4: {ip: ${address}}}\n`;
    const spec = `${ips('one', 'two')}servers:\n${web('one')}${web('two')}`.replace('exclusive: true, ', '');
    const lost = { path: 'allocate_ip', nth: 1 };
    played.emulator.setFaults([faultRule(lost, { do: 'reset', effect: 'done', stored: false })]);

    const report = await played.apply(spec);
    played.restart();
    const plan = await played.plan(spec);

    const codes = (of: Plan) => of.blocked.map(({ key, code }) => `${key} ${code}`);
    expect(codes(plan)).toEqual([
      'ips.one outcome_unknown',
      'ips.two unresolved_create',
      'servers.one dependency_blocked',
      'servers.two dependency_blocked',
    ]);
    expect(codes(report.plan)).toEqual(codes(plan));
    expect([plan.operations, report.plan.operations]).toEqual([[], []]);
    await converges(played, spec);
    expect(executed(played, 'ip')).toBe(2);
  });

  test('of evidence: conclude nothing', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset', effect: 'done' }),
      faultRule({ path: 'list_ips', nth: 2, times: 8 }, { do: 'answer', status: 503 }),
    ]);

    await applyWithHelp(played, ips('web')).catch(() => undefined);
    played.emulator.setFaults([]);

    await converges(played, ips('web'));
    expect(executed(played, 'ip')).toBe(1);
  });

  test('stale by up to a minute, from the first request to the last: everything is still made once', async () => {
    const played = rig({ emulator: { readings: { staleReadsMs: 55_000 } } });

    await converges(played, shop);

    expect(played.emulator.billed()).toHaveLength(4);
    expect(executed(played, 'network')).toBe(1);
  });

  test('stale, and the answer lost: the first look that misses it is not believed', async () => {
    const played = rig({ emulator: { readings: { staleReadsMs: 59_000 } } });
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'late', ms: 20_000 })]);

    await converges(played, ips('web'));

    expect(executed(played, 'ip')).toBe(1);
  });

  test('lists that end early do not make anything gone, nor made again', async () => {
    const played = rig();
    await played.apply(shop);
    const before = played.emulator.billed().length;
    played.emulator.setFaults([
      faultRule({ path: 'list_ips', nth: 1, times: 1 }, { do: 'truncate_list', keep: 0 }),
    ]);

    await converges(played, shop);

    expect(played.emulator.billed()).toHaveLength(before);
  });
});
