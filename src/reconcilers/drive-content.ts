import { appliedServer } from '../core/applied.ts';
import { member } from '../core/json.ts';
import { childKey, type ResourceKey, retiredFrom } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';

/** The form of the id of an ISO. */
export const isoId = /^uiso-\d{1,10}$/;

/** `iso`: the key of an entry, an ISO's id, or nothing. */
export type DriveEntry = {
  readonly iso: string | null;
};

export interface DriveObserved {
  /** The id of the server. */
  readonly id: string;
  /** The id of the ISO in the drive, if the profile's reads of servers show it. @assumption A50 */
  readonly shown: string | null | undefined;
}

/** The live id of the ISO that the spec wants in the drive; `undefined` if the ISO does not exist yet. */
export function isoWanted({ iso }: DriveEntry, world: World): string | null | undefined {
  return iso?.startsWith('isos.') ? world.idOf(iso as ResourceKey) : iso;
}

/**
 * The content of the drive, from the reads or from the last write of this spec; the drive of a new server is empty, unless
 * an earlier state created it. `undefined`: unknown.
 */
export function contentOf({ key, parent, binding }: Subject, world: World): string | null | undefined {
  const seen = world.observed.get(key) as DriveObserved | undefined;
  if (seen?.shown !== undefined) return seen.shown;
  const applied = member(binding?.applied, 'iso') as string | null | undefined;
  if (applied !== undefined) return applied;
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  const { mayBeOlder } = appliedServer(server?.binding);
  return !mayBeOlder || seen === undefined ? null : undefined;
}

/** The drives of this spec's servers that are known to hold the ISO. */
export function drivesWith(iso: string, world: World): readonly Subject[] {
  return world.subjectsOf('drive').filter((subject) => contentOf(subject, world) === iso);
}

/**
 * Whether the drive is about to lose its ISO: to another content, or with its server. A retiring server stays until the
 * drive of its successor has its content.
 */
export function letsGo({ desired, parent }: Subject, iso: string, world: World): boolean {
  if (isLeaving(parent, world)) return !successorWants(parent, iso, world);
  if (desired === undefined) return false;
  const wanted = isoWanted(desired.value as DriveEntry, world);
  const { insert_iso, eject_iso } = world.profile.operations;
  return wanted !== iso && (wanted === null ? eject_iso : insert_iso) !== undefined;
}

export function isLeaving(server: ResourceKey | undefined, world: World): boolean {
  return server !== undefined && world.subjects.get(server)?.desired === undefined;
}

function successorWants(server: ResourceKey | undefined, iso: string, world: World): boolean {
  const successor = server && retiredFrom(server);
  const drive = successor && world.subjects.get(childKey(successor, 'iso'));
  return drive?.desired !== undefined && isoWanted(drive.desired.value as DriveEntry, world) === iso;
}
