import { expect, test } from 'vitest';
import { Board } from '../../src/daemon/fleet/board.ts';
import { fleetSource } from '../../src/daemon/fleet/fleet-source.ts';
import { Intake } from '../../src/daemon/sources/intake.ts';
import { SourceError, type SpecSource } from '../../src/daemon/sources/source.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { operatorsSpec } from '../../src/spec/environment.ts';
import { memoryState } from '../../src/state/memory.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test('a replica that loses the lead while it reads the source goes on, and publishes nothing', async () => {
  const stores = [memoryState({ createdAt: 0, lineage: 'a' })];
  const open = async () => stores.pop() ?? memoryState({ createdAt: 0, lineage: 'b', mode: 'read' as const });
  const board = new Board({ open, assignments: async () => [], clock: systemClock });
  await board.lead();
  const source: SpecSource = {
    name: 'slow',
    async read() {
      await board.yieldLead();
      return { specs: [] };
    },
    watch: async () => {},
  };
  const shared = fleetSource({
    ...{ source, board, clock: systemClock, log: quiet },
    intake: new Intake({ environment: {}, trust: operatorsSpec, checkToken: () => {}, clock: systemClock }),
    queue: { takeHints: async () => async () => {} },
  });

  await expect(shared.read(new AbortController().signal)).rejects.toThrow(SourceError);
  expect(await board.snapshot()).toBe(undefined);
});
