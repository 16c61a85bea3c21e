import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { reasonOf } from '../../core/errors.ts';
import { mostBytes, specNames, unreadable } from '../../spec/load.ts';
import { type FolderBounds, type SizedFile, withinBounds } from './bounds.ts';
import { failWith, readSpecFile } from './read-file.ts';
import type { SpecText } from './source.ts';

/** A file that was changed less than so long ago may be changed again without another time stamp. Wall ms. */
const youngMs = 2_000;
/** How long the attributes of a file count as current: network file systems may keep old ones. Real ms. */
const believedMs = 60_000;
/** The number of files that one reading checks without a sign of a change, in turn. */
const inTurn = 1_000;
/** The share of them that it reads again, among files whose attributes are older than that. */
const againShare = 1 / 12;

interface FolderFile extends SizedFile {
  readonly path: string;
  /** Changes when the file changes. Empty if the attributes cannot show a change. */
  readonly stamp: string;
}

/** A file as it was read. */
interface KnownFile extends Pick<FolderFile, 'stamp' | 'sizeBytes'> {
  readonly at: number;
  readonly spec: SpecText;
}

/**
 * The specs in a folder. A file is read only where its attributes have changed: on a busy machine, reading thousands of
 * files one after the other takes many seconds, in which an edit of one of them would wait. A spec that has not changed stays the same value.
 */
export class SpecFolder {
  readonly #path: string;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #most: FolderBounds | undefined;
  readonly #except: ReadonlySet<string>;
  #known: ReadonlyMap<string, KnownFile> = new Map();
  #left = '';
  #revision = 0;
  /** Where the next check of some files begins. */
  #next = 0;

  /** @param name the name for messages @param except paths of files in the folder that describe no project */
  constructor(
    path: string,
    name: string,
    clock: Clock,
    { most, except = [] }: { most?: FolderBounds | undefined; except?: readonly string[] } = {},
  ) {
    this.#path = path;
    this.#name = name;
    this.#clock = clock;
    this.#most = most;
    this.#except = new Set(except);
  }

  /** @throws SourceError if the folder does not exist */
  read(): Promise<readonly SpecText[]> {
    return this.#read('all');
  }

  /**
   * Another number when `read` gives something else. `all` checks the attributes of all files, and is quick. `some`, for
   * regular checks, checks the names of all files and the attributes of at most `inTurn` of them, and reads a few again.
   *
   * @throws SourceError if the folder does not exist
   */
  async revision(which: 'all' | 'some'): Promise<number> {
    await this.#read(which);
    return this.#revision;
  }

  async #read(which: 'all' | 'some'): Promise<readonly SpecText[]> {
    const { read, left } = withinBounds(await this.#files(which), this.#most);
    const known = new Map<string, KnownFile>();
    let again = which === 'some' ? Math.ceil(Math.min(read.length, inTurn) * againShare) : 0;
    let isSame = true;
    // One after the other: a thousand files at once would need a thousand handles.
    for (const file of read) {
      const { stamp, sizeBytes } = file;
      const before = this.#known.get(file.path);
      const now = this.#clock.monotonic();
      const isKnown = before?.stamp === stamp && stamp !== '';
      const isOld = isKnown && now - before.at >= believedMs && again > 0;
      if (isOld) again -= 1;
      const after =
        isKnown && !isOld ? before : { stamp, sizeBytes, at: now, spec: await specOf(file, before) };
      known.set(file.path, after);
      isSame &&= after.spec === before?.spec;
    }
    const names = left.map(({ name }) => name).join('\n');
    if (!isSame || known.size !== this.#known.size || names !== this.#left) this.#revision += 1;
    this.#known = known;
    this.#left = names;
    return [...[...known.values()].map(({ spec }) => spec), ...left];
  }

  async #files(which: 'all' | 'some'): Promise<readonly FolderFile[]> {
    const names = specNames(await readdir(this.#path).catch(failWith(this.#name))).filter(
      (each) => !this.#except.has(join(this.#path, each)),
    );
    const now = this.#clock.now();
    const first = this.#next < names.length ? this.#next : 0;
    if (which === 'some') this.#next = first + inTurn;
    return Promise.all(
      names.map(async (each, index) => {
        const path = join(this.#path, each);
        const file = { name: join(this.#name, each), path };
        const known = this.#known.get(path);
        const isTurn = which === 'all' || (index >= first && index < first + inTurn);
        if (!isTurn && known !== undefined && known.stamp !== '') return { ...file, ...known };
        const found = await stat(path, { bigint: true }).catch(() => undefined);
        if (found === undefined) return { ...file, sizeBytes: 0, stamp: '' };
        const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = found;
        const isYoung = Math.abs(now - Number(ctimeMs)) < youngMs;
        const stamp = isYoung ? '' : [dev, ino, size, mtimeNs, ctimeNs].join(' ');
        return { ...file, sizeBytes: Math.min(Number(size), mostBytes), stamp };
      }),
    );
  }
}

/** One that cannot be read says nothing about the others. */
async function specOf({ path, name }: FolderFile, before: KnownFile | undefined): Promise<SpecText> {
  const file = await readSpecFile(path, name).catch((error: unknown) => unreadable(name, reasonOf(error)));
  const spec: SpecText = 'text' in file ? { name, sources: [file] } : { name, problem: file };
  return before !== undefined && JSON.stringify(before.spec) === JSON.stringify(spec) ? before.spec : spec;
}
