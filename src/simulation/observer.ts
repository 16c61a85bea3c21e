import type { TaskEnd, WritePort, WriteRequest, WriteResult } from '../core/ports.ts';
import type { Emulator } from '../emulator/emulator.ts';
import type { Readings } from '../emulator/readings.ts';
import type { Controller, Running } from './controller.ts';

/** Is called for each situation of a story, and has no effect on the story. */
export interface Observer {
  /** A process is about to die at the boundary. */
  crashes(running: Running, boundary: string): void;
  /** The write is not sent again, because its key is too old. */
  keyTooOld(write: string): void;
  storyEnds(emulator: Emulator): void;
  /** A write has ended. */
  sent(request: WriteRequest, result: WriteResult, controller: Controller): void;
  task(operation: string, end: TaskEnd['end']): void;
  readings(readings: Partial<Readings>): void;
  count(subject: string, by?: number): void;
  /** An operator was asked; `isFirst` by this code in its story. */
  asked(code: string, kind: string, isFirst: boolean): void;
}

/** Records nothing. */
export const noObserver: Observer = {
  crashes: () => {},
  keyTooOld: () => {},
  storyEnds: () => {},
  sent: () => {},
  task: () => {},
  readings: () => {},
  count: () => {},
  asked: () => {},
};

/** The write port of a machine, with each end of a write reported. */
export function observedWrites(writes: WritePort, controller: Controller, observer: Observer): WritePort {
  return {
    ...writes,
    async send(request, ...rest) {
      const result = await writes.send(request, ...rest);
      observer.sent(request, result, controller);
      return result;
    },
  };
}
