import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Desired } from '../../src/core/desired.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import type { StateStore } from '../../src/core/state.ts';
import type { ProjectSession } from '../../src/daemon/ports.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { noRequests, projectWith, sessionWith } from '../support/project.ts';

/** A project whose sessions are made by hand; `events` is what happened to them. */
function projectOf(
  open: (session: ProjectSession) => Promise<ProjectSession>,
  apply: Engine['apply'],
  store: StateStore = memoryState({ createdAt: 0, lineage: 'born' }),
  most = 5,
) {
  const events: string[] = [];
  let counted = 0;
  const session = sessionWith({
    ...{ engine: { apply } as Engine, store },
    reads: () => ({}) as ReturnType<ProjectSession['reads']>,
    counts: () => {
      counted += 1;
      if (counted > most) throw new Error('what runs beside the pass fails');
      return noRequests;
    },
    profile: { ...documentedProfile, limits: { ...documentedProfile.limits, windowMs: 60 } },
    close: async () => {
      events.push('closed');
      await store.close();
    },
  });
  const project = projectWith({ open: () => open(session) });
  const desired = { projectId: 4711, resources: [], digest: 'sha256:1', settings: { suspend: null } };
  project.offer({ desired: desired as unknown as Desired, files: ['shop.yaml'], commit: undefined }, 'start');
  return { project, events, store };
}

describe('src/daemon/project/project.ts: sessions', () => {
  test('a session ends after its work, also if a parallel task fails', async () => {
    const { project, events, store } = projectOf(
      async (session) => session,
      async (_desired, { stop }) => {
        await new Promise((resolve) => stop?.addEventListener('abort', resolve, { once: true }));
        // The exchange in flight ends and is recorded.
        await pause(50);
        await store.info();
        events.push('worked');
        throw new Error('halted');
      },
    );
    await expect(project.runOnce('start', 's', new AbortController().signal)).rejects.toThrow(
      'beside the pass',
    );
    expect(events).toEqual(['worked', 'closed']);
  });

  test('a session that opens after the stop of its turn is closed, which frees the state', async () => {
    let opened = () => {};
    const { project, events } = projectOf(
      (session) =>
        new Promise((resolve) => {
          opened = () => resolve(session);
        }),
      () => Promise.reject(new Error('nothing is worked on')),
    );
    const stop = new AbortController();
    const working = project.runOnce('start', 's', stop.signal);
    stop.abort(new Error('another replica works on it'));
    await working;
    opened();
    await pause(10);
    expect(events).toEqual(['closed']);
  });

  test('a restarted daemon continues from the record of the last turn', async () => {
    const store: StateStore = memoryState({ createdAt: 0, lineage: 'born' });
    store.close = async () => {};
    const away = () => Promise.reject(new Error('the API is away'));
    const found = [];
    for (const _start of ['first', 'second']) {
      const { project } = projectOf(async (session) => session, away, store, Number.POSITIVE_INFINITY);
      const stop = new AbortController();
      const running = project.run(stop.signal);
      await expect.poll(() => project.condition).toBe('failing');
      await expect.poll(async () => (await project.facts()).daemon?.nextReconciliationAt).toBeDefined();
      found.push((await project.facts()).daemon?.reconciliations);
      stop.abort(new Error('the process ends'));
      await running;
    }
    expect(found).toEqual([1, 2]);
  });
});
