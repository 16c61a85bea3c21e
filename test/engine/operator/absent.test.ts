import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { FaultAction } from '../../../src/emulator/faults.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { crashable } from '../../support/crashable.ts';
import { saidBy } from '../../support/resolve.ts';
import { type Rig, rig } from '../../support/rig.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { count, head, web } from '../claims/one-server.ts';

const key = 'servers.web' as ResourceKey;
const minute = 60_000;
const asking = head.replace('prune: true', 'prune: true, unconfirmed_servers: ask');
const private_ = web.replace(', public_ipv4: {new: true}', '');

/** The answer to the first creation of the server is as the fault says, and the run is halted after `ms`. */
async function haltedAfter(
  ms: number,
  spec: string,
  fault: FaultAction,
  readings: Partial<Readings> = {},
): Promise<Rig> {
  const durations = { create_server: [20 * minute, 20 * minute] } as const;
  const played = rig({ emulator: { readings, durations } });
  played.fail('create_server', fault);
  await played.apply(spec, { halt: played.signalAfter(ms) });
  await played.clock.advance(2 * minute);
  return played;
}

const lost = { do: 'reset', effect: 'done' } as const;
const hidden = { do: 'answer', status: 500, effect: 'done' } as const;
const absent = (played: Rig, spec: string) => played.resolve(spec, key, { type: 'absent' });
const messages = async (played: Rig, spec: string) =>
  (await played.plan(spec)).warnings.map(({ message }) => message);

describe('src/engine/operator/decide.ts: an answer of the operator, and of the key', () => {
  test('a creation whose key holds no answer is declared absent', async () => {
    const played = await haltedAfter(5_000, head + web, { do: 'reset', effect: 'none' });

    expect(await absent(played, head + web)).not.toContain('could not verify this with the idempotency key');
    const report = await played.apply(head + web);

    expect([report.outcome, count(played)]).toEqual(['converged', [1, 1]]);
  });

  test('the operator decides if the key cannot be asked, and the command reports this', async () => {
    const played = await haltedAfter(5_000, head + web, lost, { bodyCheck: 'beforeKeyUnstored' });

    expect(saidBy(await absent(played, head + web))).toContain(
      'could not verify this with the idempotency key',
    );
    expect(await played.store.openIntents()).toEqual([]);
  });
});

describe('src/engine/operator/decide.ts: a creation whose process ended before its answer', () => {
  test.each([
    { type: 'adopt', id: '2001' },
    { type: 'absent' },
  ] as const)('the key is asked before the operator decides ($type)', async (resolution) => {
    const death = crashable();
    const store = memoryState({ createdAt: virtualClock().now(), lineage: 'test' });
    const played = rig({ store: death.store(store), wrap: death.transport });
    await played.apply(head);
    played.emulator.mutate({ do: 'add_server', name: 'hand', server_type_id: 3, public: false });
    death.dieAt(4, 'after');
    await played.apply(head + private_).catch(() => undefined);
    expect([await store.openIntents(), played.project.servers.map(({ id }) => id)]).toMatchObject([
      [{ phase: 'sending' }],
      [2001, 2002],
    ]);
    death.dieAt(undefined, 'after');
    played.restart();
    const resolve = () => played.resolve(head + private_, key, resolution);

    await expect(resolve()).rejects.toThrow('may still take effect');
    await played.clock.advance(2 * minute);
    await expect(resolve()).rejects.toThrow('exists: its idempotency key shows that it is server 2002');

    expect((await played.apply(head + private_)).outcome).toBe('converged');
    expect(await store.bindings()).toMatchObject([{ key, id: '2002' }]);
  });
});

describe('src/plan/unmanaged.ts', () => {
  test('a server that was declared absent by mistake is named with its key once a read shows the server', async () => {
    const late = { addressAt: 'taskDone', attachedAt: 'taskDone' } as const;
    const played = await haltedAfter(3 * minute, asking + web, hidden, late);
    await absent(played, asking + web);
    await played.apply(asking + web);
    expect(count(played)).toEqual([2, 2]);

    expect(await messages(played, asking + web)).toContainEqual(
      expect.stringContaining('2001 may be servers.web, which was declared absent'),
    );
  });

  test('a server without an address that was declared absent is named once a network counts the server', async () => {
    const spec = asking + private_;
    const played = await haltedAfter(60 * minute, spec, hidden, { defaultNetworkCard: true });
    await absent(played, spec);
    await played.apply(spec);
    expect(count(played)).toEqual([2, 0]);

    expect(await messages(played, spec)).toContainEqual(
      expect.stringContaining('possibly servers.web, which was declared absent'),
    );
    await played.ignore(spec, '2001');
    expect(await messages(played, spec)).toEqual([]);
  });
});
