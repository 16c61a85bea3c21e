import { unreadable } from '../../spec/load.ts';
import type { SpecText } from './source.ts';

/** Of one process. A thousand specs of 8 KiB fit. */
const usualBounds = { files: 1_000, bytes: 8 * 1024 * 1024 };
/** How much a folder or a commit may hold. */
export type FolderBounds = Readonly<typeof usualBounds>;
/** Of projects that several machines share. */
export const fleetBounds: FolderBounds = { files: 20_000, bytes: 32 * 1024 * 1024 };
/** The largest number of left-out files that are named. */
const mostNamed = 50;

export interface SizedFile {
  readonly name: string;
  readonly sizeBytes: number;
}

/**
 * Selects the specs of a folder that are read, in their order. Small files come first, so that large or duplicated
 * files, which any user who can push may add, displace no other project. The other files are reported and not read.
 */
export function withinBounds<File extends SizedFile>(
  files: readonly File[],
  most: FolderBounds = usualBounds,
): { readonly read: readonly File[]; readonly left: readonly SpecText[] } {
  const bySize = files.toSorted((a, b) => a.sizeBytes - b.sizeBytes || (a.name < b.name ? -1 : 1));
  const taken = new Set<File>();
  let bytes = 0;
  for (const file of bySize.slice(0, most.files)) {
    bytes += file.sizeBytes;
    if (bytes > most.bytes) break;
    taken.add(file);
  }
  const left = bySize.filter((file) => !taken.has(file));
  const why = `a folder of specs has at most ${most.files} files and ${most.bytes / 1024 / 1024} MiB, and ${left.length} of its largest files are left out: remove files that are not specs`;
  return {
    read: files.filter((file) => taken.has(file)),
    left: left.slice(0, mostNamed).map(({ name }) => ({ name, problem: unreadable(name, why) })),
  };
}
