import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { resolveOf, resolving, saidBy } from '../support/resolve.ts';
import { load, rig } from '../support/rig.ts';
import { added, codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const prune = 'settings: {prune: true}\n';

describe('src/reconcilers/ip.ts', () => {
  test('an address is allocated from the pool that serves its type, and bound', async () => {
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

  test.each([
    'new',
    'reuse',
  ])('an address is not released if its adopted server asks for any address: %s', async (any) => {
    const { plan, engine, clock, emulator } = rig();
    const id = added(emulator, { do: 'add_server', name: 'one', public: true });
    const named = load(`ips: {web: {}}\nservers: {one: {${sliders}, public_ipv4: {ip: web}}}\n`);
    const ip = String(projectOf(emulator).ips[0]?.id);
    await clock.run(engine.adopt(named, 'ips.web' as ResourceKey, ip));
    await clock.run(engine.adopt(named, 'servers.one' as ResourceKey, String(id)));

    const planned = await plan(`${prune}servers: {one: {${sliders}, public_ipv4: {${any}: true}}}\n`);

    expect(codesOf(planned)).toEqual({ 'ips.web': 'ip_in_use' });
  });

  test('an edit of the pool of an adopted address warns until the operator confirms the pool', async () => {
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

  test('an address stays in its pool: another pool is blocked, and the remedy works', async () => {
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

  test('a list without an address causes no purchase while a read by id shows the address', async () => {
    const { apply, emulator } = rig();
    await apply('ips: {web: {}}\n');
    emulator.setFaults([faultRule({ path: 'list_ips' }, { do: 'truncate_list', keep: 0 })]);

    const report = await apply('ips: {web: {}}\n');

    expect(report.outcome).toBe('converged');
    expect(countOf(emulator, 'allocate_ip')).toBe(1);
    expect(emulator.billed()).toHaveLength(1);
  });

  test('`id:` binds an address, which is never created again', async () => {
    const { apply, plan, emulator } = rig();
    const id = added(emulator, { do: 'add_ip' });
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
