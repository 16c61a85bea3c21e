import { scaledClock } from '../../core/clock.ts';
import type { DaemonDeps } from '../../daemon/ports.ts';
import { fleetBounds } from '../../daemon/sources/bounds.ts';
import { fileSource } from '../../daemon/sources/file-source.ts';
import { gitSource } from '../../daemon/sources/git-source.ts';
import type { SpecSource } from '../../daemon/sources/source.ts';
import type { DaemonSettings } from './settings.ts';

/** Where the specs come from, as the settings say. */
export function sourceOf(
  { git, files, projects, timeScale }: DaemonSettings,
  deps: DaemonDeps,
  isFleet: boolean,
): SpecSource {
  const { clock, random, log } = deps;
  const bounds = isFleet ? { most: fleetBounds } : {};
  if (git === undefined) return fileSource({ files, folder: projects === 'many', clock, log, ...bounds });
  // Durations in flags run at the API's pace.
  return gitSource({ ...git, clock: scaledClock(clock, timeScale, clock.now()), random, log, ...bounds });
}
