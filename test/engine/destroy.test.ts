import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { codesOf } from '../reconcilers/support.ts';
import { resolveOf } from '../support/resolve.ts';
import { applied, type Rig, sliders } from '../support/rig.ts';

const own = `${sliders}, public_ipv4: {new: true}`;
const head = 'settings: {max_deletions: 10}\n';
const web = (more = '') => `${head}servers:\n  web: {${own}${more}}\n`;
const shop = (more: string) => web(more).replace('web:', 'shop:');
const there = ({ project }: Rig) => [project.servers.length, project.ips.length];

/** A project made by the first file, and destroyed by the second, which was never applied. */
async function destroyed(before: string, file: string) {
  const played = await applied(before);
  const report = await played.apply(file, { destroy: true });
  return { ...played, report, left: there(played) };
}

describe('src/engine/run/start.ts: destroy follows the present spec', () => {
  test.each([
    ['in its entry', 'web', web(', protect: true')],
    ['under another key', 'shop', shop(', protect: true, moved: {from: servers.web}')],
    ['under another key, by its id', 'shop', `${head}servers:\n  shop: {id: 2001, protect: true}\n`],
  ])('a resource that is protected %s stays, with its address', async (_where, name, file) => {
    const { report, left } = await destroyed(web(), file);

    expect([report.outcome, left]).toEqual(['blocked', [1, 1]]);
    expect(codesOf(report)).toMatchObject({ [`servers.${name}`]: 'protected' });
    expect(report.blocked.map(resolveOf).join()).toContain(`\`protect: false\` in servers.${name}`);
  });

  test.each([
    ['its own entry', `${head}servers:\n  web: {id: 2001, managed: false}\n`],
    ['another entry', `${head}servers:\n  shop: {id: 2001, managed: false}\n`],
  ])('a resource that %s marks as not managed is released, with its address', async (_which, file) => {
    const { report, left, store } = await destroyed(web(), file);

    expect([report.outcome, left]).toEqual(['converged', [1, 1]]);
    expect(report.plan.blocked).toEqual([]);
    expect(await store.bindings()).toEqual([]);
  });

  test('a resource that an entry with `managed: false` names is released, even if the list lacks it', async () => {
    const before = `${head}networks: {x: {cidr: 10.20.0.0/24}}\nisos: {r: {url: "https://mirror.example.com/a.iso"}}\n`;
    const file = `${head.replace('{', '{prune: true, ')}networks: {n: {managed: false, name: x}}\nisos: {q: {managed: false, name: r}}\n`;
    for (const destroy of [true, false]) {
      const played = await applied(before);
      const cut = { do: 'truncate_list', keep: 0 } as const;
      played.emulator.setFaults(destroy ? [] : [faultRule({ path: 'list_isos' }, cut)]);

      await played.apply(file, { destroy });

      const { networks, isos } = played.project;
      expect([networks.map(({ name }) => name), isos.map(({ name }) => name)]).toEqual([
        ['default', 'x'],
        ['r'],
      ]);
    }
  });

  test('the file protects the resource of a reverted rename with an open write', async () => {
    const played = await applied(
      web(', replace: allowed'),
      shop(', replace: allowed, moved: {from: servers.web}'),
    );
    const larger = (file: string) => file.replace('cores: 1', 'cores: 2');
    await played.failing(
      { path: 'delete_server' },
      { do: 'task', outcome: 'stuck' },
      larger(shop(', replace: allowed')),
    );

    const report = await played.apply(larger(web(', replace: allowed, protect: true')), { destroy: true });

    expect(report.outcome).toBe('blocked');
    expect(report.blocked.map(({ code }) => code)).toContain('moved_in_flight');
    expect(played.project.servers.map(({ id }) => id)).toContain(2002);
  });
});
