import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../src/core/clock.ts';
import { startEmulator } from '../../src/emulator/http-server.ts';
import { DEFAULT_PROFILE, KNOWN_OPERATIONS, type Profile } from '../../src/emulator/profile.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface ServiceOptions {
  readonly readings?: Partial<Readings>;
  /** With the documented limits; otherwise a token may send as much as it likes. */
  readonly limited?: boolean;
  /** How long an image operation is being submitted, and holds back the next one. */
  readonly submissionMs?: number;
  /** Operations that the document does not show, served where the emulator serves them unless told otherwise. */
  readonly undocumented?: readonly string[];
  /** On the system's clock, that many times faster. */
  readonly speed?: number;
}

/** The service under test, and what happens to it other than through its API. */
export interface Service {
  readonly baseUrl: string;
  readonly tokens: { readonly readWrite: string; readonly read: string; readonly member: string };
  readonly otherProject: { readonly readWrite: string };
  readonly clock: VirtualClock;
  /** Everything that costs money now: `ip 5001`, `server 2001`, `backup 2001/<id>`. */
  billed(): readonly string[];
  /** Everything the service remembers, as JSON. */
  memory(): string;
  mutate(mutation: Readonly<Record<string, unknown>>): void;
  /** The next request is answered with this status, with or without having had its effect. */
  failNext(status: number, effect: 'none' | 'done'): void;
  close(): Promise<void>;
}

const START_MS = Date.parse('2026-03-02T08:00:00Z');

/** An emulator over HTTP: the one place where the suite knows what serves the API. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const clock = new VirtualClock(START_MS);
  const undocumented = (options.undocumented ?? []).map((name) => [name, KNOWN_OPERATIONS[name] ?? {}]);
  const profile: Profile = {
    ...DEFAULT_PROFILE,
    ...(options.limited ? {} : { limits: { windowMs: 60_000, reads: 1_000_000, writes: 1_000_000 } }),
    operations: { ...DEFAULT_PROFILE.operations, ...Object.fromEntries(undocumented) },
  };
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
    billed: () => emulator.billed().map(({ kind, id }) => `${kind} ${id}`),
    memory: () => JSON.stringify(emulator.world),
    mutate: (mutation) => void emulator.mutate(mutation as Parameters<typeof emulator.mutate>[0]),
    failNext: (status, effect) => {
      // biome-ignore lint/suspicious/noThenProperty: the word of a fault rule; nothing awaits one.
      emulator.setFaults([{ when: { nth: 1 }, then: { do: 'answer', status, effect } }]);
    },
    close: () => running.close(),
  };
}

const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
};
