import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { DEFAULT_PROFILE, KNOWN_OPERATIONS, type Profile } from '../../src/emulator/profile.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import type { VirtualClock } from '../support/virtual-clock.ts';

export interface ServiceOptions {
  readonly readings?: Partial<Readings>;
  /** With the documented limits; otherwise a token may send as much as it likes. */
  readonly limited?: boolean;
  /** How long an image operation is being submitted, and holds back the next one. */
  readonly submissionMs?: number;
  /** Operations that the document does not show, served where the emulator serves them unless told otherwise. */
  readonly undocumented?: readonly string[];
}

/** An emulator over HTTP: the one place where the suite knows what serves the API. */
export function startService(
  clock: VirtualClock,
  { readings = {}, limited = false, submissionMs = 0, undocumented = [] }: ServiceOptions,
): Promise<RunningEmulator> {
  const served = undocumented.map((name) => [name, KNOWN_OPERATIONS[name] ?? {}]);
  const profile: Profile = {
    ...DEFAULT_PROFILE,
    ...(limited ? {} : { limits: { windowMs: 60_000, reads: 1_000_000, writes: 1_000_000 } }),
    operations: { ...DEFAULT_PROFILE.operations, ...Object.fromEntries(served) },
  };
  return startEmulator({
    clock,
    seed: 'contract',
    projects: [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ],
    profile,
    durations: { image_submission: [submissionMs, submissionMs] },
    readings,
  });
}
