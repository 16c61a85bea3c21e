import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Plan } from '../../../src/core/plan.ts';
import { passingOn, releasing } from '../../../src/engine/claims/release.ts';
import { bound } from '../../plan/support.ts';
import { applied, type Rig, sliders } from '../../support/rig.ts';
import { stubRun } from '../intents/stub-run.ts';

const head = 'settings: {prune: true, max_deletions: 10}\n';

const addresses = ({ emulator }: Rig) =>
  (emulator.world.projects[0]?.ips ?? []).map(({ address }) => address);
const boundKeys = async ({ store }: Rig) => (await store.bindings()).map((each) => each.key as string);

describe('src/engine/claims: `keep_ip` in the edit that replaces a server', () => {
  const file = (cores: number, keep: boolean) =>
    `${head}servers:\n  web: {${sliders.replace('cores: 1', `cores: ${cores}`)}, replace: {order: delete_first}, public_ipv4: {new: true}, keep_ip: ${keep}}\n`;
  const planned = (plan: Plan) => plan.operations.map(({ id }) => id as string);

  test('is removed, and the address is deleted', async () => {
    const played = await applied(file(1, true));
    const [address] = addresses(played);

    const plan = await played.plan(file(2, false));
    const report = await played.apply(file(2, false));

    expect(planned(plan)).toContain('delete:servers.web~2001.public_ipv4');
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
    expect(addresses(played)).not.toContain(address);
  });
});

describe('src/engine/claims/release.ts: one step', () => {
  const holding = (...bindings: readonly ReturnType<typeof bound>[]) =>
    stubRun({ more: { bindings: new Map(bindings.map((each) => [each.key, each])) } }).run;
  const backup = bound('servers.x.backup', 'backup', 'b1', { parentId: '1' });
  const release = (key: string) => ({
    type: 'release',
    key,
    gone: false,
    reason: 'its key is servers.y now',
  });

  test('a server that gets the key of another entry keeps its values and its parts', () => {
    const server = bound('servers.x', 'server', '1', { recovered: 'found', applied: { cores: 2 } });
    const run = holding(server, backup, bound('servers.z.backup', 'backup', 'b2', { parentId: '3' }));
    const { recovered: _, ...known } = server;
    const taker = { key: 'servers.y' as ResourceKey, protect: true };
    expect(passingOn(run, server, taker)).toStrictEqual([
      ...[release('servers.x'), release('servers.x.backup')],
      { type: 'bind', binding: { ...known, ...taker, formerKeys: ['servers.x'] } },
      { type: 'bind', binding: { ...backup, key: 'servers.y.backup' } },
    ]);
  });

  test('the key of a part that gets another key follows its earlier keys, and its server is the new one', () => {
    const part = bound('servers.x.firewall', 'firewall', '1', {
      parentId: '1',
      formerKeys: ['servers.w.firewall'],
    });
    const taker = { key: 'servers.y.firewall' as ResourceKey, protect: false, parentId: '2' };
    expect(passingOn(holding(part), part, taker)).toMatchObject([
      { type: 'release', key: 'servers.x.firewall' },
      { binding: { ...taker, formerKeys: ['servers.w.firewall', 'servers.x.firewall'] } },
    ]);
  });

  test('the claim on a released backup names its server', () => {
    expect(releasing(holding(backup), backup.key, 'operator', 'why')).toMatchObject([
      { type: 'release', key: 'servers.x.backup' },
      { type: 'claim', claim: { kind: 'backup', id: 'b1', parentId: '1' } },
    ]);
  });
});

describe('src/core/keys.ts: a name with a dot in it', () => {
  test('stays bound when the shorter name is removed', async () => {
    const played = await applied(`${head}ips: {web.2: {}, web: {}}\n`, `${head}ips: {web.2: {}}\n`);

    expect(await boundKeys(played)).toEqual(['ips.web.2']);
  });
});
