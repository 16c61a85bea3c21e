import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { resolveOf, resolving, saidBy } from '../support/resolve.ts';
import { load, rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const prune = 'settings: {prune: true}\n';

describe('src/reconcilers/ip.ts', () => {
  test('is taken from the pool that serves a type, and bound', async () => {
    const { apply, plan, emulator } = rig();
    const text = 'ips: {web: {server_type_id: 8}, spare: {}}\n';

    const report = await apply(text);

    expect(report.outcome).toBe('converged');
    expect(
      projectOf(emulator)
        .ips.map(({ pool }) => pool)
        .sort(),
    ).toEqual(['gpu', 'main']);
    expect((await plan(text)).summary).toMatchObject({ unchanged: 2, create: 0 });
  });

  test('is released when it leaves the spec, by the id and address that were bound', async () => {
    const { apply, emulator } = rig();
    await apply('ips: {web: {}, spare: {}}\n');

    const report = await apply(`${prune}ips: {web: {}}\n`);

    expect(report.outcome).toBe('converged');
    expect(emulator.billed()).toHaveLength(1);
  });

  test.each([
    'taskDone',
    'accepted',
  ] as const)('is released after its server has gone (detached: %s)', async (detachAt) => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { detachAt } } });
    await apply(`ips: {web: {}}\nservers: {one: {${sliders}, public_ipv4: {ip: web}}}\n`);

    const planned = await plan(prune);
    const report = await apply(prune);

    expect(idsOf(planned)).toEqual(['delete:servers.one', 'delete:ips.web']);
    expect(planned.operations[1]?.needs).toEqual(['delete:servers.one']);
    expect(report.outcome).toBe('converged');
    expect(emulator.billed()).toEqual([]);
    expect(countOf(emulator, 'release_ip')).toBe(1);
  });

  test('attached to a server that stays it is not released', async () => {
    const { apply, plan, emulator } = rig();
    await apply('ips: {web: {}}\n');
    await apply(`ips: {web: {}}\nservers: {one: {${sliders}, public_ipv4: {reuse: true}}}\n`);

    const planned = await plan(`${prune}servers: {one: {${sliders}, public_ipv4: {reuse: true}}}\n`);

    expect(codesOf(planned)).toEqual({ 'ips.web': 'ip_in_use' });
    expect(planned.blocked[0]?.reason).toContain('servers.one');
    expect((await apply(prune)).outcome).toBe('converged');
    expect(emulator.billed()).toEqual([]);
  });

  test.each([
    'new',
    'reuse',
  ])('is not released if its adopted server asks for any address: %s', async (any) => {
    const { plan, engine, clock, emulator } = rig();
    const { id } = emulator.mutate({ do: 'add_server', name: 'one', public: true }) as { id: number };
    const named = load(`ips: {web: {}}\nservers: {one: {${sliders}, public_ipv4: {ip: web}}}\n`);
    const ip = String(projectOf(emulator).ips[0]?.id);
    await clock.run(engine.adopt(named, 'ips.web' as ResourceKey, ip));
    await clock.run(engine.adopt(named, 'servers.one' as ResourceKey, String(id)));

    const planned = await plan(`${prune}servers: {one: {${sliders}, public_ipv4: {${any}: true}}}\n`);

    expect(codesOf(planned)).toEqual({ 'ips.web': 'ip_in_use' });
  });

  test('of an adopted one, the pool is believed as it was adopted, and an edit of it is told until an operator confirms that', async () => {
    const { plan, apply, engine, emulator, clock } = rig();
    emulator.mutate({ do: 'add_ip' });
    const id = String(projectOf(emulator).ips[0]?.id);
    const adopt = (spec: string) => clock.run(engine.adopt(load(spec), 'ips.spare' as ResourceKey, id));
    const [plain, of3, of8] = ['{}', '{server_type_id: 3}', '{server_type_id: 8}'].map(
      (entry) => `ips: {spare: ${entry}}\n`,
    ) as [string, string, string];

    expect(saidBy(await adopt(plain))).not.toContain('believed');
    const edited = await plan(of8);
    expect(edited.warnings).toMatchObject([
      {
        code: 'address_unchecked',
        key: 'ips.spare',
        remedies: resolving(expect.stringContaining(`adopt ips.spare ${id}`)),
      },
    ]);
    expect(saidBy(await adopt(of3))).toContain('server_type_id');

    expect(warningsOf(await plan(of3))).toEqual([]);
    expect(warningsOf(await plan(plain))).toEqual([]);
    expect(warningsOf((await apply(of8)).plan)).toEqual(['address_unchecked']);
  });

  test('stays in its pool: another one is blocked, and following the message resolves it', async () => {
    const { apply, plan } = rig();
    await apply('ips: {web: {server_type_id: 3}, own: {}}\n');

    const planned = await plan('ips: {web: {server_type_id: 8}, own: {server_type_id: 3}}\n');

    expect(codesOf(planned)).toEqual({ 'ips.own': 'immutable', 'ips.web': 'immutable' });
    expect(planned.blocked.map(resolveOf)).toEqual([
      'remove `server_type_id` in ips.own | add a new entry under `ips`',
      'write `server_type_id: 3` in ips.web | add a new entry under `ips`',
    ]);
    expect((await plan('ips: {web: {server_type_id: 3}, own: {}}\n')).blocked).toEqual([]);
    expect((await plan('ips: {web: {}, own: {}}\n')).blocked).toEqual([]);
  });

  test('a lost one is made again only when a second look, a minute later, misses it too', async () => {
    const { apply, plan, clock, emulator } = rig();
    await apply('ips: {web: {}}\n');
    emulator.mutate({ do: 'delete_ip', id: projectOf(emulator).ips[0]?.id ?? 0 });

    const planned = await plan('ips: {web: {}}\n');
    const before = clock.monotonic();
    const report = await apply('ips: {web: {}}\n');

    expect(planned.operations).toMatchObject([
      { id: 'create:ips.web', reason: 'the project no longer has address 203.0.113.10', spend: 'adds' },
    ]);
    expect(report.outcome).toBe('converged');
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(60_000);
    expect(emulator.billed()).toHaveLength(1);
  });

  test('a list that leaves it out buys nothing while a read by id shows it', async () => {
    const { apply, emulator } = rig();
    await apply('ips: {web: {}}\n');
    emulator.setFaults([faultRule({ path: 'list_ips' }, { do: 'truncate_list', keep: 0 })]);

    const report = await apply('ips: {web: {}}\n');

    expect(report.outcome).toBe('converged');
    expect(countOf(emulator, 'allocate_ip')).toBe(1);
    expect(emulator.billed()).toHaveLength(1);
  });

  test('one whose id stands for another address now is not released', async () => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { reuseIds: true } } });
    await apply('ips: {web: {}}\n');
    emulator.mutate({ do: 'delete_ip', id: 5001 });
    const other = emulator.mutate({ do: 'add_ip' }) as { id: number };
    const [live] = projectOf(emulator).ips;
    if (live !== undefined) live.id = 5001;
    expect(other.id).toBeDefined();

    const planned = await plan(prune);

    expect(codesOf(planned)).toEqual({ 'ips.web': 'identity_changed' });
    expect(planned.operations).toEqual([]);
  });

  test('`id:` binds it and is never made again', async () => {
    const { apply, plan, emulator } = rig();
    const { id } = emulator.mutate({ do: 'add_ip' }) as { id: number };
    const text = `ips: {web: {id: ${id}}}\n`;

    expect(idsOf(await plan(text))).toEqual(['adopt:ips.web']);
    await apply(text);
    expect(idsOf(await plan('ips: {web: {}}\n'))).toEqual([]);
    emulator.mutate({ do: 'delete_ip', id });

    expect((await plan(text)).blocked).toMatchObject([
      {
        code: 'not_found',
        remedies: resolving(
          'remove ips.web from the spec (if the resource is not needed) | set `id` in ips.web | remove `id` in ips.web (to create a new resource)',
        ),
      },
    ]);
    expect(idsOf(await plan('ips: {web: {}}\n'))).toEqual(['create:ips.web']);
  });
});
