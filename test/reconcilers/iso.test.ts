import { describe, expect, test } from 'vitest';
import { command, outside } from '../../src/core/remedy.ts';
import { resolveOf } from '../support/resolve.ts';
import { load, rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders } from './support.ts';

const rescue = 'isos: {rescue: {url: "https://mirror.example.com/rescue.iso"}}\n';
const failing = 'isos: {rescue: {url: "https://mirror.example.com/missing.iso"}}\n';

describe('src/reconcilers/iso.ts', () => {
  test.each([
    'status/error',
    'download_status/reason',
  ] as const)('a failed download is reported with its reason, and a later run repeats it (%s)', async (isoFields) => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { isoFields } } });

    // A failed download is not tried again in a further round of the run.
    const network = 'networks: {a: {cidr: 10.1.0.0/24}}\n';
    const first = await apply(`settings: {max_deletions: 50}\n${failing}${network}`);

    expect(first.outcome).toBe('blocked');
    expect(first.results.find(({ key }) => key === 'isos.rescue')).toMatchObject({
      ...{ outcome: 'blocked', detail: expect.stringContaining('the server answered 404') },
    });
    expect(countOf(emulator, 'add_iso')).toBe(1);
    const planned = await plan(rescue + network);
    expect(planned.summary).toMatchObject({ replace: 1, blocked: 0 });
    expect(planned.operations[0]?.reason).toContain('the server answered 404');

    expect((await apply(rescue + network)).outcome).toBe('converged');
    expect(projectOf(emulator).isos).toMatchObject([{ name: 'rescue', status: 'available' }]);
  });

  test('the plan warns that the API may refuse the new URL after the deletion of the old ISO', async () => {
    const { apply, plan } = rig();
    await apply(rescue);
    const { warnings } = await plan(rescue.replace('rescue.iso', 'other.iso'));
    expect(warnings).toMatchObject([
      {
        code: 'replacement_unchecked',
        key: 'isos.rescue',
        message: expect.stringMatching(
          /^unproven: `url: "\S+other\.iso"`, payment and quota.* you have no iso\./,
        ),
      },
    ]);
  });

  test('an ISO in a drive is not deleted, and the outcome is blocked', async () => {
    const { apply, emulator } = rig();
    await apply(`${rescue}servers: {web: {${sliders}}}\n`);
    const [server] = projectOf(emulator).servers;
    if (server !== undefined) server.isoInDrive = projectOf(emulator).isos[0]?.id ?? null;

    const report = await apply(`settings: {prune: true}\nservers: {web: {${sliders}}}\n`);

    expect(report.outcome).toBe('blocked');
    expect(report.blocked).toMatchObject([
      {
        key: 'isos.rescue',
        code: 'iso_in_use',
        reason: expect.stringContaining("in a server's drive"),
        remedies: [outside('eject the ISO in the client area', { next: [command('apply')] })],
      },
    ]);
    expect(projectOf(emulator).isos).toHaveLength(1);
  });

  test('the command in the message adopts an ISO whose name exists', async () => {
    const { apply, plan, clock, engine, emulator } = rig();
    await apply(rescue);
    const { id } = projectOf(emulator).isos[0] ?? { id: '' };
    const own = 'isos: {mine: {name: rescue, url: "https://mirror.example.com/rescue.iso"}}\n';

    const planned = await plan(own);
    expect(codesOf(planned)).toMatchObject({ 'isos.mine': 'name_exists' });
    expect(resolveOf(planned.blocked.find(({ key }) => key === 'isos.mine'))).toContain(
      'write `moved: {from: isos.rescue}` in isos.mine',
    );
    await apply('isos: {rescue: {managed: false}}\n');
    await clock.run(engine.adopt(load(own), 'isos.mine' as never, id));
    expect(idsOf(await plan(own))).toEqual([]);
    expect(codesOf(await plan(own))).toEqual({});
    // No read shows the URL, so the entry had it right.
    expect((await plan(own.replace('rescue.iso', 'other.iso'))).summary.replace).toBe(1);
  });

  test('an ISO with a failed download is not deleted while unmanaged, and needs a url once adopted', async () => {
    const { apply, plan, emulator } = rig();
    await apply(failing);
    const { id } = projectOf(emulator).isos[0] ?? { id: '' };
    const unmanaged = 'isos: {rescue: {managed: false}}\n';
    await apply(unmanaged);

    expect(await plan(unmanaged)).toMatchObject({ operations: [], blocked: [], warnings: [] });
    expect(countOf(emulator, 'delete_iso')).toBe(0);
    await apply(`isos: {rescue: {id: ${id}}}\n`);

    expect(codesOf(await plan(`isos: {rescue: {id: ${id}}}\n`))).toEqual({ 'isos.rescue': 'url_missing' });
    expect((await plan(rescue)).summary.replace).toBe(1);
    expect((await apply(rescue)).outcome).toBe('converged');
  });
});
