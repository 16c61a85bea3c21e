import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../src/core/clock.ts';
import { startEmulator } from '../../src/emulator/http-server.ts';
import { DEFAULT_PROFILE, type Profile } from '../../src/emulator/profile.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface ServiceOptions {
  readonly readings?: Partial<Readings>;
  /** With the documented limits; otherwise a token may send as much as it likes. */
  readonly limited?: boolean;
  /** How long an image operation is being submitted, and holds back the next one. */
  readonly submissionMs?: number;
  /** On the system's clock, that many times faster. */
  readonly speed?: number;
}

/** The service under test, and what happens to it other than through its API. */
export interface Service {
  readonly baseUrl: string;
  readonly tokens: { readonly readWrite: string; readonly read: string; readonly member: string };
  readonly otherProject: { readonly readWrite: string };
  readonly clock: VirtualClock;
  mutate(mutation: Readonly<Record<string, unknown>>): void;
  /** The next request is answered with this status, and has no effect. */
  failNext(status: number): void;
  close(): Promise<void>;
}

const START_MS = Date.parse('2026-03-02T08:00:00Z');

/** An emulator over HTTP: the one place where the suite knows what serves the API. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const clock = new VirtualClock(START_MS);
  const profile: Profile = options.limited
    ? DEFAULT_PROFILE
    : { ...DEFAULT_PROFILE, limits: { windowMs: 60_000, reads: 1_000_000, writes: 1_000_000 } };
  const running = await startEmulator({
    clock: options.speed === undefined ? clock : realClock,
    speed: options.speed ?? 1,
    seed: 'contract',
    projects: [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ],
    profile,
    durations: { image_submission: [options.submissionMs ?? 0, options.submissionMs ?? 0] },
    ...(options.readings === undefined ? {} : { readings: options.readings }),
  });
  const { emulator } = running;
  return {
    baseUrl: running.baseUrl,
    tokens: emulator.tokens(4711),
    otherProject: emulator.tokens(4712),
    clock,
    mutate: (mutation) => void emulator.mutate(mutation as Parameters<typeof emulator.mutate>[0]),
    failNext: (status) => {
      // biome-ignore lint/suspicious/noThenProperty: the word of a fault rule; nothing awaits one.
      emulator.setFaults([{ when: { nth: 1 }, then: { do: 'answer', status, effect: 'none' } }]);
    },
    close: () => running.close(),
  };
}

const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
};
