import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { bare, type Operator, Scene, type Sections } from './edits-scene.ts';

const settings = { prune: true };
const firewall = { enabled: true, policy_in: 'drop', rules: [] };
const web = { ...bare, public_ipv4: { new: true }, firewall };
const first = { settings, servers: { web } };

/** The names of the runs, newest first. */
async function runs(operator: Operator): Promise<readonly string[]> {
  const { writes }: { readonly writes: readonly { readonly run: string }[] } = await operator.json('history');
  return [...new Set(writes.map(({ run }) => run))];
}

/** After the first spec and an edit. */
async function edited(edit: Sections): Promise<{ scene: Scene; operator: Operator; run: string }> {
  const { scene, operator } = await Scene.applied(first);
  await operator.applied(edit);
  const [run = ''] = await runs(operator);
  return { scene, operator, run };
}

describe('src/cli/settings/undo.ts', () => {
  test('two applies with different specs are two runs, and only the last run is undone', async () => {
    const opened = { ...web, firewall: { ...firewall, policy_in: 'accept' } };
    const { scene, operator, run } = await edited({ settings, ips: { api: {} }, servers: { web: opened } });
    expect(await runs(operator)).toHaveLength(2);
    const planned = await operator.run(`plan --undo ${run} --detailed-exitcode`);
    expect(planned).toMatchObject({ code: 2, stderr: '' });
    expect(planned.stdout).toContain(`The plan undoes the run ${run} wholly.`);
    const { code, stdout } = await operator.run(`apply --undo ${run} --yes`);
    expect({ code, last: stdout.trimEnd().split('\n').slice(-2) }).toEqual({
      code: 0,
      last: [
        `The run ${run} is undone.`,
        'The spec still has 2 entries from that run: change these entries back, or the next apply changes them again: ips.api, servers.web',
      ],
    });
    expect(scene.project.servers).toMatchObject([{ id: 2001, firewall: { policyIn: 'drop' } }]);
    expect(scene.project.ips).toMatchObject([{ serverId: 2001 }]);
    operator.declare(first);
    await operator.out('plan --detailed-exitcode');
  });

  test('the plan and the result name the losses of a deletion', async () => {
    const { scene, operator, run } = await edited({ settings });
    expect(scene.project.servers).toEqual([]);
    const planned = await operator.out(`plan --undo ${run}`);
    const losses =
      '  delete servers.web (data lost)\n  delete servers.web.public_ipv4 (with another address)\n';
    expect(planned).toContain(`The plan undoes the run ${run}, except:\n${losses}`);
    const { stdout } = await operator.run(`apply --undo ${run} --yes`);
    expect(stdout).toContain(
      `The run ${run} is undone, except: delete servers.web (data lost), delete servers.web.public_ipv4 (with another address).`,
    );
    expect(scene.project.servers).toMatchObject([{ id: 2002, cores: 1, firewall: { enabled: true } }]);
  });

  test('every operation of a plan shows whether an undo is possible', async () => {
    const { operator } = await edited({ settings, ips: { api: {} }, servers: { web } });
    operator.declare({ settings, networks: { a: { cidr: '10.20.0.0/24' } } });
    const { operations }: Plan = await operator.json('plan');
    expect(Object.fromEntries(operations.map(({ id, undo }) => [id, undo]))).toEqual({
      'create:networks.a': 'wholly',
      'delete:servers.web': 'data_lost',
      'delete:servers.web.public_ipv4': 'another_address',
      'delete:ips.api': 'another_address',
    });
  });

  test('an undo that a guard blocks does not end as undone', async () => {
    const none = { ...settings, max_deletions: 0 };
    const { scene, operator, run } = await edited({ settings: none, servers: { web, db: bare } });
    const { code, stdout } = await operator.run(`apply --undo ${run} --yes`);
    expect(code).toBe(3);
    expect(stdout).toContain(`The run ${run} is not undone.`);
    expect(scene.project.servers).toHaveLength(2);
  });

  test.each<[string, Readonly<Record<string, object>>, string]>([
    ['protects', { web, db: { ...bare, protect: true } }, 'the spec has `protect` in servers.db'],
    ['keeps the address of', { web, db: { ...bare, keep_ip: true } }, 'the spec has `keep_ip` in servers.db'],
    ['no longer manages', { web, db: { id: 2002, managed: false } }, 'the spec has `managed` in servers.db'],
    ['binds by id', { web, db: { ...bare, id: 2002 } }, 'the spec has `id` in servers.db'],
    [
      'renames',
      { web, api: { ...bare, moved: { from: 'servers.db' } } },
      'renames servers.db to servers.api',
    ],
    ['renames by id', { web, api: { ...bare, id: 2002 } }, 'renames servers.db to servers.api'],
  ])('refuses a run with a server that the current spec %s', async (_what, servers, text) => {
    const { scene, operator, run } = await edited({ settings, servers: { web, db: bare } });
    operator.declare({ settings, servers });
    expect(await operator.refused(1, `apply --undo ${run} --yes`)).toContain(text);
    expect(scene.project.servers).toHaveLength(2);
  });

  test.each([
    ['an unknown run', '2020-01-01T00:00:00Z', 'this state knows no run'],
    ['an invalid name of a run', 'last', 'names no run'],
    ['a selection', '2020-01-01T00:00:00Z --target ips.api', 'leave out --target'],
  ])('refuses %s', async (_what, flags, text) => {
    const { operator } = await Scene.start();
    operator.declare(first);
    expect(await operator.refused(64, `plan --undo ${flags}`)).toContain(text);
  });

  test('refuses a run whose resources a later run uses, and then undoes both runs, the last run first', async () => {
    const addresses = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, {}]));
    const { scene, operator, run } = await edited({ settings, ips: addresses(['a']), servers: { web } });
    const larger = { ...web, public_ipv4: { ip: 'a' }, replace: 'allowed' };
    await operator.applied({ settings, ips: addresses(['a']), servers: { web: larger } });
    expect(await operator.refused(1, `plan --undo ${run}`)).toContain(
      `servers.web uses ips.a, which does not exist without the run ${run}`,
    );
    const [last = ''] = await runs(operator);
    await operator.run(`apply --undo ${last} --yes`);
    operator.declare({ settings, ips: addresses(['a']), servers: { web } });
    await operator.out(`apply --undo ${run} --yes`);
    expect(scene.project.ips).toHaveLength(1);
    expect(scene.project.servers).toHaveLength(1);
  });
});

describe('src/plan/undo.ts: limits', () => {
  test('an undo does not revert a correction of drift', async () => {
    const { scene, operator } = await edited({ settings, ips: { api: {} }, servers: { web } });
    const [server] = scene.project.servers;
    if (server !== undefined) server.firewall.policyIn = 'accept';
    // A run of its own: the settings differ, and no entry does.
    expect(
      await operator.edit({
        settings: { ...settings, max_deletions: 3 },
        ips: { api: {} },
        servers: { web },
      }),
    ).toMatchObject({ code: 0 });
    const [run = ''] = await runs(operator);
    expect(await operator.refused(64, `plan --undo ${run}`)).toContain(
      'corrected changes from outside vdcsync',
    );
  });

  test('refuses a run whose resource was renamed or released since', async () => {
    const { operator, run } = await edited({ settings, ips: { api: {} }, servers: { web } });
    operator.declare({ settings, servers: { web } });
    await operator.run('forget ips.api');
    expect(await operator.refused(1, `apply --undo ${run} --yes`)).toContain(
      'ips.api has no binding any more',
    );
  });
});
