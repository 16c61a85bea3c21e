import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { specNames } from '../../spec/folder.ts';
import { type FolderBounds, withinBounds } from './bounds.ts';
import { failWith, mostBytes, readSpecFile, reasonOf, specBuffer } from './read-file.ts';
import { type SpecText, unreadable } from './source.ts';

/** A file that was changed less than so long ago may be changed again without another time stamp. Wall ms. */
const youngMs = 2_000;
/** How long the attributes of a file count as current: network file systems may keep old ones. Real ms. */
const believedMs = 60_000;
/** The share of the folder that each reading reads again, among files whose attributes are older than that. */
const againShare = 1 / 12;

interface FolderFile {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** Changes when the file changes. Empty if the attributes cannot show a change. */
  readonly stamp: string;
}

/** A file as it was read. */
interface KnownFile {
  readonly stamp: string;
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
  #known: ReadonlyMap<string, KnownFile> = new Map();

  /** @param name the name for messages */
  constructor(path: string, name: string, clock: Clock, most?: FolderBounds) {
    this.#path = path;
    this.#name = name;
    this.#clock = clock;
    this.#most = most;
  }

  /** @throws SourceError if the folder does not exist */
  async read(): Promise<readonly SpecText[]> {
    const { read, left } = withinBounds(await this.#files(), this.#most);
    const buffer = specBuffer();
    const known = new Map<string, KnownFile>();
    let again = Math.ceil(read.length * againShare);
    // One after the other: a thousand files at once would need a thousand handles.
    for (const file of read) {
      const before = this.#known.get(file.path);
      const now = this.#clock.monotonic();
      const isSame = before?.stamp === file.stamp && file.stamp !== '';
      const isOld = isSame && now - before.at >= believedMs && again > 0;
      if (isOld) again -= 1;
      if (isSame && !isOld) known.set(file.path, before);
      else known.set(file.path, { stamp: file.stamp, at: now, spec: await specOf(file, buffer, before) });
    }
    this.#known = known;
    return [...[...known.values()].map(({ spec }) => spec), ...left];
  }

  /** Another one when `read` gives something else. */
  async digest(): Promise<string> {
    const hash = createHash('sha256');
    for (const spec of await this.read()) {
      const parts = 'sources' in spec ? spec.sources.map(({ text }) => text) : [JSON.stringify(spec.problem)];
      for (const part of [spec.name, ...parts]) hash.update(`${part.length}:`).update(part);
    }
    return hash.digest('hex');
  }

  async #files(): Promise<readonly FolderFile[]> {
    const names = await readdir(this.#path).catch(failWith(this.#name));
    const now = this.#clock.now();
    return Promise.all(
      specNames(names).map(async (each) => {
        const path = join(this.#path, each);
        const found = await stat(path, { bigint: true }).catch(() => undefined);
        const file = { name: join(this.#name, each), path };
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
async function specOf(
  { path, name }: FolderFile,
  buffer: Buffer,
  before: KnownFile | undefined,
): Promise<SpecText> {
  const file = await readSpecFile(path, name, buffer).catch((error: unknown) =>
    unreadable(name, reasonOf(error)),
  );
  const spec: SpecText = 'text' in file ? { name, sources: [file] } : { name, problem: file };
  return before !== undefined && JSON.stringify(before.spec) === JSON.stringify(spec) ? before.spec : spec;
}
