import { describe, expect, test } from 'vitest';
import { codesOf } from '../reconcilers/support.ts';
import { resolveOf } from '../support/resolve.ts';
import { type Rig, rig } from '../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const own = `${size}, public_ipv4: {new: true}`;
const head = 'settings: {max_deletions: 10}\n';
const web = (more = '') => `${head}servers:\n  web: {${own}${more}}\n`;
const there = ({ emulator }: Rig) => {
  const [project] = emulator.world.projects;
  return [project?.servers.length, project?.ips.length];
};

/** A project made by the first file, and destroyed by the second, which was never applied. */
async function destroyed(before: string, file: string) {
  const played = rig();
  await played.apply(before);
  const report = await played.apply(file, { destroy: true });
  return { ...played, report, left: there(played) };
}

describe('src/engine/run/start.ts: destroy goes by what the spec says now', () => {
  test.each([
    ['in its entry', 'web', web(', protect: true')],
    [
      'under another key',
      'shop',
      web(', protect: true, moved: {from: servers.web}').replace('web:', 'shop:'),
    ],
    ['under another key, by its id', 'shop', `${head}servers:\n  shop: {id: 2001, protect: true}\n`],
  ])('what is protected %s stays, with its address', async (_where, name, file) => {
    const { report, left } = await destroyed(web(), file);

    expect([report.outcome, left]).toEqual(['blocked', [1, 1]]);
    expect(codesOf(report)).toMatchObject({ [`servers.${name}`]: 'protected' });
    expect(report.blocked.map(resolveOf).join()).toContain(`\`protect: false\` in servers.${name}`);
  });

  test.each([
    ['its own entry', `${head}servers:\n  web: {id: 2001, managed: false}\n`],
    ['another entry', `${head}servers:\n  shop: {id: 2001, managed: false}\n`],
  ])('what %s says is not managed is released, with its address', async (_which, file) => {
    const { report, left, store } = await destroyed(web(), file);

    expect([report.outcome, left]).toEqual(['converged', [1, 1]]);
    expect(report.plan.blocked).toEqual([]);
    expect(await store.bindings()).toEqual([]);
  });
});
