import { expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { StateError } from '../../src/core/errors.ts';
import { Board } from '../../src/daemon/fleet/board.ts';
import { fleetSource } from '../../src/daemon/fleet/fleet-source.ts';
import type { Releases } from '../../src/daemon/fleet/releases.ts';
import { Intake } from '../../src/daemon/sources/intake.ts';
import { type Snapshot, SourceError, type SpecSource } from '../../src/daemon/sources/source.ts';
import { systemClock } from '../../src/platform/system.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import { operatorsSpec } from '../../src/spec/environment.ts';
import { quiet } from '../support/project.ts';
import { MemoryPublications } from './memory-publications.ts';

/** Holds nothing back. */
const releases = {
  next: async (wanted: Snapshot) => wanted,
  tell: () => {},
  watch: async () => {},
} as unknown as Releases;

/** The source of a replica with this board, whose specs come from `source`. */
function sourceOf(board: Board, source: SpecSource, clock: Clock = systemClock) {
  return fleetSource({
    ...{ source, board, releases, clock, log: quiet, intervalMs: 1_000 },
    intake: new Intake({ environment: {}, trust: operatorsSpec, checkToken: () => {}, clock }),
    queue: { add: async () => {}, ask: async () => {}, hints: async () => [] },
  });
}

test('a replica that loses the lead while it reads the source continues, and publishes nothing', async () => {
  const shelf = new MemoryPublications().open();
  const open = async () => shelf;
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
  const shared = sourceOf(board, source);

  await expect(shared.read(new AbortController().signal)).rejects.toThrow(SourceError);
  expect(await board.refresh()).toBe(false);
});

test('concurrent reads of the board share one connection, also while the connection fails', async () => {
  let [opened, open] = [0, 0];
  let failing = true;
  const board = new Board({
    open: async () => {
      opened += 1;
      open += 1;
      const shelf = new MemoryPublications().open();
      await shelf.publish([], { commit: null }, { put: [], gone: [] });
      return {
        ...shelf,
        publication: async () => {
          if (failing) throw new StateError('the connection is gone');
          return shelf.publication();
        },
        close: async () => {
          open -= 1;
        },
      };
    },
    assignments: async () => [],
    clock: systemClock,
  });
  const ten = () => Promise.allSettled(Array.from({ length: 10 }, () => board.refresh()));
  const failed = await ten();
  expect(failed.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 'rejected'));
  expect(open).toBe(0);
  failing = false;
  await board.refresh();
  opened = 0;
  const seen = await ten();
  expect(seen.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 'fulfilled'));
  expect([opened, open]).toEqual([0, 1]);
  await board.close();
  expect(open).toBe(0);
});

test('a follower reads the board again as soon as a failed board answers, also without a change', async () => {
  let down = false;
  const shelf = new MemoryPublications().open();
  await shelf.publish([], { commit: null }, { put: [], gone: [] });
  const board = new Board({
    open: async (mode) => {
      if (mode === 'write') throw new StateError('another replica leads');
      if (down) throw new StateError('the server is away');
      return shelf;
    },
    assignments: async () => [],
    clock: systemClock,
  });
  const none: SpecSource = { name: 'none', read: async () => ({ specs: [] }), watch: async () => {} };
  const { read, watch } = sourceOf(board, none);
  const end = new AbortController();
  await read(end.signal);
  down = true;
  await board.close();
  await expect(read(end.signal)).rejects.toThrow(SourceError);
  down = false;
  const hinted = new Promise<string>((resolve) => {
    watch(resolve, end.signal).catch(() => undefined);
  });
  expect(await hinted).toBe('fleet');
  end.abort();
});

test('a replica leads only while its jobs are confirmed, and then reads the source', async () => {
  let alive = false;
  let reads = 0;
  const shelf = new MemoryPublications().open({ isOwned: () => alive });
  await shelf.publish([], { commit: null }, { put: [], gone: [] });
  const clock = virtualClock();
  const board = new Board({ open: async () => shelf, assignments: async () => [], clock });
  const source: SpecSource = {
    name: 'folder',
    read: async () => {
      reads += 1;
      return { specs: [] };
    },
    watch: async () => new Promise(() => {}),
  };
  const { read, watch, lead } = sourceOf(board, source, clock);
  const end = new AbortController();
  watch(() => void read(end.signal), end.signal).catch(() => undefined);
  await expect(lead(end.signal)).rejects.toThrow('lost at once');
  expect([board.leads(), reads]).toEqual([false, 0]);
  alive = true;
  const leading = lead(end.signal);
  await clock.advance(3_000);
  expect([board.leads(), reads]).toEqual([true, 1]);
  alive = false;
  const ended = expect(leading).rejects.toThrow('was lost');
  await clock.advance(3_000);
  await ended;
  end.abort();
});
