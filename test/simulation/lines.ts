import type { ResourceKey } from '../../src/core/keys.ts';
import { bareKey, type KeyLines, lineName } from '../../src/simulation/spec-file.ts';
import type { SpecModel } from '../../src/simulation/story.ts';

export const editedSections = ['servers', 'ips', 'networks', 'isos'] as const;
export type EditedSection = (typeof editedSections)[number];

/**
 * The truth about renames: which keys of one spec mean the same resource over time. A line has the name of its first
 * key. A line continues with a `moved`, and with the return of a key that it has had since its resource was created.
 */
export class ActionLines implements KeyLines {
  readonly #prefix: string;
  /** The line of each top-level key that has not its own name as line. */
  readonly #lines = new Map<string, string>();
  readonly #keys = new Map<string, string[]>();
  /** The line that a key had before it got another one. */
  readonly #former = new Map<string, string>();
  /** Keys that a line has got by an edit, and that no state has used yet. */
  readonly #unused = new Set<string>();
  /** Keys that have come back to their line by an edit, and that no state has used since. */
  readonly #returned = new Set<string>();
  /** Keys of a line whose resource is gone, and was created again under a later key. */
  readonly #left = new Set<string>();
  #splits = 0;

  /** `prefix` distinguishes specs whose names have nothing to do with each other. */
  constructor(prefix = '') {
    this.#prefix = prefix;
  }

  nameOf(key: ResourceKey): string {
    return this.#prefix + lineName(key, (each) => this.#lineOf(each));
  }

  keyOf(line: string): ResourceKey {
    const own = line.slice(this.#prefix.length);
    return (this.#keys.get(own)?.at(-1) ?? own) as ResourceKey;
  }

  hasHad(line: string, key: ResourceKey): boolean {
    const own = line.slice(this.#prefix.length);
    return own === key || this.#keys.get(own)?.includes(key) === true;
  }

  /** No state has used the key since an edit gave it to its line. */
  isUnused(key: string): boolean {
    return this.#unused.has(key);
  }

  use(key: ResourceKey): void {
    this.#unused.delete(key);
    this.#returned.delete(key);
  }

  restart(key: ResourceKey): void {
    const line = this.#lineOf(key);
    const earlier = [line, ...(this.#keys.get(line) ?? [])].filter((each) => each !== key);
    for (const each of earlier) this.#left.add(each);
    if (earlier.length > 0) this.#keys.set(line, [key]);
  }

  /** Follows an edit of the spec. An edit that is taken back before a state has used its key leaves no trace. */
  follow(before: SpecModel, after: SpecModel): void {
    const [old, now] = [keysOf(before), keysOf(after)];
    for (const key of old.keys()) if (!now.has(key) && this.#unused.delete(key)) this.takeBack(key);
    for (const [key, moved] of now) {
      if (old.has(key) && old.get(key) === moved) continue;
      if (moved !== undefined && !now.has(moved)) this.#continue(key, this.#lineOf(moved), now, moved);
      else if (!old.has(key)) this.#enter(key, now);
    }
  }

  /** An operator takes back a `moved` that no run has carried out: the key has its former line again. */
  takeBack(key: string): void {
    const [line, former] = [this.#lineOf(key), this.#former.get(key)];
    if (former === undefined) return;
    this.#lines.set(key, former);
    this.#keys.set(line, this.#keys.get(line)?.filter((each) => each !== key) ?? []);
  }

  #lineOf(key: string): string {
    const bare = bareKey(key);
    return this.#lines.get(bare) ?? bare;
  }

  /** A key comes into the spec: a line that it had before continues, unless another key has that line now. */
  #enter(key: string, now: ReadonlyMap<string, unknown>): void {
    if (this.#left.has(key)) {
      this.#split(key);
      return;
    }
    const former = [...this.#keys].find(
      ([, keys]) => keys.includes(key) && !now.has(keys.at(-1) as string),
    )?.[0];
    if (former !== undefined) {
      this.#assign(key, former);
      this.#returned.add(key);
      return;
    }
    const own = this.#lineOf(key);
    const holder = this.#keys.get(own)?.at(-1) ?? own;
    if (holder === key) return;
    if (this.#returned.has(holder)) this.#continue(key, own, now);
    else this.#split(key);
  }

  /**
   * The line continues with the key. The state has its resource under the key that another one has just replaced. A
   * `moved` that names an earlier key than the last one that the state has used comes too late if another entry follows.
   */
  #continue(key: string, line: string, now: ReadonlyMap<string, unknown>, moved?: string): void {
    const keys = this.#keys.get(line) ?? [line];
    const holder = keys.at(-1) ?? line;
    const used = keys.findLast((each) => !this.#unused.has(each)) ?? line;
    const isFollowed = holder !== key && now.has(holder) && !this.#returned.has(holder);
    if (moved !== undefined && moved !== used && isFollowed) {
      this.#split(key);
      return;
    }
    if (holder !== key && now.has(holder) && this.#returned.delete(holder)) this.#split(holder);
    this.#assign(key, line);
  }

  /** The key begins a line of its own. */
  #split(key: string): void {
    this.#splits += 1;
    this.#assign(key, `${key}#${this.#splits}`);
  }

  #assign(key: string, line: string): void {
    this.#left.delete(key);
    this.#former.set(key, this.#lineOf(key));
    this.#lines.set(key, line);
    const keys = this.#keys.get(line) ?? [line];
    if (!keys.includes(key)) this.#unused.add(key);
    this.#keys.set(line, [...keys.filter((each) => each !== key), key]);
  }
}

/** The keys of the spec, each with the key that its `moved` names. */
function keysOf(model: SpecModel): ReadonlyMap<string, string | undefined> {
  return new Map(
    editedSections.flatMap((section) =>
      Object.entries(model[section]).map(([name, entry]) => {
        const { from } = (entry.moved ?? {}) as { readonly from?: string };
        const moved = from === undefined || from.includes('.') ? from : `${section}.${from}`;
        return [`${section}.${name}`, moved] as const;
      }),
    ),
  );
}
