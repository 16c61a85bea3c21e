import { describe, expect, test } from 'vitest';
import { exposureOf } from '../../bench/exposure.ts';
import { fleetSpec } from '../../bench/fleet-spec.ts';
import { applied, rig } from '../support/rig.ts';

describe('src/engine/intents/bound-by.ts: how long new servers are exposed', () => {
  test.each([
    1, 40,
  ])('%i servers: each firewall is accepted before the task of its server ends', async (servers) => {
    const { afterTask, exposed } = await exposureOf(servers);
    expect(afterTask).toHaveLength(servers);
    expect(Math.max(...afterTask)).toBeLessThanOrEqual(0);
    expect(Math.max(...exposed)).toBeLessThanOrEqual(5);
  });

  test.each([
    ['a refusal during the creation', { firewallWhileCreating: 409 } as const],
    ['a public network interface that comes late', { publicCardAt: 'taskDone' } as const],
  ])('%s: the firewall follows the end of the task, and the run continues', async (_name, readings) => {
    const { afterTask } = await exposureOf(5, readings);
    expect(Math.min(...afterTask)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...afterTask)).toBeLessThanOrEqual(5);
  });

  test('the firewall of a server that replaces another one follows the end of its task', async () => {
    const file = (cores: number) =>
      `settings: {max_deletions: 10}${fleetSpec(4).replaceAll('cores: 2', `cores: ${cores}\n    replace: allowed`)}`;
    const { apply, emulator } = await applied(file(2));
    const { length } = emulator.requests;
    expect((await apply(file(4))).outcome).toBe('converged');

    const sent = emulator.requests.slice(length).filter(({ operation }) => operation === 'replace_firewall');
    const late = sent.map(({ url, atMs }) => {
      const tasks = emulator.world.projects.flatMap((project) => project.tasks);
      const creation = tasks.find(
        ({ effect }) => effect.kind === 'create_server' && url.includes(`/servers/${effect.serverId}/`),
      );
      return atMs - (creation?.endsMs ?? 0);
    });
    expect(late).toHaveLength(4);
    expect(Math.max(...late)).toBeLessThanOrEqual(5_000);
  });

  test('a firewall that the API refuses after the end of the task follows the reads of its server', async () => {
    const played = rig({ emulator: { readings: { firewallWhileCreating: 409 } } });
    const refusal = { do: 'answer', status: 409, code: 'server_busy', effect: 'none' } as const;
    played.fail({ path: 'replace_firewall', times: 3 }, refusal);

    expect((await played.apply(fleetSpec(2))).outcome).toBe('converged');
    expect(played.writes().filter(({ method }) => method === 'PUT').length).toBeLessThanOrEqual(6);
  });
});
