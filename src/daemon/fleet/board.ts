import type { Clock } from '../../core/clock.ts';
import { StateError } from '../../core/errors.ts';
import { digestOf, type Json } from '../../core/json.ts';
import type { StateStore } from '../../core/state.ts';
import type { Holders, Snapshot } from '../sources/source.ts';
import type { Assignment } from './assignment.ts';

export interface BoardDeps {
  /** Opens the fleet's own state; rejects where another replica owns it, or it cannot be reached. */
  readonly open: (mode: 'write' | 'read') => Promise<StateStore>;
  readonly assignments: () => Promise<readonly Assignment[]>;
  /** Real time. */
  readonly clock: Clock;
}

const [snapshotNote, markNote] = ['snapshot', 'mark'];
/** However many pages are open, assignments are asked for no more often. Real ms. */
const assignmentsMs = 1_000;

/** Which projects a fleet has, by what it published in its own state. */
export async function holdersOn(store: StateStore): Promise<Holders> {
  const snapshot = (await store.note(snapshotNote)) as unknown as Snapshot | undefined;
  return snapshot?.holders ?? {};
}

/**
 * What the replicas of a fleet show each other: the specs in force, and who works where.
 *
 * One replica at a time *leads*: it owns the fleet's state, reads the source, and publishes
 * what it finds; the others take the specs from here. So all work by the same specs, however
 * late a file arrives on one of their machines.
 */
export class Board {
  readonly #deps: BoardDeps;
  #owned: StateStore | undefined;
  #reader: StateStore | undefined;
  /** Readings go one after the other: each would open a connection of its own, or lose the one it reads on. */
  #readings: Promise<unknown> = Promise.resolve();
  /** Of the one that leads: what is in force. */
  #published: Snapshot | undefined;
  /** Of the snapshot that this replica works by. */
  #mark: string | undefined;
  #assignments: { readonly at: number; readonly assignments: Promise<readonly Assignment[]> } | undefined;

  constructor(deps: BoardDeps) {
    this.#deps = deps;
  }

  leads(): boolean {
    return this.#owned !== undefined && this.#owned.isOwned?.() !== false;
  }

  /** Rejects where another replica leads. */
  async lead(): Promise<void> {
    this.#owned = await this.#deps.open('write');
  }

  /** Whether it leads still: the lock is gone with its connection. */
  async stillLeads(): Promise<boolean> {
    try {
      // Asks the server: notes are known to their owner.
      await this.#owned?.journal({ limit: 1 });
      if (!this.leads()) await this.yieldLead();
    } catch {
      await this.yieldLead();
    }
    return this.leads();
  }

  async yieldLead(): Promise<void> {
    const owned = this.#owned;
    this.#owned = undefined;
    this.#published = undefined;
    await owned?.close();
  }

  /** Puts a snapshot in force, and gives whether it is another one. Only for the one that leads. */
  async publish(snapshot: Snapshot): Promise<boolean> {
    const owned = this.#leading();
    const mark = digestOf(snapshot);
    const isNews = (await owned.note(markNote)) !== mark;
    if (isNews) {
      // In this order: whoever sees the mark finds a snapshot that is no older.
      await owned.putNote(snapshotNote, snapshot as unknown as Json);
      await owned.putNote(markNote, mark);
    }
    this.#mark = mark;
    this.#published = snapshot;
    return isNews;
  }

  /** What is in force, whoever led when it was published. Only for the one that leads; nobody else changes it meanwhile. */
  async published(): Promise<Snapshot | undefined> {
    const owned = this.#leading();
    this.#published ??= (await owned.note(snapshotNote)) as unknown as Snapshot | undefined;
    return this.#published;
  }

  /** The snapshot in force, which this replica works by from now on; `undefined` where nobody has published one yet. */
  async snapshot(): Promise<Snapshot | undefined> {
    return this.#reading(async (store) => {
      const mark = await store.note(markNote);
      const snapshot = await store.note(snapshotNote);
      this.#mark = typeof mark === 'string' ? mark : undefined;
      return snapshot as unknown as Snapshot | undefined;
    });
  }

  /** Whether something else is in force than what this replica works by. */
  async hasMoved(): Promise<boolean> {
    return this.#reading(async (store) => (await store.note(markNote)) !== this.#mark);
  }

  /** Who works on which project, as it was a moment ago at most. */
  assignments(): Promise<readonly Assignment[]> {
    const { clock, assignments } = this.#deps;
    const now = clock.monotonic();
    if (this.#assignments === undefined || now - this.#assignments.at > assignmentsMs)
      this.#assignments = { at: now, assignments: assignments() };
    return this.#assignments.assignments;
  }

  async close(): Promise<void> {
    await this.yieldLead();
    await this.#readings;
    await this.#reader?.close();
    this.#reader = undefined;
  }

  #leading(): StateStore {
    if (this.#owned === undefined || !this.leads())
      throw new StateError('This replica leads no more, and so publishes no specs.');
    return this.#owned;
  }

  #reading<T>(read: (store: StateStore) => Promise<T>): Promise<T> {
    const reading = this.#readings.then(() => this.#readNow(read));
    this.#readings = reading.catch(() => undefined);
    return reading;
  }

  /** On a connection that is made anew after an error. */
  async #readNow<T>(read: (store: StateStore) => Promise<T>): Promise<T> {
    this.#reader ??= await this.#deps.open('read');
    const reader = this.#reader;
    try {
      // What did not exist when it was opened is not found by opening it once.
      const result = await read(reader);
      if (this.#mark === undefined) await this.#drop(reader);
      return result;
    } catch (error) {
      await this.#drop(reader);
      throw error;
    }
  }

  async #drop(reader: StateStore): Promise<void> {
    if (this.#reader === reader) this.#reader = undefined;
    await reader.close();
  }
}
