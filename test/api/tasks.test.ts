import { describe, expect, test } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import type { TaskWait } from '../../src/core/ports.ts';
import type { TaskId } from '../../src/core/resources.ts';
import { chance } from '../../src/simulation/chance.ts';
import type { VirtualClock } from '../support/virtual-clock.ts';
import { memory, ok, problem, proxyPage, type Rig, type RigOptions, rig } from './support.ts';

/** An API whose tasks end at given moments of the clock. */
function world(options: RigOptions = {}): Rig & { endsAt: Map<string, number>; polls: Map<string, number> } {
  const endsAt = new Map<string, number>();
  const polls = new Map<string, number>();
  let clock: VirtualClock | undefined;
  const made = rig((request) => {
    const id = request.url.split('/').at(-1) ?? '';
    polls.set(id, (polls.get(id) ?? 0) + 1);
    const ended = (clock?.monotonic() ?? 0) >= (endsAt.get(id) ?? Infinity);
    return ok({ id, status: ended ? 'succeeded' : 'running', is_terminal: ended, poll: '', created_at: '' });
  }, options);
  clock = made.clock;
  return { ...made, endsAt, polls };
}

function taskWait(clock: VirtualClock, id: string, more: Partial<TaskWait> = {}): TaskWait {
  return { id: id as TaskId, sort: 'create_server', acceptedAt: clock.now(), deadlineMs: 1_800_000, ...more };
}

