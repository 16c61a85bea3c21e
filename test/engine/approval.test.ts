import { describe, expect, test } from 'vitest';
import { Approval, approvePlan, asksForApproval, shortDigest } from '../../src/engine/run/approval.ts';
import { applied, load, type Rig, rig } from '../support/rig.ts';

const approving = 'settings: { approval: plan, max_deletions: 9, prune: true }';
const one = `${approving}\nnetworks: { one: { cidr: 10.1.0.0/24 } }\nips: { web: {} }\n`;
const two = `${one.replace('networks: {', 'networks: { two: { cidr: 10.2.0.0/24 },')}`;

/** A reconciliation as the daemon makes it; each is another process with the same state. */
async function reconcile({ store, restart, repeating, clock }: Rig, spec: string, stop?: AbortSignal) {
  const approval = new Approval(store);
  const desired = load(spec);
  const engine = restart();
  const report = await clock.run(
    engine.apply(desired, {
      approve: (plan) => approval.permits(plan, desired, clock.now()),
      unattended: true,
      ...(stop === undefined ? {} : { stop }),
      repeating: { ...repeating(), isPaused: (operation) => approval.isPaused(operation) },
    }),
  );
  await approval.end(report, desired, clock.now());
  return { report, waiting: approval.waiting };
}

const approve = ({ store, clock }: Rig, digest: string | undefined) =>
  approvePlan(store, digest ?? '', clock.now());

