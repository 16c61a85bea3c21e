import { describe, expect, test } from 'vitest';
import { documentedProfile } from '../../src/core/profile.ts';
import type { ProjectSession } from '../../src/daemon/ports.ts';
import { openWorkspace, type ProjectParts } from '../../src/daemon/project/workspace.ts';
import { createStopwatch } from '../../src/engine/timing.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';

describe('src/daemon/project/workspace.ts', () => {
  test('an answer to an earlier token does not count for the next token, however fresh it is', async () => {
    const clock = virtualClock();
    let token = 'own';
    const read = { project: async () => ({ id: token === 'own' ? 4711 : 4712 }) };
    const counts = { reads: 0, writes: 0, polls: 0, probes: 0, throttled: 0 };
    const session = {
      ...{ clock, reads: () => read, profile: documentedProfile, counts: () => counts },
      store: memoryState({ createdAt: 1, lineage: 'born' }),
      tokenMark: () => token,
    } as unknown as ProjectSession;
    const { repeating } = openWorkspace(
      session,
      { intervalMs: 60_000 } as ProjectParts,
      createStopwatch(clock, 1),
      counts,
    );
    const project = async () => (await repeating.cache.since(0).project()).id;
    expect(await project()).toBe(4711);
    token = 'foreign';
    expect(await project()).toBe(4712);
  });
});
