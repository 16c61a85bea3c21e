import { describe, expect, onTestFinished, test } from 'vitest';
import { Schedule, type ScheduleOptions, type Wanted } from '../../src/daemon/fleet/schedule.ts';
import type { Trigger } from '../../src/daemon/ports.ts';
import { systemRandom } from '../../src/platform/system-random.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const soon = (trigger: Trigger): Wanted => ({ trigger, afterMs: 0 });
const later: Wanted = { trigger: 'timer', afterMs: 3_600_000 };

/** Notes what is worked on; a turn lasts until it is released, where `holds` says so. */
function scheduleOf(options: Partial<ScheduleOptions> & { readonly holds?: boolean } = {}) {
  const begun: string[] = [];
  const ends = new Map<number, (wanted: Wanted) => void>();
  const stop = new AbortController();
  const clock = virtualClock();
  const schedule = new Schedule({
    ...{ clock, random: systemRandom, log: quiet, atOnce: 2 },
    mayBegin: () => true,
    isReading: () => false,
    isWaiting: () => false,
    onAsked: (project, trigger) => void begun.push(`${project} ${trigger} beside`),
    job: (project, trigger, over) => {
      begun.push(`${project} ${trigger}`);
      if (options.holds !== true) return Promise.resolve(later);
      return new Promise((resolve) => {
        ends.set(project, resolve);
        over.addEventListener('abort', () => begun.push(`${project} over`));
      });
    },
    ...options,
  });
  const running = schedule.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    for (const end of ends.values()) end(later);
    await clock.run(running);
  });
  return { clock, schedule, begun, end: (project: number, wanted = later) => ends.get(project)?.(wanted) };
}

