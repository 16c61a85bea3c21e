import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { watch as watchPaths } from 'chokidar';
import type { Clock } from '../../core/clock.ts';
import { specNames } from '../../spec/folder.ts';
import type { DaemonLogger } from '../ports.ts';
import { withinBounds } from './bounds.ts';
import { mostBytes, readSpecBytes, readSpecFile, reasonOf, specBuffer } from './read-file.ts';
import { type Snapshot, SourceError, type SpecSource, type SpecText, unreadable } from './source.ts';

/** A burst of events is one hint, once nothing has moved for so long. Real ms. */
const stillMs = 150;
/**
 * Between two readings without any event. A ConfigMap swap that leaves the old folder in
 * place raises none, and neither do most network file systems. Real ms.
 */
const rereadMs = 5_000;

export interface FileSourceOptions {
  /** Absolute paths and what messages call them. */
  readonly files: readonly { readonly path: string; readonly name: string; readonly overlay?: boolean }[];
  /** The one path is a folder: every YAML file in it is a project of its own. */
  readonly folder: boolean;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
  /** Default 5 s. */
  readonly rereadMs?: number;
}

/**
 * Specs in files on this machine. Saves by rename, symlinks that are swapped, files that
 * vanish and return: the *folders* are watched, not the files, so that none of it ends the
 * watching, and the contents are compared now and then, whatever the events say.
 */
export function fileSource(options: FileSourceOptions): SpecSource {
  const { files, folder, clock, log } = options;
  const name = files.map((each) => each.name).join(', ');

  async function read(): Promise<Snapshot> {
    if (folder) return { specs: await readFolder(files[0]?.path ?? '', files[0]?.name ?? '') };
    const read = await Promise.all(
      files.map(async ({ path, name, overlay = false }) => {
        const file = await readSpecFile(path, name).catch(failWith(name));
        return overlay && 'text' in file ? { ...file, overlay } : file;
      }),
    );
    const problems = read.flatMap((each) => ('text' in each ? [] : each));
    if (problems.length > 0) return { specs: [{ name, problem: problems }] };
    return { specs: [{ name, sources: read.flatMap((each) => ('text' in each ? [each] : [])) }] };
  }

  /**
   * A digest of all that `read` would give. It is asked for every few seconds, so it reads the bytes of one file
   * after the other into the same memory: as texts, the files of a folder would take many times their size.
   */
  async function contents(): Promise<string> {
    const hash = createHash('sha256');
    const buffer = specBuffer();
    const add = (part: Uint8Array | string) => hash.update(`${typeof part} ${part.length}:`).update(part);
    try {
      const { read, left } = folder
        ? await filesOf(files[0]?.path ?? '', files[0]?.name ?? '')
        : { read: files, left: [] };
      for (const { path, name } of read) {
        add(name);
        add(await readSpecBytes(path, buffer).catch(reasonOf));
      }
      for (const each of left) add(each.name);
      add(`${left.length}`);
    } catch (error) {
      add(String(error));
    }
    return hash.digest('hex');
  }

  async function watch(hint: (trigger: 'file') => void, signal: AbortSignal): Promise<void> {
    const folders = [...new Set(files.map(({ path }) => (folder ? path : dirname(path))))];
    let movedAt = Number.NEGATIVE_INFINITY;
    let waiting = false;
    let seen: string | undefined;

    async function compare(): Promise<void> {
      const now = await contents();
      const before = seen;
      seen = now;
      if (before !== undefined && now !== before) hint('file');
    }

    /** Waits until nothing has moved for a moment; events meanwhile only prolong the wait. */
    async function onEvent(): Promise<void> {
      movedAt = clock.monotonic();
      if (waiting) return;
      waiting = true;
      try {
        for (let left = stillMs; left > 0; left = movedAt + stillMs - clock.monotonic()) {
          await clock.sleep(left, signal);
        }
      } finally {
        waiting = false;
      }
      await compare();
    }

    const watcher = watchPaths(folders, { ignoreInitial: true, depth: 0, ignorePermissionErrors: true });
    const settled = (work: Promise<void>) =>
      void work.catch((error: unknown) => {
        if (!signal.aborted) log.warn({ source: name, error }, 'the files could not be compared');
      });
    watcher.on('all', () => settled(onEvent()));
    watcher.on('error', (error) =>
      log.warn({ source: name, error }, 'watching files: only re-reading is left'),
    );
    try {
      seen = await contents();
      // What changed between the caller's own reading and here would raise no event.
      hint('file');
      for (;;) {
        await clock.sleep(options.rereadMs ?? rereadMs, signal);
        await compare();
      }
    } finally {
      await watcher.close();
    }
  }

  return { name, read, watch };
}

async function readFolder(path: string, name: string): Promise<readonly SpecText[]> {
  const { read, left } = await filesOf(path, name);
  const specs: SpecText[] = [];
  const buffer = specBuffer();
  // One after the other: a thousand files at once would need a thousand handles.
  for (const { path: own, name: shown } of read) {
    // One that cannot be read says nothing about the others.
    const file = await readSpecFile(own, shown, buffer).catch((error: unknown) =>
      unreadable(shown, reasonOf(error)),
    );
    specs.push('text' in file ? { name: shown, sources: [file] } : { name: shown, problem: file });
  }
  return [...specs, ...left];
}

/** The specs in a folder that are read, and those that are left out. */
async function filesOf(path: string, name: string) {
  const names = await readdir(path).catch(failWith(name));
  const files = await Promise.all(
    specNames(names).map(async (each) => {
      const own = join(path, each);
      const sizeBytes = await stat(own).then(
        ({ size }) => Math.min(size, mostBytes),
        () => 0,
      );
      return { name: join(name, each), path: own, sizeBytes };
    }),
  );
  return withinBounds(files);
}

/** What is gone is no edit: the source is to be told, and what was read before stays in force. */
function failWith(name: string): (error: unknown) => never {
  return (error) => {
    throw new SourceError(`${name}: ${reasonOf(error)}`);
  };
}
