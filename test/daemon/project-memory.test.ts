import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { documentedProfile } from '../../src/core/profile.ts';
import { Notifier } from '../../src/daemon/notifications/notifier.ts';
import type { ProjectSession } from '../../src/daemon/ports.ts';
import { DaemonProject } from '../../src/daemon/project/project.ts';
import { systemClock, systemRandom } from '../../src/platform/system.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { load } from '../support/rig.ts';

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Of a session. V8 keeps the receivers of all frames of an error until its stack is read. */
class FailingEngine {
  session: ProjectSession | undefined;

  async apply(): Promise<never> {
    throw new Error('the API is away', { cause: this.#lost() });
  }

  #lost(): Error {
    return new Error(`connection of ${this.session?.profile.limits.reads} reads lost`);
  }
}

const counts = { reads: 3, writes: 0, polls: 0, probes: 0, throttled: 0 };

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

describe('src/daemon/project/project.ts', () => {
  test('a project at rest keeps no session in memory, neither by the error that it shows', async () => {
    const sessions: WeakRef<ProjectSession>[] = [];
    const open = async (): Promise<ProjectSession> => {
      const engine = new FailingEngine();
      const session = {
        engine,
        store: memoryState({ createdAt: 1, lineage: 'born' }),
        reads: () => ({}),
        clock: systemClock,
        counts: () => counts,
        profile: documentedProfile,
        tokenMark: () => '',
        onCommand: async () => {},
        close: async () => {},
      } as unknown as ProjectSession;
      engine.session = session;
      sessions.push(new WeakRef(session));
      return session;
    };
    const notified = new Notifier({
      ...{ receivers: [], transport: {} as never, clock: systemClock, log },
      ...{ onResult: () => {}, nameOf: () => undefined },
    });
    const project = new DaemonProject({
      id: 4711,
      deps: { clock: systemClock, random: systemRandom, log, open, commandFlags: () => '' },
      ...{ mode: 'correct', intervalMs: 60_000, keepMs: 60_000 },
      worker: { replica: 'a', notified, now: () => 0 },
      ...{ onNotification: () => {}, onChange: () => {}, onEvent: () => {}, onReconciliation: () => {} },
    });
    project.offer({ desired: load('networks: {}'), files: ['a.yaml'], commit: undefined }, 'file');
    for (let at = 0; at < 2; at += 1) await project.runOnce('file', 's', new AbortController().signal);
    expect(sessions).toHaveLength(2);
    for (let at = 0; at < 50 && sessions.some((each) => each.deref() !== undefined); at += 1) {
      await pause(20);
      collectGarbage();
    }
    expect(sessions.map((each) => each.deref())).toEqual([undefined, undefined]);
    expect(project.condition).toBe('failing');
  });
});
