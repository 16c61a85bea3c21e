import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../core/clock.ts';
import { StateError } from '../../core/errors.ts';
import type { Publications, PublishedSpec, WaitingChange, WaitingSpec } from '../../core/fleet.ts';
import { given, type Json } from '../../core/json.ts';
import { SerialQueue } from '../../core/work.ts';
import type { Commit } from '../../view/facts.ts';
import type { ReconciliationMemory } from '../project/memory.ts';
import { markOf, projectsByFile, type SpecText } from '../sources/source.ts';
import { type Rollout, readRollouts, type Shared, type Waiting } from './rollout.ts';

/** How a project of the fleet is, as its state says. */
export interface Assignment {
  readonly project: number;
  /** The replica that works on it now. */
  readonly worker: string | undefined;
  /** Since when, wall ms. */
  readonly since: number | undefined;
  /** The results of the last turn. Absent before the first one. */
  readonly memory: ReconciliationMemory | undefined;
}

/** The replica that knows most of the project: the one that works on it, or did so last. */
export function lastWorker({ worker, memory }: Assignment): string | undefined {
  return worker ?? memory?.replica;
}

/** The spec of a project, with the version and the commit in which it is in force. */
export interface SpecInForce {
  readonly project: number;
  readonly version: number;
  readonly spec: SpecText;
  readonly commit: Commit | undefined;
}

export interface BoardDeps {
  /**
   * Rejects if another replica owns the publications, or if they cannot be reached. For reading: `undefined` if no
   * replica has owned them yet.
   */
  readonly open: (mode: 'write' | 'read') => Promise<Publications | undefined>;
  readonly assignments: () => Promise<readonly Assignment[]>;
  /** Real time. */
  readonly clock: Clock;
}

/** The board asks for assignments at most once in this time, for any number of open pages. Real ms. */
const assignmentsMs = 1_000;

/** The part of a publication that belongs to no single spec. */
interface Head {
  readonly commit: Commit | null;
  readonly rollouts: readonly Rollout[];
  readonly counted?: string;
}

/** A published spec, parsed once. The value stays the same object until the spec changes. */
interface KnownSpec {
  readonly name: string;
  readonly project: number | null;
  readonly spec: SpecText;
}

/**
 * The data that the replicas of a fleet share: the specs in force, and how each project is.
 *
 * One replica at a time *leads*: the leader owns the fleet's state, reads the source, and publishes the changes. A replica
 * that has a turn of a project reads the spec of that project alone. So all replicas work with the same specs, even if a
 * file arrives late on one of their machines.
 */
export class Board {
  readonly #deps: BoardDeps;
  #owned: Publications | undefined;
  #reader: Publications | undefined;
  /**
   * Runs one reading after the other. Parallel readings would each open a connection, or lose the connection of
   * another reading, and a replica could take in an older version after a newer one.
   */
  readonly #turns = new SerialQueue();
  /** Of the leader: the specs in force. */
  readonly #specs = new Map<string, KnownSpec>();
  readonly #names = new Map<number, string>();
  /** The version that `#specs` have. */
  #version = 0;
  #head: Head = { commit: null, rollouts: [] };
  /** For the leader. `undefined`: not read yet. */
  #waiting: ReadonlyMap<number, Waiting> | undefined;
  #assignments: { readonly at: number; readonly assignments: Promise<readonly Assignment[]> } | undefined;

  constructor(deps: BoardDeps) {
    this.#deps = deps;
  }

  /** The changes that are rolled out in waves, as far as this replica knows: the oldest first. */
  get rollouts(): readonly Rollout[] {
    return this.#head.rollouts;
  }

  /** The commit in force, as far as this replica knows. */
  get commit(): Commit | undefined {
    return this.#head.commit ?? undefined;
  }

  /** Marks the text of a project's spec in force. Equal texts have equal marks. Only for the leader. */
  markOf(project: number): string | undefined {
    const name = this.#names.get(project);
    const known = name === undefined ? undefined : this.#specs.get(name);
    return known?.project === project ? markOf(known.spec) : undefined;
  }

  leads(): boolean {
    return this.#owned !== undefined && this.#owned.isOwned?.() !== false;
  }

