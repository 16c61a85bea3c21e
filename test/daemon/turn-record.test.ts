import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Operation, Plan } from '../../src/core/plan.ts';
import { command } from '../../src/core/remedy.ts';
import { ProjectHistory } from '../../src/daemon/project/history.ts';
import { memoryNote, readMemory } from '../../src/daemon/project/memory.ts';
import { LastReconciliation } from '../../src/daemon/project/turn-record.ts';
import { WayBack } from '../../src/daemon/project/way-back.ts';
import { KeyBackOff } from '../../src/daemon/scheduling/back-off.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { notifierWith } from '../support/notifier.ts';
import { endReconciliation, quiet } from '../support/project.ts';
import { load } from '../support/rig.ts';

const key = 'networks.backend' as ResourceKey;
const spec = (cidr: string) => load(`networks: {backend: {cidr: ${cidr}}}`);

/** A replica's own view of one project. */
function replica(name: string) {
  const { notifier, bodies } = notifierWith();
  const history = new ProjectHistory({
    ...{ project: 4711, observing: false, log: quiet, flags: () => '' },
    onNotification: (notice) => notifier.notify(notice),
  });
  const parts = { history, backOff: new KeyBackOff({ next: () => 0 }), wayBack: new WayBack(quiet) };
  const times = { now: 5 };
  const worker = { replica: name, notified: notifier, now: () => times.now };
  return { ...parts, bodies, times, record: new LastReconciliation(4711, worker, parts) };
}

function learnsOfFailure({ backOff }: ReturnType<typeof replica>): void {
  backOff.learn(
    [{ key, verb: 'create', outcome: 'failed', durationMs: 1 }],
    spec('10.0.0.0/24'),
    () => false,
    0,
  );
}

const blocked = {
  ...{ operations: [], warnings: [], summary: {} },
  blocked: [{ key, verb: 'create', code: 'outcome_unknown', reason: 'lost', remedies: [command('resolve')] }],
} as unknown as Plan;

describe('src/daemon/project/turn-record.ts: turns of a project', () => {
  test('a replica continues with the findings of the replica before', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    const [a, b] = [replica('a'), replica('b')];
    learnsOfFailure(a);
    endReconciliation(a.history, blocked, 'sha256:1');
    await a.record.write(store, 's');
    await b.record.recall(store, spec('10.0.0.0/24'));
    expect(b.backOff.isPaused({ key } as Operation, 1)).toBe(true);
    expect([
      b.history.found.condition,
      b.history.found.reconciliations,
      b.history.found.differsSince,
    ]).toEqual(['blocked', 1, 2]);
    endReconciliation(b.history, blocked, 'sha256:1');
    await Promise.resolve();
    expect([a.bodies().length, b.bodies().length]).toEqual([1, 0]);
  });

  test('the time of a condition continues over turns with the same condition and spec, and else restarts', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    const { record, times, history } = replica('a');
    const turn = async (spec: string, now: number) => {
      times.now = now;
      await record.recall(store, undefined);
      await record.write(store, spec);
      const { since, turnedAt } = readMemory(await store.note(memoryNote)) ?? {};
      return [since, turnedAt];
    };
    history.judge([], 1);
    expect(await turn('s', 10)).toEqual([10, 10]);
    expect(await turn('s', 20)).toEqual([10, 20]);
    expect(await turn('t', 30)).toEqual([30, 30]);
    history.recall({ ...history.remember(), conditionSince: 2 });
    times.now = 40;
    await record.write(store, 't');
    expect(readMemory(await store.note(memoryNote))?.since).toBe(40);
  });

  test('a changed entry is tried at once, and an edit is not reported as drift', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    const [a, b] = [replica('a'), replica('b')];
    learnsOfFailure(a);
    endReconciliation(a.history, { ...blocked, blocked: [] }, 'sha256:1');
    await a.record.write(store, 's');
    await b.record.recall(store, spec('10.0.1.0/24'));
    expect(b.backOff.isPaused({ key } as Operation, 1)).toBe(false);
    const operations = [
      { key, kind: 'network', verb: 'create', changes: [{ path: 'cidr', from: null, to: '10.0.1.0/24' }] },
    ];
    const plan = { ...blocked, blocked: [], operations } as unknown as Plan;
    const decided = (digest: string) => {
      b.history.follow({ type: 'planned', plan, at: 3, round: 1 }, digest);
      b.history.decide('corrected');
    };
    decided('sha256:2');
    expect(b.bodies()).toEqual([]);
    decided('sha256:1');
    expect(b.bodies()).toMatchObject([
      { event: 'drift', detail: 'create networks.backend\nvdcsync corrects the drift now' },
    ]);
  });

  test('ignores a note of another release', async () => {
    const store = memoryState({ createdAt: 1, lineage: 'born' });
    await store.putNote(memoryNote, { replica: 'a', history: { condition: 7 } });
    const b = replica('b');
    await b.record.recall(store, undefined);
    expect(b.history.found.condition).toBe('starting');
  });
});
