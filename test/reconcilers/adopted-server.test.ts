import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { profiled } from '../support/profiled.ts';
import { resolveOf, resolving } from '../support/resolve.ts';
import { load, type Rig } from '../support/rig.ts';
import { added, codesOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const key = 'servers.old' as ResourceKey;
const file = (entry: string) =>
  `settings: {unmanaged: ignore}\nservers: {old: {replace: allowed, ${entry}}}\n`;
const corrections = {
  cores: ['cores: 1', 'cores: 2'],
  image: ['ubuntu-24.04', 'debian-13'],
  disk_gb: ['disk_gb: 20', 'disk_gb: 40'],
} as const;

/** A server of 2 cores that somebody else made, adopted with an entry that says 1. */
async function adopted(entry: string, { address = false, profile = '' } = {}) {
  const world = profiled({ emulator: { readings: { serverFields: 'sizes' } } }, profile);
  const id = added(world.emulator, { do: 'add_server', name: 'old', public: address });
  Object.assign(projectOf(world.emulator).servers[0] ?? {}, { typeId: 3, cores: 2 });
  const adopt = (spec: string) => world.clock.run(world.engine.adopt(load(spec), key, String(id)));
  await adopt(file(entry));
  return { ...world, adopt };
}

describe('src/reconcilers/server: a corrected entry of an adopted server', () => {
  test.each(Object.entries(corrections))('a correction of %s warns server_unchecked', async (_field, [
    from,
    to,
  ]) => {
    const { apply, plan, emulator } = await adopted(sliders);
    const right = file(sliders.replace(from, to));

    const planned = await plan(right);

    expect(warningsOf(planned)).toEqual(['server_unchecked']);
    expect([planned.operations, planned.blocked]).toEqual([[], []]);
    expect((await apply(right)).outcome).toBe('converged');
    expect(projectOf(emulator).servers).toMatchObject([{ id: 2001 }]);
  });

  test('a confirmed correction warns no more, and a later edit replaces the server', async () => {
    const { plan, adopt } = await adopted(sliders);
    const right = file(sliders.replace('cores: 1', 'cores: 2'));

    await adopt(right);

    expect(warningsOf(await plan(right))).toEqual([]);
    const edited = await plan(file(sliders.replace('cores: 1', 'cores: 4')));
    expect(idsOf(edited)).toEqual(['create:servers.old', 'delete:servers.old~2001']);
    expect(warningsOf(edited), 'it was said, and it is not true of what the spec says now').toEqual([
      'billed_twice',
    ]);
  });

  test('the warning excludes confirmed values and another notation, and ends where the server is replaced', async () => {
    const { plan, adopt } = await adopted(sliders);
    await adopt(file(sliders));
    const keys = `${sliders}, ssh_keys: [101]`;

    expect(warningsOf(await plan(file(sliders.replace('server_type: sliders-1', 'server_type: 3'))))).toEqual(
      [],
    );
    expect((await plan(file(keys))).warnings).toMatchObject([
      {
        code: 'server_unchecked',
        message: expect.stringMatching(
          / does not show its ssh_keys: .* vdcsync does not replace the server if you edit ssh_keys/,
        ),
      },
    ]);
    const renewed = await plan(file(keys.replace('cores: 1', 'cores: 4')));
    expect(idsOf(renewed)).toEqual(['create:servers.old', 'delete:servers.old~2001']);
    expect(warningsOf(renewed)).toEqual(['billed_twice']);
  });

  test('an edit of a confirmed value is blocked, without a warning', async () => {
    const { plan, adopt } = await adopted(sliders);
    const bound = (entry: string) => file(`id: 2001, ${entry}`);
    await adopt(bound(sliders));

    const edited = await plan(bound(sliders.replace('cores: 1', 'cores: 4')));

    expect(codesOf(edited)).toEqual({ 'servers.old': 'replace_not_allowed' });
    expect(warningsOf(edited)).toEqual([]);
  });

  test('a correction of public_ipv4 follows the list of addresses, and replaces no server', async () => {
    const without = await adopted(`${sliders}, public_ipv4: {new: true}`);
    const one = await adopted(sliders, { address: true });

    expect((await without.plan(file(sliders))).operations).toEqual([]);
    expect(idsOf(await one.plan(file(`${sliders}, public_ipv4: {new: true}`)))).toEqual([
      'adopt:servers.old.public_ipv4',
    ]);
  });

  test('a resize in place confirms the size, and no other value', async () => {
    const profile = 'operations: {list_servers: {}, resize_server: {}}';
    const { apply, plan } = await adopted(sliders, { profile });
    await apply(file(sliders.replace('cores: 1', 'cores: 4')));

    const edited = await plan(
      file(sliders.replace('cores: 1', 'cores: 4').replace('ubuntu-24.04', 'debian-13')),
    );

    expect(edited.operations).toEqual([]);
    expect(warningsOf(edited)).toEqual(['server_unchecked']);
  });

  test('a correction to a smaller disk is blocked until the operator confirms the entry', async () => {
    const { plan, adopt } = await adopted(sliders, { profile: 'operations: {resize_server: {}}' });
    const right = file(sliders.replace('disk_gb: 20', 'disk_gb: 10')).replace('allowed', 'never');
    const [held] = (await plan(right)).blocked;
    expect(resolveOf(held)).toContain(
      'vdcsync adopt servers.old 2001 (if the server has all values of the spec',
    );

    await adopt(right);

    expect(await plan(right)).toMatchObject({ operations: [], blocked: [] });
  });

  describe('with a disk of unknown size', () => {
    const profile = 'operations: {resize_server: {}}';
    const edits = {
      'another number of cores': ['cores: 1', 'cores: 4'],
      'a larger disk': ['disk_gb: 20', 'disk_gb: 40'],
    } as const;
    const withDisk = ({ emulator }: Pick<Rig, 'emulator'>, diskGb: number) =>
      Object.assign(projectOf(emulator).servers[0] ?? {}, { diskGb });

    test.each(Object.entries(edits))('a resize to %s is blocked', async (_name, [from, to]) => {
      const world = await adopted(sliders, { profile });
      withDisk(world, 80);
      const edited = file(sliders.replace(from, to)).replace('allowed', 'never');

      const { blocked } = await world.apply(edited);

      expect(blocked).toMatchObject([
        {
          code: 'disk_would_shrink',
          reason: expect.stringContaining('the API does not show the size of the disk of server 2001'),
          remedies: resolving(expect.stringContaining(`write \`${from}\``)),
        },
      ]);
      expect(projectOf(world.emulator).servers).toMatchObject([{ diskGb: 80, cores: 2 }]);
      const allowed = await world.plan(edited.replace('never', 'allowed'));
      expect(allowed.operations).toMatchObject([{ id: 'update:servers.old', risk: 'destructive' }]);
    });

    test('a resize succeeds once the operator confirms the entry', async () => {
      const world = await adopted(sliders, { profile });
      withDisk(world, 20);
      const right = file(sliders).replace('allowed', 'never');
      await world.adopt(right);

      const { outcome } = await world.apply(right.replace('cores: 1', 'cores: 4'));

      expect(outcome).toBe('converged');
      expect(projectOf(world.emulator).servers).toMatchObject([{ diskGb: 20, cores: 4 }]);
    });

    test('a resize that also sends an unconfirmed size is blocked', async () => {
      const entry = 'id: 2001, server_type: sliders-1, memory_mb: 1024';
      const world = await adopted(`${entry}, cores: 1`, { profile });
      Object.assign(projectOf(world.emulator).servers[0] ?? {}, { memoryMb: 8192 });
      const edited = file(`${entry}, cores: 4`).replace('allowed', 'never');

      const { blocked } = await world.apply(edited);

      expect(blocked).toMatchObject([
        {
          code: 'size_unconfirmed',
          reason: expect.stringContaining('also sends memory_mb: 1024'),
          remedies: resolving(expect.stringContaining('| remove `memory_mb` in servers.old |')),
        },
      ]);
      expect(projectOf(world.emulator).servers).toMatchObject([{ memoryMb: 8192, cores: 2 }]);
      expect((await world.apply(edited.replace(', memory_mb: 1024', ''))).outcome).toBe('converged');
      expect(projectOf(world.emulator).servers).toMatchObject([{ memoryMb: 8192, cores: 4 }]);
    });

    test('a resize sends sizes that the operator confirms or the spec allows', async () => {
      const entry = 'id: 2001, server_type: sliders-1, memory_mb: 1024';
      const world = await adopted(`${entry}, cores: 1`, { profile });
      const edited = file(`${entry}, cores: 4`);
      const update = [{ id: 'update:servers.old' }];
      expect((await world.plan(edited)).operations).toMatchObject(update);

      await world.adopt(file(`${entry}, cores: 1`).replace('allowed', 'never'));

      expect((await world.plan(edited.replace('allowed', 'never'))).operations).toMatchObject(update);
    });

    test('another plan is blocked, because its disk may be smaller', async () => {
      const world = await adopted('server_type: plans-1, image: ubuntu-24.04, plan_id: 51', { profile });
      withDisk(world, 160);
      const edited = 'server_type: plans-1, image: ubuntu-24.04, plan_id: 52, protect: true';

      expect(codesOf(await world.plan(file(edited)))).toEqual({ 'servers.old': 'disk_would_shrink' });
    });
  });
});
