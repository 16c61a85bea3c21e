import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { folderWith, inProcess } from '../cli/run.ts';
import { applied, rig, sliders } from '../support/rig.ts';

const web = `servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`;

describe('src/plan/totals.ts: counts', () => {
  test('an address that comes with its server is not counted separately', async () => {
    const { apply, plan } = rig();

    expect((await plan(web)).summary).toMatchObject({ create: 1, unchanged: 0 });
    await apply(web);
    expect((await plan(web)).summary).toMatchObject({ create: 0, unchanged: 1 });
  });

  test('a plan counts as many resources as the spec has', async () => {
    const { plan } = rig();
    const text = readFileSync('examples/full.yaml', 'utf8');
    const { create, unchanged, blocked } = (await plan(text.slice(text.indexOf('\nsettings:')))).summary;
    const cwd = folderWith({ 'vdcsync.yaml': text });
    const { stdout } = await inProcess(['validate'], { cwd });
    expect(stdout).toContain(`, ${create + unchanged + blocked} resources.`);
  });

  test('drift that is only reported shows the actual and the desired value', async () => {
    const spec = `settings: {drift: report}\n${web.replace('}}}', '}, firewall: {enabled: true, policy_in: drop, rules: []}}}')}`;
    const { plan, emulator } = await applied(spec);
    emulator.mutate({ do: 'set_firewall', server_id: 2001, policy_in: 'accept', rules: [] });

    const [drift] = (await plan(spec)).warnings.filter(({ code }) => code === 'drift');
    expect(drift?.message).toContain('policy_in is "accept", not "drop"');
  });
});
