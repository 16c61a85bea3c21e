import { advance } from './schedule.ts';
import type { World } from './world.ts';

/** A read is never staler than this: older copies are dropped. */
const MOST_AGE_MS = 600_000;
const MOST_COPIES = 500;

interface Copy {
  readonly atMs: number;
  readonly world: string;
}

/** Copies of the world after each change, from which stale reads are answered. `@assumption A9` */
export class History {
  #copies: Copy[] = [];
  /** The world of the last stale read. The next read often asks for the same copy at a later moment. */
  #shown: { readonly copy: Copy; atMs: number; readonly world: World } | undefined;

  /** Keeps a copy of the current world. */
  record(world: World, nowMs: number): void {
    // Nothing of these is ever read from a copy, and they are most of its size.
    const slim = { ...world, executions: [], late: [], buckets: {} };
    this.#copies.push({ atMs: nowMs, world: JSON.stringify(slim) });
    const firstNeeded = this.#copies.findLastIndex((copy) => copy.atMs <= nowMs - MOST_AGE_MS);
    this.#copies = this.#copies.slice(Math.max(0, firstNeeded, this.#copies.length - MOST_COPIES));
  }

  /** The world at that moment, or the oldest copy if the moment is before all copies. */
  at(ms: number): World | null {
    const copy = this.#copies.findLast((candidate) => candidate.atMs <= ms) ?? this.#copies[0];
    if (copy === undefined) return null;
    if (this.#shown?.copy !== copy || this.#shown.atMs > ms)
      this.#shown = { copy, atMs: ms, world: JSON.parse(copy.world) as World };
    this.#shown.atMs = ms;
    advance(this.#shown.world, ms);
    return this.#shown.world;
  }

  clear(): void {
    this.#copies = [];
    this.#shown = undefined;
  }
}
