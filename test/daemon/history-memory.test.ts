import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import { ProjectHistory } from '../../src/daemon/project/history.ts';

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;

class Session {
  readonly held = new Array(1_000).fill(0);

  read(): never {
    throw new Error('no answer', { cause: this.#failure() });
  }

  #failure(): Error {
    return new Error(`connection lost after ${this.held.length} bytes`);
  }
}

/** The session is reachable from nothing but the error. */
function failedIn(history: ProjectHistory): WeakRef<Session> {
  const session = new Session();
  try {
    session.read();
  } catch (error) {
    history.fail(error);
  }
  return new WeakRef(session);
}

describe('src/daemon/project/history.ts: memory', () => {
  test('the error that a project keeps does not keep the session that it comes from', async () => {
    const history = new ProjectHistory({
      ...{ project: 4711, observing: false, log, flags: () => '' },
      onNotification: () => {},
    });
    const session = failedIn(history);
    // One collection may leave what a frame or the coverage still refers to.
    await vi.waitFor(
      () => {
        collect();
        expect(session.deref() === undefined, 'the session is collected').toBe(true);
      },
      { interval: 20 },
    );
    expect(history.found.error).toMatchObject({ message: 'no answer' });
  });
});
