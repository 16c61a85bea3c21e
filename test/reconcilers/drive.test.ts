import { describe, expect, test } from 'vitest';
import { profiled } from '../support/profiled.ts';
import { rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders } from './support.ts';

const file = (drive: string, isos = ['rescue']) => `settings: {prune: true, max_deletions: 5}
isos: {${isos.map((name) => `${name}: {url: "https://mirror.example.com/${name}.iso"}`).join(', ')}}
servers: {one: {${sliders}${drive === '' ? '' : `, iso: ${drive}`}}}
`;

function inDrive({ emulator }: ReturnType<typeof rig>): string | null | undefined {
  const { servers, isos } = projectOf(emulator);
  const [server] = servers;
  return server?.isoInDrive && isos.find(({ id }) => id === server.isoInDrive)?.name;
}

/** Whether reads of servers show what is in the drive. */
const fields = ['none', 'iso_id', 'iso'] as const;

describe.each(fields)('src/reconcilers/drive.ts: (the read shows: %s)', (driveField) => {
  const readings = { driveField };

  test('a new server gets its ISO once the ISO exists, and keeps it', async () => {
    const world = profiled({ emulator: { readings } });
    const planned = await world.plan(file('rescue'));
    const report = await world.apply(file('rescue'));

    expect(idsOf(planned)).toEqual(['create:isos.rescue', 'create:servers.one', 'update:servers.one.iso']);
    expect(report.outcome).toBe('converged');
    expect(inDrive(world)).toBe('rescue');
    expect(idsOf(await world.plan(file('rescue')))).toEqual([]);
    expect(countOf(world.emulator, 'insert_iso')).toBe(1);
  });

  test('the drive follows the spec: another ISO, null, and the first ISO again', async () => {
    const world = profiled({ emulator: { readings } });
    const both = ['rescue', 'tools'];
    const seen: unknown[] = [];
    for (const drive of ['rescue', 'tools', 'null', 'rescue', 'null']) {
      const report = await world.apply(file(drive, both));
      seen.push([report.outcome, inDrive(world)]);
    }
    expect(seen).toEqual(['rescue', 'tools', null, 'rescue', null].map((name) => ['converged', name]));
    expect((await world.plan(file('', both))).operations).toEqual([]);
  });

  test('an ISO that leaves the spec is removed from the drive before its deletion', async () => {
    const world = profiled({ emulator: { readings } });
    await world.apply(file('rescue'));
    const planned = await world.plan(file('null', []));
    const report = await world.apply(file('null', []));

    expect(idsOf(planned)).toEqual(['update:servers.one.iso', 'delete:isos.rescue']);
    expect(planned.operations[1]?.needs).toEqual(['update:servers.one.iso']);
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['done', 'done']);
    expect(projectOf(world.emulator).isos).toEqual([]);
    expect(countOf(world.emulator, 'delete_iso')).toBe(1);
  });

  test('an ISO that stays in a drive is neither deleted nor replaced', async () => {
    const world = profiled({ emulator: { readings } });
    await world.apply(file('rescue'));
    const left = await world.plan(file('', []));
    const other = await world.plan(file('rescue').replace('rescue.iso', 'newer.iso'));

    expect([codesOf(left), codesOf(other)]).toEqual([
      { 'isos.rescue': 'iso_in_use' },
      { 'isos.rescue': 'iso_in_use' },
    ]);
    expect([...left.operations, ...other.operations]).toEqual([]);
  });

  test('an ISO that the successor of a retiring server wants is not replaced', async () => {
    const world = profiled({ emulator: { readings } });
    const imaged = (image: string) =>
      file('rescue').replace(/image: [^,}]+/, `image: ${image}, replace: allowed`);
    await world.apply(imaged('debian-13'));
    const refusal = { do: 'answer', status: 503, code: 'maintenance', effect: 'none' } as const;
    await world.failing({ path: 'insert_iso' }, refusal, imaged('ubuntu-24.04'));
    const edited = imaged('ubuntu-24.04').replace('rescue.iso', 'newer.iso');
    const planned = await world.plan(edited);

    expect(projectOf(world.emulator).servers).toHaveLength(2);
    expect(planned.blocked.find(({ key }) => key === 'isos.rescue')).toMatchObject({
      code: 'iso_in_use',
      remedies: [{ path: 'servers.one' }],
    });
  });

  test('an unmanaged ISO whose download failed is not inserted', async () => {
    const world = profiled({ emulator: { readings } });
    await world.apply(file('null'));
    const [iso] = projectOf(world.emulator).isos;
    Object.assign(iso ?? {}, { status: 'failed' });
    const text = file('rescue').replace(/rescue: \{url[^}]*\}/, `rescue: {managed: false, id: ${iso?.id}}`);
    const report = await world.apply(text);

    expect(codesOf(report)).toMatchObject({ 'servers.one.iso': 'tainted' });
    expect(countOf(world.emulator, 'insert_iso')).toBe(0);
  });

  test('a deletion of a server precedes the deletion of its ISO', async () => {
    const world = profiled({ emulator: { readings } });
    await world.apply(file('rescue'));
    const report = await world.apply('settings: {prune: true, max_deletions: 5}\n');

    expect(report.results.map(({ key, outcome }) => [key, outcome])).toEqual([
      ['servers.one', 'done'],
      ['isos.rescue', 'done'],
    ]);
  });

  test('a replaced server gets its ISO again', async () => {
    const world = profiled({ emulator: { readings } });
    await world.apply(file('rescue'));
    const image = file('rescue')
      .replace('ubuntu-24.04', 'debian-13')
      .replace('iso: r', 'replace: allowed, iso: r');
    const report = await world.apply(image);

    expect(report.outcome).toBe('converged');
    expect(inDrive(world)).toBe('rescue');
  });
});

