import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { expectInvariants } from '../../support/invariants.ts';
import { rig } from '../../support/rig.ts';
import { converges, head, server } from '../shop.ts';

describe('src/engine/intents: what a failed task left', () => {
  test('is not an address that the spec took meanwhile', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'answer', status: 409, code: 'odd' }),
      faultRule({ path: 'create_server', nth: 1 }, { do: 'task', outcome: 'fail', leaves: 'nothing' }),
    ]);
    const spec = `${server()}ips:\n  one: {server_type_id: 3}\n`;

    const report = await played.apply(spec);

    expect(report.blocked).toEqual([]);
    expect(played.emulator.billed()).toHaveLength(3);
    await converges(played, spec);
  });
});

describe('src/engine/intents: a server whose tasks always fail', () => {
  test('is sent twice in a run, and not again once it is blocked', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'create_server' }, { do: 'task', outcome: 'fail', leaves: 'nothing' }),
    ]);

    const report = await played.apply(`${server()}ips:\n  one: {server_type_id: 3}\n`);

    const { results, blocked } = report;
    expect(results.flatMap(({ code }) => code ?? [])).toEqual(['task_failed']);
    expect(blocked).toMatchObject([
      { code: 'task_failed', reason: expect.stringContaining('the task failed: ') },
    ]);
    expect(
      played.emulator.world.projects[0]?.tasks.filter(({ kind }) => kind === 'create_server'),
    ).toHaveLength(2);
  });
});

describe('src/engine/intents: a download that always fails', () => {
  test('is tried a bounded number of times in a run, and told', async () => {
    const played = rig();
    const spec = `${head}isos:\n  rescue: {url: "https://mirror.example.com/missing.iso"}\n`;

    const report = await played.apply(spec);

    expect(report.outcome).not.toBe('converged');
    expect(report.results.length).toBeLessThan(12);
    expect(played.emulator.world.projects[0]?.isos.length).toBeLessThanOrEqual(1);
    await expectInvariants(played);
  });
});