  /**
   * Rejects where another replica leads. The leader reads the specs in force again: a standby that was promoted without
   * the last writes has earlier specs than this replica remembers, and its versions count from there.
   */
  async lead(): Promise<void> {
    this.#waiting = undefined;
    this.#specs.clear();
    this.#names.clear();
    this.#version = 0;
    this.#owned = await this.#deps.open('write');
  }

  async yieldLead(): Promise<void> {
    const owned = this.#owned;
    this.#owned = undefined;
    await owned?.close();
  }

  /**
   * Puts a snapshot in force, and returns whether the snapshot differs from the last one. Only for the leader, after
   * `published`.
   */
  async publish({ specs, commit, holders, rollouts = [], waiting = [], counted }: Shared): Promise<boolean> {
    const owned = this.#leading();
    const projects = projectsByFile(holders);
    const changed = specs.flatMap((spec): PublishedSpec[] => {
      const { name } = spec;
      const project = projects.get(name) ?? null;
      const before = this.#specs.get(name);
      // By the marks, which are known for all specs that have not changed.
      const isSame = before?.project === project && markOf(before.spec) === markOf(spec);
      return isSame ? [] : [{ name, project, body: JSON.stringify(spec) }];
    });
    const names = new Set(specs.map(({ name }) => name));
    const gone = [...this.#specs.keys()].filter((name) => !names.has(name));
    const changedSpecs = [...changed, ...gone.map((name) => ({ name, project: null, body: null }))];
    const wait = new Map(waiting.map((each) => [each.project, each]));
    const moved = waitingChange(this.#waiting ?? new Map(), wait);
    const own: Head = { commit: commit ?? null, rollouts, ...given({ counted }) };
    const isSame = changedSpecs.length + moved.put.length + moved.gone.length === 0;
    if (this.#version > 0 && isSame && isDeepStrictEqual(own, this.#head)) return false;
    const head = own as unknown as Json;
    await this.#turns.take(async () => {
      this.#take(await owned.publish(changedSpecs, head, moved), head, changedSpecs);
      this.#waiting = wait;
    });
    return true;
  }

  /**
   * The snapshot in force, from the current leader or an earlier one. Only for the leader: no other replica changes
   * the snapshot meanwhile.
   */
  async published(): Promise<Shared | undefined> {
    const owned = this.#leading();
    return this.#turns.take(async () => {
      const shared = await this.#catchUp(owned);
      this.#waiting ??= new Map((await owned.waiting()).map((each) => [each.project, parsed(each)]));
      return shared && { ...shared, waiting: [...this.#waiting.values()] };
    });
  }

  /**
   * Takes in the commit and the rollouts in force. Returns whether a replica has published specs yet.
   */
  async refresh(): Promise<boolean> {
    return this.#reading(async (store) => {
      const publication = await store?.publication();
      if (publication === undefined) return false;
      this.#takeHead(publication.head);
      return true;
    });
  }

  /** The spec in force of one project. */
  spec(project: number): Promise<SpecInForce | undefined> {
    return this.#reading(async (store) => {
      const found = await store?.publishedFor(project);
      if (found === undefined) return undefined;
      const spec: SpecText = JSON.parse(found.body);
      const commit: Commit | null = JSON.parse(found.commit ?? 'null');
      return { project, version: found.version, spec, commit: commit ?? undefined };
    });
  }

  /** Those of these projects whose spec in force has another version. */
  changed(versions: ReadonlyMap<number, number>): Promise<readonly number[]> {
    return this.#reading(async (store) => (await store?.changed(versions)) ?? []);
  }

  /** All projects that have a spec. */
  projects(): Promise<readonly number[]> {
    return this.#reading(async (store) => (await store?.projects()) ?? []);
  }

  /**
   * The projects of specs that changed, and that were not asked to reconcile since. `done` records that they were. A leader
   * that ends in between leaves them to the next one. Only for the leader.
   */
  async unasked(): Promise<{ readonly projects: readonly number[]; readonly done: () => Promise<void> }> {
    const owned = this.#leading();
    const upTo = this.#version;
    const changed = await owned.published(await owned.asked(), upTo);
    const projects = changed.flatMap(({ project }) => (project === null ? [] : [project]));
    return { projects, done: async () => (projects.length === 0 ? undefined : owned.setAsked(upTo)) };
  }

  /** How each project is that has a spec. The answer may be `assignmentsMs` old. */
  assignments(): Promise<readonly Assignment[]> {
    const { clock } = this.#deps;
    const now = clock.monotonic();
    if (this.#assignments === undefined || now - this.#assignments.at > assignmentsMs)
      this.#assignments = { at: now, assignments: this.#readAssignments() };
    return this.#assignments.assignments;
  }

  async close(): Promise<void> {
    await this.yieldLead();
    await this.#turns.end();
    await this.#reader?.close();
    this.#reader = undefined;
  }

  async #readAssignments(): Promise<readonly Assignment[]> {
    const [projects, known] = await Promise.all([this.projects(), this.#deps.assignments()]);
    const byProject = new Map(known.map((each) => [each.project, each]));
    const unseen = { worker: undefined, since: undefined, memory: undefined };
    return projects.map((project) => byProject.get(project) ?? { project, ...unseen });
  }

  #leading(): Publications {
    if (this.#owned === undefined || !this.leads())
      throw new StateError('This replica is no longer the leader, so it publishes no specs.');
    return this.#owned;
  }

  /** Takes in only the specs that were published since the last reading. */
  async #catchUp(store: Publications | undefined): Promise<Shared | undefined> {
    const publication = await store?.publication();
    if (store === undefined || publication === undefined) return undefined;
    const { version, head } = publication;
    if (version !== this.#version) this.#take(version, head, await store.published(this.#version, version));
    const { commit, ...progress } = this.#head;
    return {
      specs: [...this.#specs.values()].map(({ spec }) => spec),
      ...(commit === null ? {} : { commit }),
      ...progress,
      holders: Object.fromEntries(
        [...this.#specs.values()].flatMap(({ name, project }) => (project === null ? [] : [[project, name]])),
      ),
    };
  }

  #take(version: number, head: Json, changedSpecs: readonly PublishedSpec[]): void {
    for (const each of changedSpecs) {
      const { name, body, project } = each;
      const before = this.#specs.get(name);
      if (body === null) this.#specs.delete(name);
      else {
        const spec: SpecText = JSON.parse(body);
        const isSame = before !== undefined && markOf(before.spec) === markOf(spec);
        this.#specs.set(name, { name, project, spec: isSame ? before.spec : spec });
      }
      if (project !== null) this.#names.set(project, name);
    }
    this.#version = version;
    this.#takeHead(head);
  }

  #takeHead(head: Json): void {
    const { commit, rollouts, counted } = head as unknown as Head;
    this.#head = { commit, rollouts: readRollouts(rollouts), ...given({ counted }) };
  }

  #reading<T>(read: (store: Publications | undefined) => Promise<T>): Promise<T> {
    return this.#turns.take(() => this.#readNow(read));
  }

  /** Reads on a shared connection. After an error the next reading opens a new connection. */
  async #readNow<T>(read: (store: Publications | undefined) => Promise<T>): Promise<T> {
    this.#reader ??= await this.#deps.open('read');
    const reader = this.#reader;
    try {
      return await read(reader);
    } catch (error) {
      if (this.#reader === reader) this.#reader = undefined;
      await reader?.close();
      throw error;
    }
  }
}

function waitingChange(
  before: ReadonlyMap<number, Waiting>,
  now: ReadonlyMap<number, Waiting>,
): WaitingChange {
  const put = [...now.values()].filter(({ project, rollout, spec }) => {
    const known = before.get(project);
    return known?.rollout !== rollout || !isDeepStrictEqual(known.spec, spec);
  });
  return {
    put: put.map(({ spec, ...each }) => ({ ...each, body: spec === null ? null : JSON.stringify(spec) })),
    gone: [...before.keys()].filter((project) => !now.has(project)),
  };
}

function parsed({ project, rollout, body }: WaitingSpec): Waiting {
  return { project, rollout, spec: body === null ? null : JSON.parse(body) };
}
