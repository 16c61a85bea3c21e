import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { resolveOf, resolving } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';

const size = (cores: number) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}`;
const head = 'settings: {exclusive: true, unconfirmed_servers: ask, prune: true, max_deletions: 10}\n';
const file = (cores: number, more = '') =>
  `${head}servers:\n  web: {${size(cores)}, replace: {order: delete_first}}\n${more}`;
const another = `  other: {${size(1)}}\n`;
const key = 'servers.web' as ResourceKey;

const project = ({ emulator }: Rig) => emulator.world.projects[0] ?? expect.fail('no project');
const stands = (played: Rig) => [
  project(played).servers.some(({ id }) => id === 2001),
  project(played).ips.some(({ id }) => id === 5001),
];
const deleted = (played: Rig) => played.writes().filter(({ method }) => method === 'DELETE');
const blocked = { key, verb: 'delete' };
/** The deletion of the address waits for the deletion of its server. */
const oldAddress = { verb: 'delete', code: 'dependency_blocked' };

async function made(): Promise<Rig> {
  const played = rig();
  await played.apply(file(1));
  return played;
}

/** The project is in order again, and what was held is done. */
async function replacesOnceActive(played: Rig, text: string): Promise<void> {
  played.emulator.mutate({ do: 'set_standing', standing: 'active' });
  expect((await played.apply(text)).outcome).toBe('converged');
  expect(stands(played)).toEqual([false, false]);
}

describe('src/engine/intents/revalidate.ts: nothing is deleted of a replacement that cannot be made again', () => {
  test('after a 402, until an operator says that it is over', async () => {
    const played = await made();
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(file(1, another));
    played.restart();

    const report = await played.apply(file(2));

    expect(report.blocked).toMatchObject([
      oldAddress,
      {
        ...blocked,
        code: 'payment_required',
        remedies: resolving(expect.stringContaining('resolve servers.web --retry')),
      },
    ]);
    const planned = (await played.plan(file(2))).blocked;
    const named = (all: typeof planned) => all.map(({ key: of, code }) => `${code} ${of}`).sort();
    expect(named(planned)).toEqual(named(report.blocked));
    expect(resolveOf(planned.find((each) => each.key === key))).toContain('resolve servers.web --retry');
    expect(deleted(played)).toEqual([]);

    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    const resolution = { type: 'retry' } as const;
    await played.clock.run(played.engine.resolve(load(file(2)), key, resolution));
    expect((await played.apply(file(2))).outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });

  const walled = (cores: number, more = '') =>
    `${head}servers:\n  web: {${size(cores)}, replace: {order: delete_first}, firewall: {enabled: true, policy_in: drop, rules: [{direction: in, action: accept, protocol: tcp, destination_port: "22"${more}}]}}\n`;

  test('while its firewall is refused as the spec has it, until that is corrected', async () => {
    const played = rig();
    await played.apply(walled(1));
    await played.apply(walled(1, ', source: 10.0.0.0/8'));
    played.restart();

    const plan = await played.plan(walled(2, ', source: 10.0.0.0/8'));
    const report = await played.apply(walled(2, ', source: 10.0.0.0/8'));

    const held = { key, verb: 'update', code: 'dependency_blocked' };
    expect(plan.blocked).toContainEqual(
      expect.objectContaining({ ...held, remedies: resolving(`resolve ${key}.firewall first`) }),
    );
    expect(report.blocked).toContainEqual(expect.objectContaining(held));
    expect(stands(played)).toEqual([true, true]);
    expect((await played.apply(walled(2))).outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });
});

describe('src/engine/intents/revalidate.ts: nothing is given away before what takes its place can be made', () => {
  const cleared = (played: Rig) => played.emulator.mutate({ do: 'delete_server', id: 2001 });

  test('the address of a server that somebody deleted, while the project is suspended', async () => {
    const played = await made();
    cleared(played);
    played.emulator.mutate({ do: 'set_standing', standing: 'suspended' });

    const report = await played.apply(file(1));

    expect(report.blocked).toContainEqual(expect.objectContaining({ key, code: 'project_not_active' }));
    expect(deleted(played)).toEqual([]);
    await replacesOnceActive(played, file(1));
  });
});

describe('src/engine/intents/revalidate.ts: a process that runs again and again', () => {
  test('holds nothing by itself that an operator has lifted in the state', async () => {
    const played = await made();
    const repeating = played.repeating();
    const twoAddresses = `${file(2)}ips:\n  one: {}\n`;
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(`${file(1)}ips:\n  one: {}\n`, { repeating });
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    expect((await played.apply(twoAddresses, { repeating })).outcome).toBe('blocked');

    await played.clock.run(played.engine.resolve(load(twoAddresses), key, { type: 'retry' }));
    const report = await played.apply(twoAddresses, { repeating });

    expect(report.outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });
});
