import { describe, expect, test } from 'vitest';
import { planMarkdown } from '../../src/cli/render/plan-markdown.ts';
import { planText } from '../../src/cli/render/plan-text.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { profiled } from '../support/profiled.ts';
import { resolveOf, resolving } from '../support/resolve.ts';
import { codesOf, projectOf } from './support.ts';

const profile = 'operations: {list_servers: {}, resize_server: {}}';
const played = (readings: Partial<Readings> = { serverFields: 'sizes' }) =>
  profiled({ emulator: { readings } }, profile);

const file = (disk: number, more = '') =>
  `servers: {one: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: ${disk}${more}}}\n`;
const planned = (plan: number, more = '') =>
  `servers: {one: {server_type: plans-1, image: ubuntu-24.04, plan_id: ${plan}${more}}}\n`;
const allowed = ', replace: allowed';

describe('src/reconcilers/server/resize.ts: a resize to a smaller disk', () => {
  test('needs `replace: allowed`, and the plan shows and guards it as loss of data', async () => {
    const world = played();
    await world.apply(file(80));

    const held = await world.apply(file(40));
    const free = await world.plan(file(40, allowed));

    expect(held.blocked).toMatchObject([
      {
        code: 'disk_would_shrink',
        reason: 'disk_gb: 80 → 40 destroys the data beyond 40 GB on its disk of 80 GB',
        remedies: resolving('write `replace: allowed` in servers.one | write `disk_gb: 80` in servers.one'),
      },
    ]);
    expect(free.operations).toMatchObject([{ id: 'update:servers.one', risk: 'destructive' }]);
    const lost = 'the data beyond 40 GB on its disk of 80 GB';
    expect(planText(free, (_style, text) => text)).toContain(`→ lost: ${lost}`);
    expect(planMarkdown(free)).toContain(`- **changes** \`servers.one\` (\`2001\`). **Lost: ${lost}.**`);
    expect((await world.apply(file(40, allowed))).outcome).toBe('converged');
    expect(projectOf(world.emulator).servers).toMatchObject([{ diskGb: 40 }]);
  });

  test('is blocked for a protected server despite `replace: allowed`', async () => {
    const world = played();
    await world.apply(file(80));

    const [held] = (await world.plan(file(40, `${allowed}, protect: true`))).blocked;

    expect(resolveOf(held)).toContain('write `protect: false` in servers.one');
  });

  test.each([
    '',
    allowed,
  ])('is blocked after another client enlarged the disk, even if the spec allows it (%s)', async (word) => {
    const world = played();
    await world.apply(file(80, word));
    Object.assign(projectOf(world.emulator).servers[0] ?? {}, { diskGb: 160 });

    const [held] = (await world.apply(file(80, word))).blocked;
    const edited = await world.apply(file(80, word).replace('cores: 1', 'cores: 2'));

    expect(held).toMatchObject({ code: 'disk_would_shrink' });
    expect(resolveOf(held)).toContain('write `disk_gb: 160` in servers.one');
    expect(codesOf(edited)).toEqual({ 'servers.one': 'disk_would_shrink' });
    expect(projectOf(world.emulator).servers).toMatchObject([{ diskGb: 160, cores: 1 }]);
    expect((await world.apply(file(160, word))).outcome).toBe('converged');
  });

  test('is a drift warning with `drift: report`, and blocks an edit that would include it', async () => {
    const world = played();
    const spec = `settings: {drift: report}\n${file(80)}`;
    await world.apply(spec);
    Object.assign(projectOf(world.emulator).servers[0] ?? {}, { diskGb: 160 });

    const plan = await world.plan(spec);
    expect(plan).toMatchObject({ blocked: [], warnings: [{ code: 'drift' }] });

    const edited = await world.plan(spec.replace('cores: 1', 'cores: 2'));

    expect(codesOf(edited)).toEqual({ 'servers.one': 'disk_would_shrink' });
  });

  test.each([
    ['shown', 52, 51, 'the data beyond 40 GB on its disk of 80 GB'],
    ['hidden', 51, 52, 'it is not known whether the disk gets smaller'],
  ] as const)('may result from another plan (plans %s: %i → %i)', async (planList, from, to, loses) => {
    const world = played({ planList });
    await world.apply(planned(from));

    const [held] = (await world.apply(planned(to))).blocked;

    expect(held).toMatchObject({ code: 'disk_would_shrink', reason: expect.stringContaining(loses) });
    expect((await world.apply(planned(to, allowed))).outcome).toBe('converged');
    expect(projectOf(world.emulator).servers).toMatchObject([{ planId: to }]);
  });

  test('does not result from a larger plan', async () => {
    const world = played();
    await world.apply(planned(51));

    expect((await world.apply(planned(52))).outcome).toBe('converged');
  });
});
