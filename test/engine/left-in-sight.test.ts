import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Resolution } from '../../src/engine/deps.ts';
import { billOf } from '../../src/view/bill.ts';
import { saidBy } from '../support/resolve.ts';
import { applied, type Rig, rig } from '../support/rig.ts';

const key = 'servers.x' as ResourceKey;
const file = (cores = 1) =>
  `servers: {x: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, replace: allowed}}\n`;
const resolve = (played: Rig, spec: string, resolution: Resolution) => played.resolve(spec, key, resolution);

/** The process ends at this time of an apply. */
async function killed(played: Rig, spec: string, afterMs: number): Promise<void> {
  await played.apply(spec, { halt: played.signalAfter(afterMs) });
  played.restart();
}

/** The answer to the creation is lost, and the process ends before the next step. */
async function unanswered(): Promise<Rig> {
  const played = rig();
  played.fail('create_server', { do: 'reset', effect: 'done' });
  await killed(played, file(), 5_000);
  played.emulator.setFaults([]);
  await played.clock.advance(60_000);
  expect(await played.store.openIntents()).toMatchObject([{ phase: 'unknown' }]);
  return played;
}

/** The servers that are shown as billed. */
async function billed({ store }: Rig): Promise<readonly string[]> {
  const known = {
    now: 0,
    bindings: await store.bindings(),
    intents: await store.openIntents(),
    claims: await store.claims(),
  };
  return billOf({ id: 4711, known }).billed.map(({ what }) => what);
}

describe('src/engine: a server without an address, which no list shows, remains known', () => {
  test('after the operator abandons its creation without an answer', async () => {
    const played = await unanswered();

    const said = saidBy(await resolve(played, file(), { type: 'abandon' }));

    expect(said).toContain('The write created server 2001');
    expect(await billed(played)).toEqual(['server 2001']);
    expect((await played.apply(file())).outcome).toBe('converged');
    expect(played.project.servers.map(({ id }) => id)).toEqual([2001]);
  });

  test('while the operator names another server for its key', async () => {
    const played = await unanswered();
    played.emulator.mutate({ do: 'add_server', name: 'hand', server_type_id: 3, public: true });
    const hand = String(played.project.servers.at(-1)?.id);

    // The first answer is that of the key, the second one that of the record.
    for (let turn = 0; turn < 2; turn++)
      await expect(resolve(played, file(), { type: 'adopt', id: hand })).rejects.toThrow('it is server 2001');

    expect((await played.apply(file())).outcome).toBe('converged');
    expect((await played.store.bindings()).map(({ id }) => id)).toEqual(['2001']);
  });

  test('while the operator names the old server of a replacement', async () => {
    const played = await applied(file());
    await killed(played, file(2), 20_000);

    const old = resolve(played, file(2), { type: 'adopt', id: '2001' });
    await expect(old).rejects.toThrow('2001 is the old server');
    await expect(played.adopt(file(2), key, '2001')).rejects.toThrow('Let it end first');

    expect((await played.apply(file(2))).outcome).toBe('converged');
    expect(played.project.servers.map(({ id }) => id)).toEqual([2002]);
  });

  test('after its release, until the server is deleted', async () => {
    const played = await applied(file());
    await played.forget('', key);

    const undo = () => played.unignore('', '2001');
    await expect(undo()).rejects.toThrow('would lose sight of it');
    expect(await billed(played)).toEqual(['server 2001']);

    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    await undo();
    expect(await billed(played)).toEqual([]);
  });

  test('after the edit of its replacement is reverted and the state is lost', async () => {
    const played = await applied(file());
    await killed(played, file(2), 20_000);
    played.loseState();

    const report = await played.apply(file());

    const found = report.plan.warnings.filter(({ code }) => code === 'recovered_unconfirmed');
    expect(found.map(({ message }) => message)).toEqual([expect.stringContaining('found server 2001')]);
    expect(played.project.servers).toHaveLength(2);
    // Neither the yes to a plan nor the adoption of the known server ends the warning. The word of the operator does.
    const warned = async () =>
      (await played.apply(file())).plan.warnings.filter(({ code }) => code === 'unlisted_servers');
    expect(await warned()).toMatchObject([
      { key, message: expect.stringContaining('If it exists, it is billed') },
    ]);
    await played.adopt(file(), key, '2001');
    expect(await warned()).toHaveLength(1);
    await played.resolve(file(), key, { type: 'absent' });
    expect(await warned()).toEqual([]);
  });
});
