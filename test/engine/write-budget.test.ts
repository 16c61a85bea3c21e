import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { expectInvariants } from '../support/invariants.ts';
import { type Rig, rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

describe('src/engine: a write budget that is closed for long', () => {
  const networks = `${head}networks:\n  aa: {cidr: 10.20.0.0/24}\n  bb: {cidr: 10.21.0.0/24}\n`;

  /** What stood under both ids is taken away behind our back, and the ids are given to others. @assumption A17 */
  async function handOver({ emulator, clock }: Rig): Promise<void> {
    await clock.sleep(1_500_000);
    for (const id of [32, 33]) emulator.mutate({ do: 'delete_network', id });
    (emulator.world as { nextId: { network: number } }).nextId.network = 32;
    emulator.mutate({ do: 'add_network', name: 'theirs', cidr: '10.99.0.0/24' });
    emulator.mutate({ do: 'add_network', name: 'theirs too', cidr: '10.98.0.0/24' });
  }

  const closing = faultRule({ method: 'DELETE', nth: 1 }, { do: 'answer', status: 429, retryAfter: 3000 });

  test.each([
    ['a write that waits to be begun', [closing]],
    [
      'a write that waits to be sent again',
      [
        closing,
        faultRule({ method: 'DELETE', nth: 1 }, { do: 'answer', status: 409, code: 'busy', retryAfter: 60 }),
      ],
    ],
  ])('%s follows fresh reads once the budget opens again', async (_name, faults) => {
    const played = rig({ emulator: { readings: { reuseIds: true } } });
    await played.apply(networks);
    played.emulator.setFaults(faults);

    const [report] = await Promise.all([played.apply(head), handOver(played)]);

    const left = played.project.networks.map(({ name }) => name);
    expect(left, JSON.stringify(report)).toEqual(expect.arrayContaining(['theirs', 'theirs too']));
    await expectInvariants(played);
  });

  test('a write records since when it was ready, if it waited', async () => {
    const played = rig();
    await played.apply(
      `networks:\n${Array.from({ length: 21 }, (_, at) => `  n${at}: {cidr: 10.20.${at}.0/24}\n`).join('')}`,
    );
    const waits = (await played.store.intents({ limit: 30 })).map(
      ({ createdAt, queuedAt = createdAt }) => createdAt - queuedAt,
    );
    expect(Math.max(...waits)).toBeGreaterThan(50_000);
    expect(Math.min(...waits)).toBe(0);
  });
});
