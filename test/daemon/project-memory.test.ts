import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { ReadPort } from '../../src/core/ports.ts';
import type { ProjectSession } from '../../src/daemon/ports.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { projectWith, sessionWith } from '../support/project.ts';
import { load } from '../support/rig.ts';

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

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

describe('src/daemon/project/project.ts', () => {
  test('a project at rest keeps no session in memory, also not through its last error', async () => {
    const sessions: WeakRef<ProjectSession>[] = [];
    const open = async (): Promise<ProjectSession> => {
      const engine = new FailingEngine();
      const session = sessionWith({ engine: engine as unknown as Engine, reads: () => ({}) as ReadPort });
      engine.session = session;
      sessions.push(new WeakRef(session));
      return session;
    };
    const project = projectWith({ open });
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