describe('src/engine/run/approval.ts', () => {
  test('nothing is written before the approval of the plan, and then exactly this plan', async () => {
    const made = rig();
    const first = await reconcile(made, one);
    expect([first.report.outcome, made.writes()]).toEqual(['declined', []]);
    expect((await reconcile(made, one)).waiting).toBe(first.waiting);
    await approve(made, shortDigest(first.waiting ?? ''));
    const third = await reconcile(made, one);
    expect([third.report.outcome, third.waiting]).toEqual(['converged', undefined]);
    expect(
      made
        .writes()
        .map(({ path }) => path)
        .sort(),
    ).toEqual(['/ips', '/networks']);
  });

  test('an edit after the approval makes another plan, which waits, and voids the old approval permanently', async () => {
    const made = rig();
    const first = await reconcile(made, one);
    await approve(made, first.waiting);
    const edited = await reconcile(made, two);
    expect([edited.report.outcome, made.writes()]).toEqual(['declined', []]);
    expect(edited.waiting).not.toBe(first.waiting);
    await expect(approve(made, first.waiting)).rejects.toMatchObject({
      remedies: [{ command: 'approve', args: [shortDigest(edited.waiting ?? '')] }],
    });
    expect((await reconcile(made, one)).report.outcome).toBe('declined');
    expect(made.writes()).toEqual([]);
  });

  test('a needless plan waits no more, also if it was approved and has not begun', async () => {
    const made = rig();
    await approve(made, (await reconcile(made, one)).waiting);
    await reconcile(made, one);
    for (const approvesFirst of [false, true]) {
      const gone = await reconcile(made, approving);
      if (approvesFirst) await approve(made, gone.waiting);
      expect((await reconcile(made, one)).report.outcome).toBe('converged');
      await expect(approve(made, gone.waiting)).rejects.toThrow('No plan of this state waits');
      expect((await reconcile(made, approving)).waiting).toBe(gone.waiting);
    }
    expect(made.writes().every(({ method }) => method === 'POST')).toBe(true);
  });

  test.each([
    ['the project has converged', 'converged', 'its spec', false],
    ['a part of it is blocked', 'blocked', 'its spec', true],
    ['another spec was carried out', 'blocked', 'another spec', false],
    ['the run was stopped', 'stopped', 'another spec', true],
  ] as const)('once %s (%s, %s), an approved plan that has begun continues: %s', async (_name, outcome, digest, stays) => {
    const { store, clock } = rig();
    const holder = { is: 'approved', digest: 'sha256:1', operations: ['one'], desired: 'its spec' } as const;
    const claim = { kind: 'project', id: 'approval', identity: {}, holder, at: clock.now() } as const;
    await store.change([{ type: 'claim', claim }], clock.now());

    await new Approval(store).end({ outcome }, { digest }, clock.now());

    expect(await store.claims()).toHaveLength(stays ? 1 : 0);
  });

  test('the second of two approvals is refused, and two operators carry out one plan once', async () => {
    const made = rig();
    const first = await reconcile(made, one);
    const answers = await Promise.allSettled([approve(made, first.waiting), approve(made, first.waiting)]);
    expect(answers.map(({ status }) => status)).toContain('fulfilled');
    await expect(approve(made, first.waiting)).rejects.toThrow('No plan of this state waits');
    expect((await reconcile(made, one)).report.outcome).toBe('converged');
    expect(made.writes()).toHaveLength(2);
    expect((await reconcile(made, one)).report.outcome).toBe('converged');
    expect(made.writes()).toHaveLength(2);
  });

  test('nothing is approved without a waiting plan, or by a digest that is too short', async () => {
    const made = rig();
    await expect(approve(made, 'a'.repeat(12))).rejects.toThrow('No plan of this state waits');
    const { waiting = '' } = await reconcile(made, one);
    await expect(approve(made, waiting.slice(0, 'sha256:'.length + 4))).rejects.toThrow(
      'waits for approval: the spec or the project may have changed',
    );
    expect((await reconcile(made, one)).report.outcome).toBe('declined');
  });

  test.each([
    ['approval: none', false, false],
    ['approval: plan', true, true],
    ['approval: { deletions: true }', false, true],
    ['approval: { replacements: true }', false, false],
    ['approval: { monthly_increase: 0 }', false, false],
  ])('%s: creation waits %s, deletion waits %s', async (approval, creation, deletion) => {
    const made = rig();
    const settings = `settings: { ${approval}, max_deletions: 9, prune: true }\n`;
    const created = `${settings}networks: { one: { cidr: 10.1.0.0/24 } }\n`;
    const asks = async (spec: string) => asksForApproval(await made.plan(spec), load(spec).settings);
    expect(await asks(created)).toBe(creation);
    await made.apply(created);
    expect(await asks(settings)).toBe(deletion);
  });

  test('with `replacements: true`, a replacement waits for its approval', async () => {
    const spec = (approval: string, image: string) =>
      `settings: { approval: ${approval}, max_deletions: 9, prune: true }\nservers: { web: { server_type: sliders-1, cores: 1, memory_mb: 1024, disk_gb: 20, image: ${image}, replace: {order: delete_first} } }\n`;
    const made = await applied(spec('none', 'ubuntu-24.04'));
    const [before] = made.project.servers;
    const written = made.writes().length;
    const edited = spec('{ replacements: true }', 'debian-13');
    const other = spec('{ deletions: true }', 'debian-13');
    expect(asksForApproval(await made.plan(other), load(other).settings)).toBe(false);

    const { report, waiting } = await reconcile(made, edited);
    expect([report.outcome, made.writes().length]).toEqual(['declined', written]);
    expect(made.project.servers).toEqual([before]);

    await approve(made, waiting);
    expect((await reconcile(made, edited)).report.outcome).toBe('converged');
    expect(made.project.servers.map(({ id }) => id)).not.toEqual([before?.id]);
  });

  const operation = (key: string, more: object = {}) => ({
    id: `delete:${key}`,
    key,
    verb: 'delete',
    changes: [],
    ...more,
  });
  const planOf = (...operations: readonly object[]) =>
    ({
      digest: `sha256:${'1'.repeat(64)}`,
      operations,
      summary: { replace: 0 },
      cost: { known_monthly_delta: '0' },
    }) as never;
  const settingsOf = (approval: string) => load(`settings: { approval: ${approval} }\n`).settings;

  test.each([
    ['servers.web', {}, true, false],
    ['servers.web', { replacement: 'create:servers.web' }, false, true],
    // The second half of a replacement, in a run that begins after the first one.
    ['servers.web~2001', {}, false, true],
    ['servers.web~2001.public_ipv4', {}, false, true],
  ])('the deletion of %s %j waits as a deletion: %s, as a replacement: %s', (key, more, ...waits) => {
    const asks = (approval: string) => asksForApproval(planOf(operation(key, more)), settingsOf(approval));
    expect([asks('{ deletions: true }'), asks('{ replacements: true }')]).toEqual(waits);
  });

  test('an open write needs no approval, alone or next to an approved operation', async () => {
    const { store, clock } = rig();
    const desired = { settings: settingsOf('plan'), digest: 'its spec' };
    const [begun, other] = [operation('servers.a', { open: true }), operation('servers.b')] as never[];
    const approval = new Approval(store);
    const permits = (...operations: never[]) => approval.permits(planOf(...operations), desired, clock.now());

    expect([await permits(begun as never), approval.waiting]).toEqual([true, undefined]);
    expect(await permits(other as never)).toBe(false);
    await approvePlan(store, approval.waiting ?? '', clock.now());
    expect(await permits(other as never)).toBe(true);
    expect(await permits(begun as never, other as never)).toBe(true);
    expect([approval.isPaused(begun as never), approval.isPaused(other as never)]).toEqual([false, false]);
  });
});
