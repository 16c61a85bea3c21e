import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { leftBackups } from '../../../src/engine/claims/release.ts';
import { saidBy } from '../../support/resolve.ts';
import { applied, around, type Rig, rig, sliders } from '../../support/rig.ts';

const head = 'settings: {prune: true}\n';
const nothing = `${head}networks: {default: {managed: false}}\n`;
const key = 'servers.web' as ResourceKey;
const web = (more: string) => `${head}servers:\n  web: {${sliders}, ${more}}\n`;

describe('src/engine/claims/release.ts: resources that stay billed after their server', () => {
  test('backups that the operator released are named, and reported once their server is deleted', async () => {
    const rotated = web('backup: {max_age: 24h, keep: 3}');
    const { apply, plan, clock, forget, ignore, emulator, store } = await applied(rotated);
    await clock.advance(26 * 3_600_000);
    await apply(rotated);
    const { backups = [] } = emulator.world.projects[0] ?? {};
    const ids = backups.map(({ id }) => id).sort();
    expect(ids).toHaveLength(2);
    const without = web('');

    const { warnings } = await plan(without);
    const said = await forget(without, 'servers.web.backup');
    for (const id of ids)
      expect([warnings[0]?.message.includes(id), said.text.includes(id)]).toEqual([true, true]);
    expect(leftBackups(await store.claims())).toEqual([]);
    emulator.mutate({ do: 'delete_server', id: 2001 });
    await apply(nothing);

    const [left] = leftBackups(await store.claims());
    expect({ ...left, backups: [...(left?.backups ?? [])].sort() }).toMatchObject({
      server: '2001',
      backups: ids,
    });
    await ignore(nothing, '2001');
    expect(leftBackups(await store.claims())).toEqual([]);
  });

  test.each([
    [
      'is no longer managed',
      async ({ plan }: Rig) =>
        (await plan(`${head}servers:\n  web: {managed: false, id: 2001}\n`)).cost.left_billed.join(),
    ],
    ['is released', ({ forget }: Rig) => forget('settings: {prune: false}\n', key)],
    [
      'is exchanged for another one',
      ({ adopt, emulator }: Rig) => {
        const other = emulator.mutate({ do: 'add_server', name: 'other', public: true }) as { id: number };
        return adopt(web(''), key, String(other.id));
      },
    ],
  ])('the backups of a server that %s are reported', async (_what, said) => {
    const played = await applied(web('backup: {max_age: 24h}'));
    const [backup] = played.project.backups;

    expect(saidBy(await said(played))).toContain(`backup ${backup?.id}`);
  });

  test.each([
    ['a kept address', 'public_ipv4: {new: true}, keep_ip: true', '203.0.113.10 stays billed'],
    ['a backup', 'public_ipv4: {new: true}, backup: {max_age: 24h}', 'of the deleted servers.web'],
  ])('%s is reported by the run that settles the deletion of a killed run', async (_what, more, told) => {
    const killed = new AbortController();
    const played = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (request.method === 'DELETE') killed.abort(new Error('killed'));
        return answer;
      }),
    });
    await played.apply(web(more));
    await played.apply(nothing, { halt: killed.signal });
    played.restart();

    expect((await played.apply(nothing)).plan.cost.left_billed.join()).toContain(told);
  });
});
