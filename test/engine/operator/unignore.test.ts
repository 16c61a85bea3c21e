import { describe, expect, test } from 'vitest';
import type { Plan } from '../../../src/core/plan.ts';
import type { Ip } from '../../../src/core/resources.ts';
import { ignoredObjects } from '../../../src/view/bill.ts';
import { saidBy } from '../../support/resolve.ts';
import { applied, type Rig, rig, sliders } from '../../support/rig.ts';

const web = `servers:\n  web: {${sliders}, public_ipv4: {new: true}}\n`;
const one = 'ips:\n  one: {}\n';

const codes = ({ blocked }: Plan) => Object.fromEntries(blocked.map(({ key, code }) => [key, code]));
const undo = (played: Rig, spec: string, ...names: string[]) => played.unignore(spec, ...names);
const ignore = (played: Rig, ...names: string[]) => played.ignore('', ...names);

async function told(played: Rig) {
  const ips = played.project.ips.map(({ id, address, serverId }) => ({
    ...{ id, address, server_id: serverId },
  }));
  return ignoredObjects(await played.store.claims(), ips as unknown as Ip[]);
}

/** A project of which this state knew nothing but itself, and a server and an address that came later. */
async function withOthers() {
  const played = await applied('');
  played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
  played.emulator.mutate({ do: 'add_ip' });
  const [held = '', free = ''] = played.project.ips.map(({ address }) => address) ?? [];
  return { played, held, free };
}

describe('src/engine/operator/ignore.ts: an ignored resource', () => {
  test('may be a released server that is deleted', async () => {
    const bare = web.replace(', public_ipv4: {new: true}', '');
    const played = await applied(bare);
    await played.forget('', 'servers.web');
    played.project.servers.splice(0, 1);
    await expect(ignore(played, '2001')).resolves.toMatchObject({ text: expect.stringContaining('ignored') });
    await expect(ignore(played, '2009')).rejects.toThrow('The project has no server 2009');
  });

  test('is no server whose creation by this state is still open', async () => {
    const played = rig();
    played.fail({ path: 'create_server' }, { do: 'task', ms: 600_000 });
    await played.apply(web, { stop: played.signalAfter(60_000) });
    await expect(ignore(played, '2001')).rejects.toThrow('was created for servers.web');
    expect((await played.apply(web)).outcome).toBe('converged');
  });

  test('is listed, and becomes unmanaged again with `unignore`', async () => {
    const { played, held, free } = await withOthers();
    await ignore(played, '2001', free);
    expect(await told(played)).toEqual([
      { kind: 'server', id: '2001', addresses: [held] },
      { kind: 'ip', id: '5002', addresses: [free] },
    ]);
    expect(codes(await played.plan(web + one))).toEqual({});

    const said = await undo(played, web + one, '2001');

    expect(saidBy(said)).toContain(`Server 2001 (${held})`);
    expect(codes(await played.plan(web + one))).toEqual({
      'ips.one': 'unmanaged_resources',
      'servers.web': 'unmanaged_resources',
    });
    expect(await told(played)).toMatchObject([{ kind: 'ip', addresses: [free] }]);
    await undo(played, web + one, free);
    expect(await told(played)).toEqual([]);
    expect((await played.plan(one)).blocked[0]?.reason).toContain(free);

    await ignore(played, '2001', free);
    expect((await played.apply(web + one)).outcome).toBe('converged');
  });

  test('an ignored server and its own address are named once', async () => {
    const { played, held } = await withOthers();
    expect(saidBy(await ignore(played, '2001', held))).toContain(`Server 2001 (${held}) is ignored`);
  });

  test('remains ignored by an entry with `managed: false`, and by `unmanaged: ignore`', async () => {
    const { played, held } = await withOthers();
    const theirs = 'servers:\n  theirs: {id: 2001, managed: false}\n';
    await ignore(played, '2001');

    await expect(undo(played, theirs, '2001')).rejects.toThrow('servers.theirs');
    await expect(undo(played, 'settings: {unmanaged: ignore}\n', '2001')).rejects.toThrow(
      'unmanaged: ignore',
    );
    await expect(undo(played, '', held)).rejects.toThrow('belongs to the ignored server 2001');
    await expect(undo(played, '', '2002')).rejects.toThrow('Server 2002');
    await expect(undo(played, '', '203.0.113.250')).rejects.toThrow('Address 203.0.113.250');
    expect(await told(played)).toMatchObject([{ id: '2001' }]);
  });

  test('that is deleted can be unignored, and its idle address is then listed alone', async () => {
    const { played, held } = await withOthers();
    await ignore(played, '2001');
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    expect(await told(played)).toMatchObject([{ id: '2001', addresses: [] }, { addresses: [held] }]);

    await undo(played, '', '2001');

    expect(await told(played)).toMatchObject([{ addresses: [held] }]);
    await played.apply(`${one.replace('{}', '{id: 5001}')}`);
    expect(await told(played)).toEqual([]);
  });

  test('a released server includes an address that no entry declares, until another server has its id', async () => {
    const kept = web.replace('{new: true}', '{reuse: true}');
    const played = await applied(kept);
    await played.forget('settings: {prune: false}\n', 'servers.web');
    const [held = ''] = played.project.ips.map(({ address }) => address) ?? [];

    const another = kept.replace('web', 'db');
    expect(codes(await played.plan(another))).toEqual({});
    expect((await played.plan('')).warnings).toEqual([]);
    await expect(undo(played, '', held)).rejects.toThrow('belongs to the ignored server 2001');
    expect((await played.plan(kept)).operations).toMatchObject([{ verb: 'adopt', key: 'servers.web' }]);

    const [ip] = played.project.ips;
    if (ip !== undefined) ip.address = '203.0.113.77' as typeof ip.address;
    expect(codes(await played.plan(another))).toEqual({ 'servers.db': 'unmanaged_resources' });
  });
});
