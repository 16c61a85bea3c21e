import { describe, expect, test } from 'vitest';
import type { ReadPort } from '../../src/core/ports.ts';
import { openWorkspace, type ProjectParts } from '../../src/daemon/project/workspace.ts';
import { createStopwatch } from '../../src/engine/timing.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import { noRequests, sessionWith } from '../support/project.ts';

describe('src/daemon/project/workspace.ts', () => {
  test('does not use an answer to an earlier token for the next token, however fresh the answer is', async () => {
    const clock = virtualClock();
    let token = 'own';
    const read = { project: async () => ({ id: token === 'own' ? 4711 : 4712 }) };
    const reads = () => read as unknown as ReadPort;
    const session = sessionWith({ clock, reads, tokenMark: () => token });
    const parts = { intervalMs: 60_000 } as ProjectParts;
    const { repeating } = openWorkspace(session, parts, createStopwatch(clock, 1), noRequests);
    const project = async () => (await repeating.cache.since(0).project()).id;
    expect(await project()).toBe(4711);
    token = 'foreign';
    expect(await project()).toBe(4712);
  });
});
