import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Operation, Plan } from '../../src/core/plan.ts';
import { run } from '../../src/core/remedy.ts';
import { Notifier } from '../../src/daemon/notices/notifier.ts';
import { KeyBackOff } from '../../src/daemon/pace/back-off.ts';
import { Holds } from '../../src/daemon/pace/holds.ts';
import { Ledger } from '../../src/daemon/project/ledger.ts';
import { memoryNote } from '../../src/daemon/project/memory.ts';
import { handOn, takeUp } from '../../src/daemon/project/turn.ts';
import { memoryState } from '../../src/state/memory.ts';
import { load } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const key = 'networks.backend' as ResourceKey;
const spec = (cidr: string) => load(`networks: {backend: {cidr: ${cidr}}}`);

/** A replica's own view of one project. */
function replica(name: string) {
  const sent: string[] = [];
  const transport = {
    send: async ({ body }: { body?: string | undefined }) => {
      sent.push(String(body));
      return { status: 200, headers: {}, body: '' };
    },
  };
  const notifier = new Notifier({
    receivers: [{ form: 'json', url: () => 'http://127.0.0.1/' }],
    ...{
      transport: transport as never,
      clock: virtualClock(),
      log,
      onResult: () => {},
      nameOf: () => undefined,
    },
  });
  const ledger = new Ledger({
    ...{ project: 4711, observing: false, log, flags: () => '' },
    onNotice: (notice) => notifier.tell(notice),
  });
  const parts = { ledger, backOff: new KeyBackOff({ next: () => 0 }), holds: new Holds(() => 0) };
  return {
    ...parts,
    parts,
    sent,
    turn: { trigger: 'timer', replica: name, spec: 's', told: notifier } as const,
  };
}

function learnsOfFailure({ backOff }: ReturnType<typeof replica>): void {
  backOff.learn(
    [{ key, verb: 'create', outcome: 'failed', durationMs: 1 }],
    spec('10.0.0.0/24'),
    () => false,
    0,
  );
}

const refused = { code: 'payment_required', reason: 'unpaid' };
const blocked = {
  ...{ operations: [], warnings: [], summary: {} },
  blocked: [{ key, verb: 'create', code: 'outcome_unknown', reason: 'lost', remedies: [run('resolve')] }],
} as unknown as Plan;

function passed(ledger: Ledger, plan: Plan, digest: string): void {
  const pass = {
    number: 1,
    triggers: [],
    startedAt: 1,
    endedAt: 2,
    outcome: 'blocked',
    operations: 1,
    settled: 0,
  } as const;
  ledger.succeed(plan);
  ledger.close({ ...pass, commit: undefined }, digest, []);
}

describe('src/daemon/project/turn.ts: turns at a shared project', () => {
  test('what one replica found out the next one goes by', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    const [a, b] = [replica('a'), replica('b')];
    learnsOfFailure(a);
    a.holds.set('spending', refused);
    a.holds.review('Suspended');
    passed(a.ledger, blocked, 'sha256:1');
    await handOn(a.turn, store, a.parts, { project: 4711, dueAt: 9 });
    await takeUp(b.turn, store, b.parts, spec('10.0.0.0/24'));
    expect(b.backOff.withholds({ key } as Operation, 1)).toBe(true);
    expect([...b.holds]).toEqual([['spending', refused]]);
    b.holds.review('Active');
    expect([...b.holds]).toEqual([]);
    expect([b.ledger.condition, b.ledger.passes, b.ledger.differsSince]).toEqual(['blocked', 1, 2]);
    passed(b.ledger, blocked, 'sha256:1');
    await Promise.resolve();
    expect([a.sent.length, b.sent.length]).toEqual([1, 0]);
  });

  test('a changed entry is tried at once, and nobody is told of drift that is an edit', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    const [a, b] = [replica('a'), replica('b')];
    learnsOfFailure(a);
    passed(a.ledger, { ...blocked, blocked: [] }, 'sha256:1');
    await handOn(a.turn, store, a.parts, { project: 4711, dueAt: 9 });
    await takeUp(b.turn, store, b.parts, spec('10.0.1.0/24'));
    expect(b.backOff.withholds({ key } as Operation, 1)).toBe(false);
    const operations = [{ key, verb: 'create', changes: [{ path: 'cidr', from: null, to: '10.0.1.0/24' }] }];
    const plan = { ...blocked, blocked: [], operations } as unknown as Plan;
    b.ledger.follow({ type: 'planned', plan, at: 3, round: 1 }, 'sha256:2');
    expect(b.sent).toEqual([]);
    b.ledger.follow({ type: 'planned', plan, at: 3, round: 1 }, 'sha256:1');
    expect(b.sent.map((body) => JSON.parse(body))).toMatchObject([
      { event: 'drift', detail: 'create networks.backend\nvdcsync corrects this now' },
    ]);
  });

  test('drift is told while something else waits for an operator, but not what waited, nor a backup that is due', async () => {
    const { ledger, sent } = replica('a');
    const found = async (...keys: readonly string[]) => {
      const operations = keys.map((each) => ({
        ...{ key: each, verb: 'update', changes: [] },
        kind: each.endsWith('.backup') ? 'backup' : 'firewall',
      }));
      const plan = { ...blocked, operations } as unknown as Plan;
      ledger.follow({ type: 'planned', plan, at: 3, round: 1 }, 'sha256:1');
      await pause(0);
      return sent.flatMap((body) => {
        const { event, detail } = JSON.parse(body) as { event: string; detail: string };
        return event === 'drift' ? [detail] : [];
      });
    };
    passed(ledger, blocked, 'sha256:1');
    expect(await found(key, 'servers.a.backup')).toEqual([]);
    passed(ledger, blocked, 'sha256:1');
    expect(await found('servers.a.firewall', key)).toEqual([
      'update servers.a.firewall\nvdcsync corrects this now',
    ]);
  });

  test('drift is told while an edit waits, once for as long as it stays', async () => {
    const { ledger, sent } = replica('a');
    const creation = {
      id: 'create:servers.b',
      key: 'servers.b',
      verb: 'create',
      kind: 'server',
      changes: [],
    };
    const repair = {
      ...{ id: 'update:servers.a.firewall', key: 'servers.a.firewall', verb: 'update', kind: 'firewall' },
      ...{ changes: [{ path: 'enabled', from: false, to: true }], cause: 'drift' },
    };
    const drifts = async (...operations: readonly object[]) => {
      const plan = { ...blocked, blocked: [], operations } as unknown as Plan;
      ledger.follow({ type: 'planned', plan, at: 3, round: 1 }, 'sha256:2');
      await pause(0);
      return sent.filter((body) => JSON.parse(body).event === 'drift').length;
    };
    passed(ledger, { ...blocked, blocked: [] }, 'sha256:1');

    expect(await drifts(creation)).toBe(0);
    expect(await drifts(creation, repair)).toBe(1);
    expect(await drifts(creation, repair)).toBe(1);
    expect(await drifts(creation)).toBe(1);
  });

  test('a note of another release is as good as none', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    await store.putNote(memoryNote, { replica: 'a', ledger: { condition: 7 } });
    const b = replica('b');
    await takeUp(b.turn, store, b.parts, undefined);
    expect(b.ledger.condition).toBe('starting');
  });
});
