import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Operation, Plan } from '../../src/core/plan.ts';
import type { Notification } from '../../src/daemon/notifications/notification.ts';
import { ProjectHistory } from '../../src/daemon/project/history.ts';
import { endReconciliation, quiet } from '../support/project.ts';

const [old, edited] = ['sha256:1', 'sha256:2'];
const [key, other] = ['networks.backend' as ResourceKey, 'networks.extra' as ResourceKey];

function operation(of: string, more: object = {}): Operation {
  const id = `create:${of}`;
  return { id, key: of, kind: 'network', verb: 'create', changes: [], ...more } as unknown as Operation;
}

function planOf(...found: readonly (string | Operation)[]): Plan {
  const operations = found.map((each) => (typeof each === 'string' ? operation(each) : each));
  const digest = `sha256:${'ab'.repeat(32)}`;
  return { operations, digest, blocked: [], warnings: [], summary: {} } as unknown as Plan;
}

/** A project that is equal to the old spec. */
function settled() {
  const notices: Notification[] = [];
  const history = new ProjectHistory({
    ...{ project: 4711, observing: false, log: quiet, flags: () => ' --spec vdc.yaml' },
    onNotification: (notice) => notices.push(notice),
  });
  const plan = (found: Plan, digest: string) =>
    history.follow({ type: 'planned', plan: found, at: 1, round: 1 }, digest);
  const close = (found: Plan, digest: string) => endReconciliation(history, found, digest);
  close(planOf(), old);
  const drifts = () => notices.flatMap((each) => (each.event === 'drift' ? [each.detail] : []));
  return { history, plan, close, drifts, notices };
}

describe('src/daemon/project/history.ts: drift and approval', () => {
  test.each([
    ['corrected', 'vdcsync corrects the drift now'],
    ['waits', 'the correction waits for your approval: vdcsync approve --spec vdc.yaml abababababab'],
    ['refused', 'the check command refuses the correction'],
  ] as const)('%s: the last line of the drift message names the result', (ending, line) => {
    const { history, plan, drifts } = settled();
    plan(planOf(key), old);
    expect(drifts()).toEqual([]);
    history.decide(ending);
    expect(drifts()).toEqual([`create ${key}\n${line}`]);
  });

  test('drift that waits for approval is reported once, and not again after the approval', () => {
    const { history, plan, drifts } = settled();
    for (const ending of ['waits', 'waits', 'corrected'] as const) {
      plan(planOf(key), old);
      history.decide(ending);
    }
    expect(drifts()).toHaveLength(1);
  });

  test('the deletion of an expired entry is not drift, and the expiry is notified', () => {
    const { history, plan, drifts, notices } = settled();
    const removal = { ...operation(key), verb: 'delete' } as Operation;
    const remedies = [{ type: 'edit', path: key, remove: ['expires'] }];
    const warnings = [{ code: 'expired', key, message: 'expired at 2028-02-29T00:00:00Z', remedies }];
    plan({ ...planOf(), operations: [removal], warnings } as unknown as Plan, old);
    history.decide('corrected');
    expect(drifts()).toEqual([]);
    expect(notices).toContainEqual({
      ...{ project: 4711, event: 'expiring', detail: `${key}: expired at 2028-02-29T00:00:00Z` },
    });
  });

  test('drift of a plan that ends before its decision is reported with the next plan', () => {
    const { history, plan, drifts } = settled();
    plan(planOf(key), old);
    plan(planOf(key), old);
    history.decide('waits');
    expect(drifts()).toHaveLength(1);
  });

  test('an edit is not drift while it waits, when it is carried out, or when a part of it is reverted', () => {
    const { history, plan, close, drifts } = settled();
    for (const ending of ['waits', 'waits', 'corrected'] as const) {
      plan(planOf(key, other), edited);
      history.decide(ending);
      if (ending === 'waits') close(planOf(key, other), edited);
    }
    const result = { ...operation(key), outcome: 'done', durationMs: 1 } as const;
    history.follow({ type: 'ended', at: 2, result }, edited);
    plan(planOf(key), old);
    history.decide('waits');
    expect(drifts()).toEqual([]);
    close(planOf(), old);
    plan(planOf(key), old);
    history.decide('waits');
    expect(drifts()).toHaveLength(1);
  });

  test('drift is reported next to blocked operations, but blocked operations and due backups are not drift', () => {
    const { history, plan, close, drifts } = settled();
    const blocked = {
      ...planOf(),
      blocked: [{ key, verb: 'create', code: 'protected', reason: '', remedies: [] }],
    };
    const rule = { direction: 'in', action: 'accept', enabled: true, destination_port: '1-65535' };
    const changes = [
      { path: 'policy_in', from: 'accept', to: 'drop' },
      { path: 'rules', from: [rule, rule], to: [] },
    ];
    const [backup, firewall] = ['backup', 'firewall'].map((kind) =>
      operation(`servers.a.${kind}`, { id: `update:servers.a.${kind}`, kind, verb: 'update', changes }),
    ) as [Operation, Operation];
    for (const found of [planOf(key, backup), planOf(firewall, key)]) {
      close(blocked as unknown as Plan, old);
      plan(found, old);
      history.decide('corrected');
    }
    expect(drifts()).toEqual([
      'update servers.a.firewall: policy_in: accept → drop, rules: 2 entries → []\nvdcsync corrects the drift now',
    ]);
  });

  test('drift is reported once while an edit waits', () => {
    const { history, plan, drifts } = settled();
    const repair = operation('servers.a.firewall', {
      ...{ kind: 'firewall', verb: 'update', cause: 'drift' },
      changes: [{ path: 'enabled', from: false, to: true }],
    });
    const counts = [planOf(key), planOf(key, repair), planOf(key, repair), planOf(key)].map((found) => {
      plan(found, edited);
      history.decide('corrected');
      return drifts().length;
    });
    expect(counts).toEqual([0, 1, 1, 1]);
  });
});