describe('src/daemon/fleet/schedule.ts', () => {
  test('a project waits once, for the soonest moment that was named', async () => {
    const { clock, schedule, begun } = scheduleOf();
    schedule.add(1, later);
    schedule.wake([1], soon('webhook'));
    schedule.wake([1], later);
    schedule.wake([1, 2], soon('timer'));
    await clock.advance(50);
    expect(begun).toEqual(['1 webhook']);
  });

  test('an edit begins at once, before what was due by time alone, and so does what has been due for longer', async () => {
    let open = false;
    const { clock, schedule, begun } = scheduleOf({ atOnce: 1, mayBegin: () => open });
    for (const project of [1, 2, 3]) {
      schedule.add(project, { trigger: 'timer', afterMs: 0 });
      await clock.advance(2);
    }
    expect([schedule.waiting(), schedule.lagMs() > 0]).toEqual([3, true]);
    open = true;
    schedule.wake([3], soon('git'));
    await clock.advance(50);
    expect(begun).toEqual(['3 git', '1 timer', '2 timer']);
    expect([schedule.waiting(), schedule.lagMs()]).toEqual([0, 0]);
  });

  test('places are taken as they come free, and a turn that only waits holds none', async () => {
    const waiting = new Set<number>();
    const { clock, schedule, begun, end } = scheduleOf({
      holds: true,
      isWaiting: (project) => waiting.has(project),
    });
    for (const project of [1, 2, 3, 4]) schedule.add(project, soon('start'));
    await clock.advance(50);
    expect(begun).toEqual(['1 start', '2 start']);
    end(1);
    await clock.advance(50);
    expect(begun.slice(2)).toEqual(['3 start']);
    waiting.add(2);
    await clock.advance(1_200);
    expect(begun.slice(3)).toEqual(['4 start']);
  });

  test('a full round leaves places for an edit, and an edit goes before the rest of it', async () => {
    const { clock, schedule, begun, end } = scheduleOf({ holds: true, atOnce: 4 });
    for (const project of [1, 2, 3, 4, 5, 6, 7, 8]) schedule.add(project, later);
    schedule.wake([1, 2, 3, 4, 5, 6, 7, 8], soon('signal'));
    await clock.advance(20);
    expect(begun).toEqual(['1 signal', '2 signal', '3 signal', '4 signal']);
    schedule.wake([8], soon('git'));
    await clock.advance(20);
    expect(begun.slice(4)).toEqual(['8 git']);
    // As a replica that follows finds it, and a leader that was told to look at everything.
    schedule.wake([7], { ...soon('fleet'), isUrgent: true });
    schedule.wake([6], { ...soon('signal'), isUrgent: true });
    await clock.advance(20);
    expect(begun.slice(5)).toEqual([]);
    end(1);
    await clock.advance(20);
    expect(begun.slice(5)).toEqual(['6 signal']);
    end(2);
    await clock.advance(20);
    expect(begun.slice(6)).toEqual(['7 fleet']);
  });

  test('who asks during a turn asks this turn, and one that it leaves undone comes again', async () => {
    const { clock, schedule, begun, end } = scheduleOf({ holds: true });
    schedule.add(1, soon('start'));
    await clock.advance(20);
    schedule.wake([1], soon('webhook'));
    end(1);
    await clock.advance(20);
    expect(begun).toEqual(['1 start', '1 webhook beside']);
    schedule.wake([1], soon('timer'));
    await clock.advance(20);
    schedule.wake([1], soon('git'));
    end(1, soon('timer'));
    await clock.advance(20);
    expect(begun.slice(2)).toEqual(['1 timer', '1 git beside', '1 git']);
  });

  test('a project that goes and comes back has one turn at a time', async () => {
    const { clock, schedule, begun, end } = scheduleOf({ holds: true });
    schedule.add(1, soon('start'));
    await clock.advance(20);
    schedule.drop(1);
    schedule.add(1, soon('start'));
    await clock.advance(20);
    expect(begun).toEqual(['1 start', '1 over']);
    end(1);
    await clock.advance(20);
    expect(begun.slice(2)).toEqual(['1 start']);
    schedule.drop(1);
    expect(schedule.projects()).toEqual([]);
  });

  test('a turn that rejects is made again after a second, and others go on meanwhile', async () => {
    let tries = 0;
    const begun: number[] = [];
    const { clock, schedule } = scheduleOf({
      job: async (project) => {
        begun.push(project);
        if (project === 1 && tries++ === 0) throw new Error('the database was gone');
        return later;
      },
    });
    schedule.add(1, soon('file'));
    schedule.add(2, soon('file'));
    await clock.advance(500);
    expect(begun).toEqual([1, 2]);
    await clock.advance(900);
    expect(begun).toEqual([1, 2, 1]);
  });

  test('while an edit is worked on, or the specs are read, other projects get a quarter of the places', async () => {
    let isReading = false;
    const { clock, schedule, begun, end } = scheduleOf({
      atOnce: 4,
      holds: true,
      isReading: () => isReading,
    });
    schedule.add(1, later);
    schedule.wake([1], { trigger: 'fleet', afterMs: 0, isUrgent: true });
    await clock.advance(20);
    for (const project of [2, 3, 4, 5]) schedule.add(project, soon('timer'));
    await clock.advance(20);
    // The edit has the place.
    expect(begun).toEqual(['1 fleet']);
    end(1);
    await clock.advance(20);
    expect(begun).toHaveLength(5);
    for (const project of [2, 3, 4, 5]) end(project);
    await clock.advance(20);
    isReading = true;
    schedule.wake([1, 2, 3], soon('signal'));
    await clock.advance(20);
    expect(begun).toHaveLength(6);
    isReading = false;
    schedule.wake([], soon('signal'));
    await clock.advance(20);
    expect(begun).toHaveLength(8);
  });

  test('an edit whose job is rejected stays an edit', async () => {
    let failed = false;
    const begun: number[] = [];
    const { clock, schedule } = scheduleOf({
      atOnce: 1,
      job: async (project) => {
        begun.push(project);
        if (project === 1 && !failed) {
          failed = true;
          throw new Error('the database is away');
        }
        await clock.sleep(300);
        return later;
      },
    });
    schedule.add(1, { trigger: 'fleet', afterMs: 0, isUrgent: true });
    for (let project = 2; project < 30; project += 1) schedule.add(project, soon('timer'));
    await clock.advance(2_500);
    expect(begun.filter((project) => project === 1)).toHaveLength(2);
  });

  test('ten thousand projects that are due at once begin in order, and cost milliseconds each', async () => {
    const begun: number[] = [];
    const { clock, schedule } = scheduleOf({
      atOnce: 10,
      job: async (project) => {
        begun.push(project);
        return later;
      },
    });
    const cpu = process.cpuUsage();
    for (let project = 1; project <= 10_000; project += 1) schedule.add(project, soon('signal'));
    while (begun.length < 10_000) await clock.advance(20);
    expect(process.cpuUsage(cpu).user / 1_000).toBeLessThan(10_000);
    expect(new Set(begun).size).toBe(10_000);
    expect(schedule.waiting()).toBe(0);
  });
});
