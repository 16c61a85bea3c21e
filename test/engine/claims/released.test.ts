import { describe, expect, test } from 'vitest';
import type { Plan } from '../../../src/core/plan.ts';
import { applied, type Rig, sliders } from '../../support/rig.ts';

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

describe('src/core/keys.ts: a name with a dot in it', () => {
  test('stays bound when the shorter name is removed', async () => {
    const played = await applied(`${head}ips: {web.2: {}, web: {}}\n`, `${head}ips: {web.2: {}}\n`);

    expect(await boundKeys(played)).toEqual(['ips.web.2']);
  });
});
