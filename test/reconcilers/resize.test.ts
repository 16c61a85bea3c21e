import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadPrices, loadProfile } from '../../src/cli/settings/profile.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { exampleProfile, profiled } from '../support/profiled.ts';
import { rig } from '../support/rig.ts';
import { added, codesOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const priceList = readFileSync(new URL('../../examples/prices.yaml', import.meta.url), 'utf8');

/** A world with a server of 2 cores that somebody else made, and a file that says this of it. */
function adopted(readings: Partial<Readings>) {
  const profile = {
    ...loadProfile(exampleProfile, 'profile.yaml'),
    prices: loadPrices(priceList, 'prices.yaml'),
  };
  const world = profiled({ profile, emulator: { readings } });
  const id = added(world.emulator, { do: 'add_server', name: 'old', public: false });
  const [server] = projectOf(world.emulator).servers;
  Object.assign(server ?? {}, { typeId: 3, cores: 2, memoryMb: 4096, diskGb: 40 });
  const entry = (fields: string) => `settings: {unmanaged: ignore}\nservers: {old: {id: ${id}${fields}}}\n`;
  return { ...world, entry };
}

describe('src/reconcilers/server/resize.ts: the sizes of an adopted server', () => {
  test('are unchecked if no read shows them, and the plan warns', async () => {
    const { apply, plan, entry } = adopted({ serverFields: 'documented' });
    await apply(entry(''));

    expect((await plan(entry(', cores: 4'))).warnings).toMatchObject([
      { code: 'server_unchecked', message: expect.stringContaining('the API does not show its cores') },
    ]);
  });

  test('are compared if a read shows them, and change in place without type or image in the entry', async () => {
    const { apply, plan, emulator, entry } = adopted({ serverFields: 'sizes' });
    await apply(entry(''));
    const planned = await plan(entry(', cores: 4'));

    expect([codesOf(planned), warningsOf(planned)]).toEqual([{}, []]);
    expect(planned.operations).toMatchObject([
      { id: 'update:servers.old', changes: [{ path: 'cores', from: 2, to: 4 }] },
    ]);
    expect((await apply(entry(', cores: 4'))).outcome).toBe('converged');
    expect(projectOf(emulator).servers).toMatchObject([{ cores: 4, memoryMb: 4096 }]);
  });

  test('confirm no other value of the entry once they are changed', async () => {
    const { apply, plan, entry } = adopted({ serverFields: 'sizes' });
    await apply(entry(''));
    const said = ', server_type: sliders-1, image: debian-13, ssh_keys: [101], cores: 4';

    expect((await apply(entry(said))).outcome).toBe('converged');

    expect((await plan(entry(said))).warnings).toMatchObject([
      { code: 'server_unchecked', message: expect.stringContaining('image, ssh_keys') },
    ]);
  });

  test('have their present cost before a change', async () => {
    const { apply, plan, entry } = adopted({ serverFields: 'sizes' });
    const of = (cores: number) => entry(`, server_type: sliders-1, cores: ${cores}`);
    await apply(of(2));
    const { cost } = await plan(of(2));
    const bigger = (await plan(of(4))).cost;

    expect(cost.monthly?.known_before).not.toBe('0.00');
    expect(bigger.monthly?.known_before).toBe(cost.monthly?.known_before);
    expect(bigger.known_monthly_delta).toBe('8.00');
    await apply(of(4));
    expect((await plan(of(4))).cost.monthly?.known_before).toBe(bigger.monthly?.known_after);
  });

  test('need no change after another client sets them to the values of the spec', async () => {
    const { apply, plan, emulator, entry } = adopted({ serverFields: 'sizes' });
    await apply(entry(', cores: 2'));
    Object.assign(projectOf(emulator).servers[0] ?? {}, { cores: 4 });

    expect((await plan(entry(', cores: 4'))).operations).toEqual([]);
    const back = await plan(entry(', cores: 6'));
    expect(back.operations).toMatchObject([{ changes: [{ path: 'cores', from: 4, to: 6 }] }]);
  });
});

describe('src/reconcilers/server/resize.ts: the replacement of a server', () => {
  const one = (fields: string) => `servers: {one: {${fields}, replace: allowed}}\n`;
  const other = sliders.replace('ubuntu-24.04', 'debian-13').replace('cores: 1', 'cores: 2');

  test('is needed for a value that cannot change in place, with any other change', async () => {
    const world = adopted({ serverFields: 'documented' });
    await world.apply(`settings: {unmanaged: ignore}\n${one(sliders)}`);
    const planned = await world.plan(`settings: {unmanaged: ignore}\n${one(other)}`);

    expect(idsOf(planned)).toContain('create:servers.one');
    const deletion = planned.operations.find(({ verb }) => verb === 'delete');
    expect(deletion?.reason).toBe('image cannot be changed in place');
  });

  test('is needed for sizes without the resize operation', async () => {
    const { apply, plan } = rig();
    await apply(one(sliders));
    const { operations } = await plan(one(other));
    expect(operations.find(({ verb }) => verb === 'delete')?.reason).toBe(
      'image, cores cannot be changed in place',
    );
  });
});