describe('src/reconcilers/drive.ts', () => {
  test('a change of the drive by another client is repaired if the read shows the drive', async () => {
    const world = profiled({ emulator: { readings: { driveField: 'iso_id' } } });
    await world.apply(file('rescue'));
    Object.assign(projectOf(world.emulator).servers[0] ?? {}, { isoInDrive: null });
    const report = await world.plan(file('rescue').replace('prune: true', 'drift: report'));
    expect(report.warnings).toMatchObject([{ code: 'drift', key: 'servers.one.iso' }]);
    expect((await world.apply(file('rescue'))).outcome).toBe('converged');
    expect(inDrive(world)).toBe('rescue');
  });

  test('without the operations, the plan warns, and nothing is sent', async () => {
    const world = rig();
    const report = await world.apply(file('rescue'));
    expect(report.outcome).toBe('converged');
    expect(report.plan.warnings).toMatchObject([{ code: 'drive_differs', key: 'servers.one.iso' }]);
    expect((await world.apply(file('null'))).plan.warnings).toEqual([]);
    expect(countOf(world.emulator, 'insert_iso')).toBe(0);
  });

  test('the spec may name an ISO by its id, and an unknown name is an error', async () => {
    const world = profiled();
    await world.apply(file(''));
    const [iso] = projectOf(world.emulator).isos;
    expect((await world.apply(file(iso?.id ?? ''))).outcome).toBe('converged');
    expect(inDrive(world)).toBe('rescue');
    await expect(async () => world.plan(file('resque'))).rejects.toThrow('unknown iso');
  });

  test('a drive with unknown content is emptied once', async () => {
    const world = profiled();
    const other = world.emulator.mutate({ do: 'add_server', name: 'one' }) as { id: number };
    const taken = `servers: {one: {id: ${other.id}, iso: null}}\n`;
    expect((await world.apply(taken)).outcome).toBe('converged');
    expect((await world.apply(taken)).outcome).toBe('converged');
    expect(countOf(world.emulator, 'eject_iso')).toBe(1);
  });
});
