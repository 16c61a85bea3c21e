import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { expectInvariants } from '../support/invariants.ts';
import { profiled } from '../support/profiled.ts';
import { warnedBy } from '../support/resolve.ts';
import { load, type Rig, rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const day = 24 * 3_600_000;

const file = (backup: string, more = '') =>
  `servers: {one: {${sliders}, public_ipv4: {new: true}${backup === '' ? '' : `, backup: {max_age: 24h${backup}}`}${more}}}\n`;

/** A run a day. */
async function days(world: Rig, spec: string, count: number) {
  const outcomes: string[] = [];
  for (let at = 0; at < count; at++) {
    outcomes.push((await world.apply(spec)).outcome);
    await world.clock.advance(day + 3_600_000);
  }
  return outcomes;
}

function taken({ emulator }: Rig): string[] {
  return projectOf(emulator)
    .backups.filter(({ scheduled }) => !scheduled)
    .map(({ id }) => id);
}

describe('src/reconcilers/backup/copies.ts', () => {
  test('backups beyond `keep` are deleted, the oldest first, each once', async () => {
    const world = profiled();
    const outcomes = await days(world, file(', keep: 2'), 5);

    expect(outcomes).toEqual(Array.from({ length: 5 }, () => 'converged'));
    const made = world.emulator.world.executions.flatMap(({ kind, id }) =>
      kind === 'backup' ? [id?.split('/')[1]] : [],
    );
    expect(made).toHaveLength(5);
    expect(taken(world)).toEqual(made.slice(-2));
    expect(countOf(world.emulator, 'delete_backup')).toBe(3);
    await expectInvariants(world);
  });

  test('the plan of a new backup shows the backup that is deleted for it', async () => {
    const world = profiled();
    await days(world, file(', keep: 2'), 2);
    const [oldest] = taken(world);

    const plan = await world.plan(file(', keep: 2'));

    expect(idsOf(plan)).toEqual(['create:servers.one.backup']);
    expect(plan.operations[0]?.changes).toContainEqual({ path: 'oldest', from: oldest, to: null });
    await world.apply(file(', keep: 2'));
    expect(taken(world)).not.toContain(oldest);
  });

  test('backups of a schedule or of another client stay, and do not count', async () => {
    const world = profiled();
    await world.apply(file(', keep: 1'));
    const project = projectOf(world.emulator);
    const [first] = project.backups;
    const foreign = ['2025-01-01T00:00:00Z', '2025-06-01T00:00:00Z'].map((id, at) => ({
      ...first,
      id,
      createdMs: Date.parse(id),
      readyMs: Date.parse(id),
      status: 'available',
      scheduled: at === 0,
    }));
    project.backups.push(...(foreign as typeof project.backups));
    await world.clock.advance(day + 3_600_000);
    await days(world, file(', keep: 1'), 3);

    expect(project.backups.map(({ id }) => id)).toEqual(expect.arrayContaining(foreign.map(({ id }) => id)));
    expect(project.backups).toHaveLength(3);
  });

  test('without `keep`, all backups stay; with `keep`, the plan deletes the surplus', async () => {
    const world = profiled();
    await days(world, file(', keep: 9').replace(', keep: 9', ''), 3);
    expect(taken(world)).toHaveLength(3);
    const bound = (await world.store.bindings()).filter(({ kind }) => kind === 'backup');
    expect(bound.map(({ id }) => id).sort()).toEqual(taken(world));

    const plan = await world.plan(file(', keep: 1').replace('24h', '90d'));
    expect(idsOf(plan)).toHaveLength(2);
    await world.apply(file(', keep: 1').replace('24h', '90d'));
    expect(taken(world)).toHaveLength(1);
  });

  test('without the delete operation, surplus backups stay, and the plan warns', async () => {
    const world = rig();
    await days(world, file(', keep: 1'), 3);
    const plan = await world.plan(file(', keep: 1').replace('24h', '90d'));

    expect(idsOf(plan)).toEqual([]);
    expect(warningsOf(plan)).toEqual(['backups_kept']);
    expect(plan.warnings[0]?.message).toMatch(/^2 backups more than `keep` permits, all billed/);
    expect(taken(world)).toHaveLength(3);
  });

  test('surplus backups of a protected server stay, and the plan warns', async () => {
    const world = profiled();
    const spec = file(', keep: 1', ', protect: true');
    await days(world, spec, 3);

    expect(taken(world)).toHaveLength(3);
    expect(warningsOf(await world.plan(spec.replace('24h', '90d')))).toEqual(['backups_kept']);
    await world.apply(spec.replace('24h', '90d').replace('protect: true', 'protect: false'));
    expect(taken(world)).toHaveLength(1);
  });

  test('max_deletions blocks the deletions of a wrong `keep`', async () => {
    const world = profiled();
    await days(world, file(', keep: 9'), 5);
    const plan = await world.plan(file(', keep: 1').replace('24h', '90d'));

    expect(idsOf(plan)).toEqual([]);
    expect(new Set(Object.values(codesOf(plan)))).toEqual(new Set(['max_deletions']));
    expect(plan.blocked).toHaveLength(4);
  });

  test('the plan shows the deletion of a backup as destructive', async () => {
    const world = profiled();
    await days(world, file(', keep: 9'), 2);
    const plan = await world.plan(file(', keep: 1').replace('24h', '90d'));

    expect(plan.operations).toMatchObject([
      { verb: 'delete', kind: 'backup', risk: 'destructive', spend: 'reduces', changes: [{ path: 'taken' }] },
    ]);
  });

  test('a backup that another client deleted is released', async () => {
    const world = profiled();
    await days(world, file(', keep: 3'), 3);
    const project = projectOf(world.emulator);
    project.backups = project.backups.filter((_each, at) => at !== 1);
    const spec = file(', keep: 3').replace('24h', '90d');
    expect((await world.apply(spec)).outcome).toBe('converged');
    const keys = (await world.store.bindings()).filter(({ kind }) => kind === 'backup');
    expect(keys).toHaveLength(2);
    expect(countOf(world.emulator, 'delete_backup')).toBe(0);
  });

  test.each([
    'the oldest',
    'the newest',
  ] as const)('backups that a truncated list lacks (%s) remain known, and are deleted in order', async (what) => {
    const world = profiled();
    const spec = file(', keep: 3');
    await days(world, spec, 4);
    const before = taken(world);
    world.restart();
    const whole = [...projectOf(world.emulator).backups];
    const some = what === 'the oldest' ? whole.slice(2) : whole.slice(0, -2);
    projectOf(world.emulator).backups = some;
    const report = await world.apply(spec.replace('24h', '90d'));
    expect(warningsOf(report.plan)).toContain('backup_not_listed');

    projectOf(world.emulator).backups = whole;
    world.restart();
    await days(world, spec, 4);

    expect(taken(world)).toHaveLength(3);
    expect(taken(world)).not.toContain(before[0]);
  });

  test('the oldest backup, deleted elsewhere, remains known until the command in the warning releases it', async () => {
    const world = profiled();
    const spec = file(', keep: 3').replace('24h', '90d');
    await days(world, file(', keep: 3'), 3);
    const project = projectOf(world.emulator);
    project.backups = project.backups.slice(1);
    const { plan } = await world.apply(spec);
    const told = plan.warnings.find(({ code }) => code === 'backup_not_listed');
    const [, key = ''] = /vdcsync forget (\S+)/.exec(told === undefined ? '' : warnedBy(told)) ?? [];

    await world.clock.run(world.engine.forget(load(spec), key as ResourceKey));

    const report = await world.apply(spec);
    expect([report.outcome, warningsOf(report.plan)]).toEqual(['converged', []]);
    expect((await world.store.bindings()).filter(({ kind }) => kind === 'backup')).toHaveLength(2);
  });

  test('backups of a deleted server stay billed, and the plan names a remedy before', async () => {
    const world = profiled();
    await days(world, file(', keep: 3'), 2);
    const plan = await world.plan('settings: {prune: true}\n');
    expect(plan.cost.left_billed).toEqual([expect.stringContaining('lower `backup.keep`')]);
    expect((await world.apply('settings: {prune: true}\n')).outcome).toBe('converged');
    expect(taken(world)).toHaveLength(2);
    expect(await world.store.bindings()).toEqual([]);
  });
});