describe('src/api/tasks.ts', () => {
  const constant = () => 9_000;
  const uniform = (random: () => number) => 5_000 + 40_000 * random();
  const exponential = (random: () => number) => -20_000 * Math.log(1 - random());
  const twoSorts = (random: () => number) =>
    random() < 0.7 ? 3_000 + 500 * random() : 60_000 + 5_000 * random();
  const quick = (random: () => number) => 100 * random();

  test.each([
    ['constant', constant],
    ['uniform', uniform],
    ['exponential', exponential],
    ['of two kinds', twoSorts],
    ['immediate', quick],
  ])('polls each task less than twice on average when durations are %s', async (_what, duration) => {
    for (const seed of [1, 2, 3]) {
      const random = chance(seed).next;
      const { clock, client, endsAt, polls } = world();
      let waited = 0;
      let lasted = 0;
      const count = 100;
      for (let index = 0; index < count; index++) {
        const ms = duration(random);
        endsAt.set(`t${index}`, clock.monotonic() + ms);
        const startedAt = clock.monotonic();
        expect(await clock.run(client.tasks.wait(taskWait(clock, `t${index}`)))).toEqual({
          end: 'succeeded',
        });
        waited += clock.monotonic() - startedAt;
        lasted += ms;
      }
      const all = [...polls.values()].reduce((sum, each) => sum + each, 0);
      expect(all / count).toBeLessThan(2);
      // Waiting blindly for long would be cheap too.
      if (duration !== quick && duration !== twoSorts) expect(waited / lasted).toBeLessThan(2.6);
    }
  });

  test('does not poll the next tasks far too early after one group of simultaneous tasks', async () => {
    const random = chance(1).next;
    const { clock, client, endsAt, polls } = world();
    for (let round = 0; round < 5; round++) {
      const ids = Array.from({ length: 40 }, (_, index) => `t${round}-${index}`);
      for (const id of ids) endsAt.set(id, clock.monotonic() + 25_000 + 20_000 * random());
      await clock.run(Promise.all(ids.map((id) => client.tasks.wait(taskWait(clock, id)))));
      if (round === 0) continue;
      const asked = ids.reduce((sum, id) => sum + (polls.get(id) ?? 0), 0);
      expect(asked / ids.length, `round ${round}`).toBeLessThan(1.5);
    }
  });

  test('while tasks are shorter than expected, polls only a few of the simultaneous tasks early', async () => {
    const { clock, client, endsAt, polls } = world();
    const wait = (id: string, ms: number) => {
      endsAt.set(id, clock.monotonic() + ms);
      return client.tasks.wait(taskWait(clock, id));
    };
    // The first task ends before its first poll, so the next estimate is half of the first one.
    await clock.run(wait('first', 1_000));
    const ids = Array.from({ length: 60 }, (_, index) => `t${index}`);
    await clock.run(Promise.all(ids.map((id) => wait(id, 9_000))));
    const asked = ids.reduce((sum, id) => sum + (polls.get(id) ?? 0), 0);
    expect(asked / ids.length).toBeLessThan(1.3);
  });

  test('polls an urgent task every few seconds from the earliest usual end on', async () => {
    const random = chance(1).next;
    const { clock, client, endsAt, polls } = world();
    const late: number[] = [];
    for (let index = 0; index < 60; index++) {
      const id = `t${index}`;
      endsAt.set(id, clock.monotonic() + 25_000 + 20_000 * random());
      await clock.run(client.tasks.wait(taskWait(clock, id, { isUrgent: () => true })));
      late.push(clock.monotonic() - (endsAt.get(id) ?? 0));
    }
    const asked = [...polls.values()].slice(20);
    expect(Math.max(...late)).toBeLessThanOrEqual(5_000);
    expect(asked.reduce((sum, each) => sum + each, 0) / asked.length).toBeLessThan(3.5);
    expect(await client.tasks.earliest('create_server')).toBeGreaterThan(24_000);
  });

  test('never polls a terminal task again, and leaves no timer', async () => {
    const { clock, client, endsAt, polls } = world();
    endsAt.set('t', 0);
    await clock.run(client.tasks.wait(taskWait(clock, 't')));
    await clock.advance(3_600_000);
    expect(polls.get('t')).toBe(1);
    expect(clock.sleeping).toBe(0);
  });

  test('the next process uses the learned durations of each kind of write', async () => {
    const memo = memory();
    const first = world({ memory: memo });
    for (let index = 0; index < 20; index++) {
      first.endsAt.set(`t${index}`, first.clock.monotonic() + 100_000);
      await first.clock.run(first.client.tasks.wait(taskWait(first.clock, `t${index}`)));
    }
    const next = world({ memory: memo, clock: first.clock });
    next.endsAt.set('x', next.clock.monotonic() + 100_000);
    const before = next.clock.monotonic();
    await next.clock.run(next.client.tasks.wait(taskWait(next.clock, 'x')));
    expect(next.polls.get('x')).toBeLessThanOrEqual(2);
    expect(next.clock.monotonic() - before).toBeLessThan(150_000);
    expect([...memo.notes.keys()]).toEqual(['task-duration:create_server']);
  });

  test('polls a task accepted long ago at once, and learns nothing from its duration', async () => {
    const memo = memory();
    const { clock, client, endsAt } = world({ memory: memo });
    endsAt.set('t', 0);
    const wait = taskWait(clock, 't', { acceptedAt: clock.now() - 86_400_000 });
    expect(await clock.run(client.tasks.wait(wait))).toEqual({ end: 'succeeded' });
    expect(clock.monotonic()).toBe(0);
    expect(memo.notes.size).toBe(0);
  });

  test('reports a task as stuck only after a poll that follows the deadline', async () => {
    const { clock, client, sent } = world();
    expect(await clock.run(client.tasks.wait(taskWait(clock, 't', { deadlineMs: 600_000 })))).toEqual({
      end: 'stuck',
    });
    expect(clock.monotonic()).toBe(600_000);
    const before = sent.length;
    const late = taskWait(clock, 't', { acceptedAt: clock.now() - 601_000, deadlineMs: 600_000 });
    expect(await clock.run(client.tasks.wait(late))).toEqual({ end: 'stuck' });
    expect(sent.length - before).toBe(1);
    expect(before).toBeLessThan(30);
  });

  test('setting the clock back does not extend the deadline', async () => {
    const { clock, client } = world();
    const wait = taskWait(clock, 't', { acceptedAt: clock.now() + 25 * 3_600_000, deadlineMs: 60_000 });
    expect(await clock.run(client.tasks.wait(wait))).toEqual({ end: 'stuck' });
    expect(clock.monotonic()).toBe(60_000);
  });

  test('reports why a task failed', async () => {
    const { client, clock } = rig(() =>
      ok({ id: 't', status: 'failed', is_terminal: true, error: { code: 'x', message: 'no \u0007host' } }),
    );
    expect(await clock.run(client.tasks.wait(taskWait(clock, 't')))).toEqual({
      end: 'failed',
      detail: 'no  host',
    });
  });

  test('reports a task that the API does not know as lost only a minute after its acceptance', async () => {
    const { client, clock } = rig(() => problem(404, 'task_not_found'));
    expect(await clock.run(client.tasks.wait(taskWait(clock, 't')))).toEqual({ end: 'lost' });
    expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
    expect(clock.monotonic()).toBeLessThan(120_000);
  });

  test('follows a task that appears within the minute', async () => {
    const { client, clock } = rig((_request, index) =>
      index === 0 ? problem(404, 'task_not_found') : ok({ id: 't', status: 'succeeded', is_terminal: true }),
    );
    expect(await clock.run(client.tasks.wait(taskWait(clock, 't')))).toEqual({ end: 'succeeded' });
  });

  test('a failed read gives no outcome', async () => {
    const { client, clock } = rig((_request, index) => {
      if (index < 6) return proxyPage(502);
      if (index < 8) return problem(401, 'unauthorized');
      // Contradicts itself: not an end that can be told.
      if (index < 10) return ok({ id: 't', status: 'running', is_terminal: true });
      return ok({ id: 't', status: 'succeeded', is_terminal: true });
    });
    expect(await clock.run(client.tasks.wait(taskWait(clock, 't')))).toEqual({ end: 'succeeded' });
  });

  test('a poll that cannot be recorded ends the wait at once with an error of the state, not of the read', async () => {
    const failing = memory();
    const { client, clock, sent } = rig(() => ok({ id: 't', status: 'running', is_terminal: false }), {
      memory: {
        ...failing,
        putNote: async (name, value) => {
          if (name.startsWith('used:') && failing.uses.length === 2)
            throw new StateError('the connection is gone');
          await failing.putNote(name, value);
        },
      },
    });
    const waiting = client.tasks.wait(taskWait(clock, 't'));
    await expect(clock.run(waiting)).rejects.toThrow(StateError);
    expect(sent).toHaveLength(2);
    expect(clock.monotonic()).toBeLessThan(60_000);
  });

  test('polls again after an unknown status; a terminal failure is a failure with any status', async () => {
    const { client, clock, sent } = rig((_request, index) =>
      ok({ id: 't', status: index === 0 ? 'paused' : 'succeeded', is_terminal: index > 0 }),
    );
    expect(await clock.run(client.tasks.wait(taskWait(clock, 't')))).toEqual({ end: 'succeeded' });
    expect(sent).toHaveLength(2);
  });

  test('stops at its signal during a wait or a retry, and leaves no timer', async () => {
    for (const handler of [
      () => ok({ id: 't', status: 'running', is_terminal: false }),
      () => proxyPage(502),
    ]) {
      const { client, clock } = rig(handler);
      const stop = new AbortController();
      const waiting = client.tasks.wait(taskWait(clock, 't'), stop.signal);
      await clock.advance(20_500);
      expect(clock.sleeping).toBe(1);
      stop.abort(new Error('stopped'));
      await expect(waiting).rejects.toThrow('stopped');
      expect(clock.sleeping).toBe(0);
    }
  });
});
