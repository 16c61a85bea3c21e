import { describe, expect, test } from 'vitest';
import type { ApplyReport } from '../../../src/core/progress.ts';
import { sliders } from '../../reconcilers/support.ts';
import { applied, type Rig, rig } from '../../support/rig.ts';
import { gpu, ips } from '../shop.ts';

describe('src/engine/operator: an operator decides', () => {
  test('a live resource of one key cannot be adopted for another', async () => {
    const played = await applied(ips('one'));
    const [made] = played.project.ips;

    const said = played.adopt(ips('one', 'two'), 'ips.two', String(made?.id));

    await expect(said).rejects.toMatchObject({
      message: expect.stringContaining('already bound to ips.one'),
      remedies: [
        { command: 'adopt', args: ['ips.one', 'ID'] },
        {
          path: 'settings',
          set: { prune: false },
          next: [
            { path: 'ips.one', entry: 'remove' },
            { command: 'forget', args: ['ips.one'] },
          ],
        },
      ],
    });

    await played.forget(ips('two'), 'ips.one');
    const adopted = await played.adopt(ips('two'), 'ips.two', String(made?.id));
    expect(adopted.text).toContain(`ips.two is bound to ${made?.id}`);
  });

  test('nothing more is sent under the key of a lost resource that the operator gave to another entry', async () => {
    const played = await applied(ips('one'));
    const [{ id } = { id: 0 }] = played.emulator.billed();
    const both = ips('one', 'two');
    const edited = both.replace('one: {server_type_id: 3}', 'one: {}');
    const adopt = (key: string) => played.adopt(edited, key, `${id}`);
    played.loseState();
    await adopt('ips.two');
    await played.apply(both);
    const sent = played.sent.length;

    for (let run = 0; run < 2; run++) {
      const { blocked } = await played.apply(edited);
      expect(blocked).toMatchObject([
        {
          key: 'ips.one',
          code: 'key_conflict',
          remedies: [{ command: 'adopt', args: ['ips.two', `${id}`] }, {}, {}],
        },
      ]);
    }
    const posts = played.sent.slice(sent).filter(({ method }) => method === 'POST');
    expect(posts.filter(({ body = '' }) => !body.includes('vdcsync_probe'))).toEqual([]);

    await adopt('ips.two');
    expect((await played.apply(edited)).outcome).toBe('converged');
    expect(played.emulator.billed()).toHaveLength(2);
  });

  test('an entry that was edited and has left the spec takes its resource of a lost state back', async () => {
    const spec = (networks: string) => `settings: {prune: true}\nnetworks: {${networks}}\n`;
    const edited = 'one: {name: other, cidr: 10.21.0.0/24}';
    const played = await applied(spec('one: {cidr: 10.20.0.0/24}'));
    const [project] = played.emulator.world.projects;
    const { id } = project?.networks.find(({ name }) => name === 'one') ?? { id: 0 };
    played.loseState();
    await played.apply(spec(edited));
    const adopt = (named: string) => played.resolve(spec(''), 'networks.one', { type: 'adopt', id: named });

    await expect(adopt('999999')).rejects.toThrow('The project has no network 999999');
    expect((await adopt(`${id}`)).text).toContain('networks.one, which has left the spec');

    expect((await played.apply(spec(''))).outcome).toBe('converged');
    expect(project?.networks.map((each) => each.id)).toContain(id);
    expect((await played.apply(spec('one: {cidr: 10.20.0.0/24}'))).outcome).toBe('converged');
    expect(await played.store.bindings()).toMatchObject([{ key: 'networks.one', id: `${id}` }]);
  });

  test('a network of a lost state whose entry was edited and renamed twice is adopted by the last entry', async () => {
    const spec = (name: string, more = 'name: other, cidr: 10.21.0.0/24, moved: {from: networks.one}') =>
      `settings: {exclusive: true}\nnetworks: {${name}: {${more}}}\n`;
    const played = await applied(spec('one', 'cidr: 10.20.0.0/24'));
    const [project] = played.emulator.world.projects;
    const { id } = project?.networks.find(({ name }) => name === 'one') ?? { id: 0 };
    const state = played.loseState();
    await played.apply(spec('two'));
    expect(await state.openIntents()).toMatchObject([{ key: 'networks.one', recovers: 'networks.two' }]);

    const { text } = await played.resolve(spec('three'), 'networks.one', { type: 'adopt', id: `${id}` });

    expect(text).toContain(`networks.three is bound to ${id}`);
  });

  test('a deleted server that an entry took over is confirmed, and its address is replaced with it', async () => {
    const spec = (name: string, more = '') =>
      `settings: {prune: true}\nservers: {${name}: {${sliders}${more}}}\n`;
    const played = rig({ emulator: { readings: { omittedIpv4: 'new' } } });
    const edited = spec('web').replace(/cores: \d/, 'cores: 3');
    await played.apply(spec('web'));
    await played.apply(spec('www', ', moved: {from: servers.web}'));
    played.emulator.mutate({ do: 'delete_server', id: 2001 });

    expect((await played.apply(edited)).blocked).toMatchObject([
      { key: 'servers.web', code: 'dependency_blocked' },
      { key: 'servers.web.public_ipv4', code: 'recovered_unconfirmed' },
    ]);
    const said = await played.adopt(edited, 'servers.web', '2001');

    expect(said.text).toContain('servers.web is confirmed as bound to 2001, which no longer exists');
    expect((await played.apply(edited)).outcome).toBe('converged');
    expect(played.project.servers.map(({ id }) => id)).toEqual([2002]);
    expect(played.project.ips.map(({ serverId }) => serverId)).toEqual([2002]);
  });

  const blind = gpu
    .replace('[l40s-2, l40s-1]', 'l40s-1')
    .replace('exclusive: true', 'exclusive: true, unconfirmed_servers: ask');

  async function blocked(
    effect: 'none' | 'done',
  ): Promise<{ readonly played: Rig; readonly report: ApplyReport }> {
    const played = rig();
    played.fail('create_server', { do: 'reset', effect, stored: false });
    const report = await played.apply(blind);
    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'outcome_unknown' }]);
    return { played, report };
  }

  const resolve = (played: Rig, resolution: Parameters<Rig['engine']['resolve']>[2]) =>
    played.resolve(blind, 'servers.gpu', resolution);

  test('--adopt of an absent resource is refused', async () => {
    const { played } = await blocked('none');

    await expect(resolve(played, { type: 'adopt', id: '2001' })).rejects.toThrow('no server 2001');
  });
});
