import { dirname } from 'node:path';
import { watch as watchPaths } from 'chokidar';
import { digestOf } from '../../core/json.ts';
import type { DaemonDeps } from '../ports.ts';
import { Wake } from '../scheduling/wake.ts';
import type { FolderBounds } from './bounds.ts';
import { failWith, readSpecFile } from './read-file.ts';
import { type Snapshot, type SpecSource, specOf, withOverlays } from './source.ts';
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

export interface FileSourceOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  readonly files: readonly GivenFile[];
  /** Whether the first path is a folder, in which every YAML file is a project of its own. The others are overlays then. */
  readonly folder: boolean;
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

  const readAlone = () =>
    Promise.all(
      alone.map(async ({ path, name, overlay = false }) => {
        const file = await readSpecFile(path, name).catch(failWith(name));
        return overlay && 'text' in file ? { ...file, overlay } : file;
      }),
    );

  async function read(): Promise<Snapshot> {
    const read = await readAlone();
    return { specs: folder ? withOverlays(await specs.read(), read) : [specOf(name, read)] };
  }

  /** Another text when `read` gives something else. `some`: only a part of a large folder is checked. */
  async function contents(which: 'all' | 'some'): Promise<string> {
    try {
      return digestOf([folder ? await specs.revision(which) : 0, await readAlone()]);
    } catch (error) {
      return String(error);
    }
  }

  async function watch(hint: (trigger: 'file') => void, signal: AbortSignal): Promise<void> {
    const folders = [
      ...new Set(files.map((each) => (folder && each === files[0] ? each.path : dirname(each.path)))),
    ];
    const wake = new Wake();
    const watcher = watchPaths(folders, { ignoreInitial: true, depth: 0, ignorePermissionErrors: true });
    watcher.on('all', () => wake.nudge('file'));
    watcher.on('error', (error) =>
      log.warn({ source: name, error }, 'file watcher failed: vdcsync reads the files periodically only'),
    );
    try {
      let seen = await contents('all');
      // A change between the caller's own reading and this point would raise no event.
      hint('file');
      for (;;) {
        await wake.sleep(clock, options.rereadMs ?? rereadMs, signal);
        const which = wake.pending() ? 'all' : 'some';
        // A burst of events prolongs the wait.
        while (wake.take().length > 0) await clock.sleep(stillMs, signal);
        const before = seen;
        seen = await contents(which);
        if (seen !== before) hint('file');
      }
    } finally {
      await watcher.close();
    }
  }

  return { name, read, watch };
}
