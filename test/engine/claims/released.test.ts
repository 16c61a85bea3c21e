import { describe, expect, test } from 'vitest';
import { childKey, type ResourceKey, retiringKey } from '../../../src/core/keys.ts';
import type { Plan } from '../../../src/core/plan.ts';
import { run } from '../../../src/core/remedy.ts';
import { saidBy } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {prune: true, max_deletions: 10}\n';

const addresses = ({ emulator }: Rig) =>
  (emulator.world.projects[0]?.ips ?? []).map(({ address }) => address);
const boundKeys = async ({ store }: Rig) => (await store.bindings()).map((each) => each.key as string);

describe('src/engine/claims: the own address of a server that another one of the spec holds by now', () => {
  const b = (cores: number) =>
    `  b: {${size.replace('cores: 1', `cores: ${cores}`)}, public_ipv4: {new: true}, replace: {order: delete_first}}\n`;
  const file = (more: string) => `${head}servers:\n  a: {${size}}\n${more}`;
  const cases: Record<string, [spec: string, servers: readonly string[], server: ResourceKey]> = {
    'that is to be made anew': [file(b(2)), ['a', 'b'], retiringKey('servers.b' as ResourceKey, '2002')],
    'that has left the spec': [file(''), ['a'], 'servers.b' as ResourceKey],
  };

  test.each(Object.entries(cases))('%s waits for a word, and then it is done', async (_what, [
    spec,
    servers,
    server,
  ]) => {
    const own = childKey(server, 'public_ipv4');
    const played = rig();
    await played.apply(file(b(1)));
    const { servers: live = [], ips = [] } = played.emulator.world.projects[0] ?? {};
    Object.assign(ips[0] ?? {}, { serverId: live.find(({ name }) => name === 'a')?.id });

    const { blocked } = await played.apply(spec);
    const said = await played.clock.run(played.engine.forget(load(spec), own));
    const report = await played.apply(spec);

    expect(blocked.find(({ key: each }) => each === own)).toMatchObject({
      code: 'ip_in_use',
      reason: '203.0.113.10 is attached to servers.a',
      remedies: [
        run('apply', [], { when: 'once the address is detached' }),
        run('forget', [own], { when: expect.any(String) as unknown as string }),
      ],
    });
    expect(saidBy(said)).toContain(
      'Address 203.0.113.10 is no longer managed. It still exists and is still billed.',
    );
    expect(report.outcome).toBe('converged');
    expect(report.plan.warnings.map(({ key: each, code }) => [each, code])).toEqual([
      ['servers.a', 'address_not_as_declared'],
    ]);
    expect(played.emulator.world.projects[0]?.servers.map(({ name }) => name).sort()).toEqual(servers);
    expect((await played.plan(spec)).operations).toEqual([]);
  });
});

describe('src/engine/claims: `keep_ip` in the edit that replaces a server', () => {
  const file = (cores: number, keep: boolean) =>
    `${head}servers:\n  web: {${size.replace('cores: 1', `cores: ${cores}`)}, replace: {order: delete_first}, public_ipv4: {new: true}, keep_ip: ${keep}}\n`;
  const planned = (plan: Plan) => plan.operations.map(({ id }) => id as string);

  test('taken out, lets the address go', async () => {
    const played = rig();
    await played.apply(file(1, true));
    const [address] = addresses(played);

    const plan = await played.plan(file(2, false));
    const report = await played.apply(file(2, false));

    expect(planned(plan)).toContain('delete:servers.web~2001.public_ipv4');
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
    expect(addresses(played)).not.toContain(address);
  });
});

describe('src/core/keys.ts: a name with a dot in it', () => {
  test('stays bound when the shorter name goes', async () => {
    const played = rig();
    await played.apply(`${head}ips: {web.2: {}, web: {}}\n`);

    await played.apply(`${head}ips: {web.2: {}}\n`);

    expect(await boundKeys(played)).toEqual(['ips.web.2']);
  });
});
