import type { TaskEnd, TaskWatch, WriteRequest, WriteResult } from '../../src/core/ports.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import type { EngineDeps } from '../../src/engine/deps.ts';
import type { Controller, Running } from '../../src/simulation/controller.ts';
import type { Observer } from '../../src/simulation/observer.ts';

/** Is called for each situation of a story, and has no effect on the story. */
export interface StoryObserver extends Observer {
  /** A process is about to die at the boundary. */
  crashes(running: Running, boundary: string): void;
  /** The write is not sent again, because its key is too old. */
  keyTooOld(write: string): void;
  storyEnds(emulator: Emulator): void;
  /** A write has ended. */
  sent(request: WriteRequest, result: WriteResult, controller: Controller): void;
  task(operation: string, end: TaskEnd['end']): void;
  readings(readings: Partial<Readings>): void;
  /** An operator was asked; `isFirst` by this code in its story. */
  asked(code: string, kind: string, isFirst: boolean): void;
}

/** Records nothing. */
export const noStoryObserver: StoryObserver = {
  count: () => {},
  crashes: () => {},
  keyTooOld: () => {},
  storyEnds: () => {},
  sent: () => {},
  task: () => {},
  readings: () => {},
  asked: () => {},
};

/** The ports of a machine, with each end of a write and of a task reported. */
export function observedPorts(
  { writes, tasks }: Pick<EngineDeps, 'writes' | 'tasks'>,
  controller: Controller,
  observer: StoryObserver,
): Pick<EngineDeps, 'writes' | 'tasks'> {
  const watched: TaskWatch = {
    async wait(task, signal) {
      const end = await tasks.wait(task, signal);
      observer.task(task.sort, end.end);
      return end;
    },
    longest: (sort) => tasks.longest(sort),
    usual: (sort) => tasks.usual(sort),
    earliest: (sort) => tasks.earliest(sort),
  };
  return {
    tasks: watched,
    writes: {
      ...writes,
      async send(request, ...rest) {
        const result = await writes.send(request, ...rest);
        observer.sent(request, result, controller);
        return result;
      },
    },
  };
}
