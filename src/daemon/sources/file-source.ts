import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { watch as watchPaths } from 'chokidar';
import type { Clock } from '../../core/clock.ts';
import type { DaemonLogger } from '../ports.ts';
import type { FolderBounds } from './bounds.ts';
import { failWith, readSpecBytes, readSpecFile, reasonOf, specBuffer } from './read-file.ts';
import { SharedOverlays, type Snapshot, type SpecSource, specOf } from './source.ts';
import { SpecFolder } from './spec-folder.ts';

/** A burst of events is one hint, after this time without another event. Real ms. */
const stillMs = 150;
/**
 * Time between two readings without any event. A ConfigMap swap that leaves the old folder in place raises no event,
 * and neither do most network file systems. Real ms.
 */
const rereadMs = 5_000;

export interface GivenFile {
  /** Absolute. */
  readonly path: string;
  /** For messages. */
  readonly name: string;
  readonly overlay?: boolean;
}

export interface FileSourceOptions {
  readonly files: readonly GivenFile[];
  /** Whether the first path is a folder, in which every YAML file is a project of its own. The others are overlays then. */
  readonly folder: boolean;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
  /** How much the folder may hold. */
  readonly most?: FolderBounds;
  /** Default 5 s. */
  readonly rereadMs?: number;
}

/**
 * Specs in files on this machine. Files may be saved by rename, may be symlinks that are swapped, and may vanish and
 * return. So the source watches the *folders* and not the files, and in addition compares the contents regularly.
 */
export function fileSource(options: FileSourceOptions): SpecSource {
  const { files, folder, clock, log } = options;
  const name = files.map((each) => each.name).join(', ');
  const alone = folder ? files.slice(1) : files;
  const specs = new SpecFolder(files[0]?.path ?? '', files[0]?.name ?? '', clock, {
    most: options.most,
    except: alone.map(({ path }) => path),
  });
  const shared = new SharedOverlays();

  async function read(): Promise<Snapshot> {
    const read = await Promise.all(
      alone.map(async ({ path, name, overlay = false }) => {
        const file = await readSpecFile(path, name).catch(failWith(name));
        return overlay && 'text' in file ? { ...file, overlay } : file;
      }),
    );
    return { specs: folder ? shared.addTo(await specs.read(), read) : [specOf(name, read)] };
  }

  /** Another text when `read` gives something else. `some`: only a part of a large folder is checked. */
  async function contents(which: 'all' | 'some'): Promise<string> {
    const hash = createHash('sha256');
    const buffer = specBuffer();
    const add = (part: Uint8Array | string) => hash.update(`${typeof part} ${part.length}:`).update(part);
    try {
      if (folder) add(String(await specs.revision(which)));
      for (const { path, name } of alone) {
        add(name);
        add(await readSpecBytes(path, buffer).catch(reasonOf));
      }
    } catch (error) {
      add(String(error));
    }
    return hash.digest('hex');
  }

  async function watch(hint: (trigger: 'file') => void, signal: AbortSignal): Promise<void> {
    const folders = [
      ...new Set(files.map((each) => (folder && each === files[0] ? each.path : dirname(each.path)))),
    ];
    let movedAt = Number.NEGATIVE_INFINITY;
    let waiting = false;
    let seen: string | undefined;

    async function compare(which: 'all' | 'some'): Promise<void> {
      const now = await contents(which);
      const before = seen;
      seen = now;
      if (before !== undefined && now !== before) hint('file');
    }

    /** Waits until no event has come for a moment. Further events only prolong the wait. */
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
      await compare('all');
    }

    const watcher = watchPaths(folders, { ignoreInitial: true, depth: 0, ignorePermissionErrors: true });
    const settled = (work: Promise<void>) =>
      void work.catch((error: unknown) => {
        if (!signal.aborted) log.warn({ source: name, error }, 'file comparison failed');
      });
    watcher.on('all', () => settled(onEvent()));
    watcher.on('error', (error) =>
      log.warn({ source: name, error }, 'file watcher failed: vdcsync reads the files periodically only'),
    );
    try {
      seen = await contents('all');
      // A change between the caller's own reading and this point would raise no event.
      hint('file');
      for (;;) {
        await clock.sleep(options.rereadMs ?? rereadMs, signal);
        await compare('some');
      }
    } finally {
      await watcher.close();
    }
  }

  return { name, read, watch };
}
