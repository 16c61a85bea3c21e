import { readFileSync } from 'node:fs';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import { loadProfile as loadEmulatorProfile } from '../../src/emulator/profile.ts';
import { type Rig, type RigOptions, rig } from './rig.ts';

/** The profile that ships as an example. */
export const exampleProfile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');

/** A rig whose client and emulator read the same profile, each with its own code. */
export function profiled({ emulator, ...options }: RigOptions = {}, profile = exampleProfile): Rig {
  return rig({
    profile: loadProfile(profile, 'profile.yaml'),
    ...options,
    emulator: { profile: loadEmulatorProfile(profile), ...emulator },
  });
}
