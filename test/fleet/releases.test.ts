import { describe, expect, onTestFinished, test } from 'vitest';
import type { Desired } from '../../src/core/desired.ts';
import { StateInUseError } from '../../src/core/errors.ts';
import type { HeardHint, Hint, Publications, PublishedSpec } from '../../src/core/fleet.ts';
import type { Json } from '../../src/core/json.ts';
import { type Assignment, Board } from '../../src/daemon/fleet/board.ts';
import { fleetSource } from '../../src/daemon/fleet/fleet-source.ts';
import { Releases } from '../../src/daemon/fleet/releases.ts';
import {
  defaultPolicy,
  type Rollout,
  type RolloutPolicy,
  readRollouts,
} from '../../src/daemon/fleet/rollout.ts';
import type { ReconciliationMemory } from '../../src/daemon/project/memory.ts';
import type { Intake, Taken } from '../../src/daemon/sources/intake.ts';
import { markOf, type Snapshot, SourceError, type SpecText } from '../../src/daemon/sources/source.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import { quiet } from '../support/project.ts';
import { MemoryPublications } from './memory-publications.ts';

const ids = Array.from({ length: 1_000 }, (_, index) => 1 + index);
const canaries = [17, 404];
const others = ids.filter((id) => !canaries.includes(id));
const policy: RolloutPolicy = {
  ...defaultPolicy,
  waves: [{ match: { label: 'canary' } }, { percent: 10 }, { percent: 100 }],
  labels: { canary: canaries },
};

/** A fleet of 1,000 projects in memory: the branch, the database, and what each project was last worked on by. */
class SimulatedFleet {
  readonly clock = virtualClock();
  readonly notices: string[] = [];
  /** What has been put into each project, in this order. */
  readonly done = new Map<number, string[]>(ids.map((id) => [id, []]));
  /** Whether each project is well; a spec with `bad` in it makes it worse. */
  readonly condition = new Map<number, string>();
  readonly #turns = new Map<
    number,
    { readonly is: string; readonly since: number; readonly turnedAt: number }
  >();
  /** How many deletions a plan of each project would make. */
  deletions = 0;
  /** The projects that delete; without a set all of them do. */
  deleting: ReadonlySet<number> | undefined;
  /** Blocked, whatever is put into it. */
  broken = 0;
  planned = 0;
  #commit = 0;
  #texts = new Map<number, string>();
  readonly #marks = new Map<number, string>();
  readonly #publications = new MemoryPublications();
  #owner: object | undefined;
  #hints: readonly HeardHint[] = [];
  unreadable = false;

  /** A commit that gives these projects another text. */
  push(text: string, projects: readonly number[] = ids): string {
    this.#commit += 1;
    this.#texts = new Map([...this.#texts, ...projects.map((id): [number, string] => [id, text])]);
    return `commit-${this.#commit}`;
  }

  /** Projects into which a text was put. */
  with(text: string): readonly number[] {
    return ids.filter((id) => this.done.get(id)?.includes(text));
  }

  /** The rollouts, the oldest first. */
  shown(): readonly Rollout[] {
    return readRollouts((this.#publications.last?.head as { readonly rollouts: Json }).rollouts);
  }

  /** The commits that are on their way, and how far each one is. */
  phases(): readonly string[] {
    return this.shown().map(({ change, phase, wave }) => `${change} ${phase} ${wave}`);
  }

  approve(change: string): void {
    const hint: Hint = { of: 'approve', change };
    const heard: HeardHint = {
      hint,
      done: async () => {
        this.#hints = this.#hints.filter((each) => each !== heard);
      },
    };
    this.#hints = [...this.#hints, heard];
  }

  /** A turn at the project, which leaves it in this condition. */
  reconcile(id: number, condition = this.condition.get(id) ?? 'starting'): void {
    this.condition.set(id, condition);
    const [before, is, now] = [this.#turns.get(id), `${this.#marks.get(id)} ${condition}`, this.clock.now()];
    this.#turns.set(id, { is, since: before?.is === is ? before.since : now, turnedAt: now });
  }

  /** A process that leads from now on, until it is killed. */
  /** `without`: the projects whose specs the process cannot use. */
  lead(given = policy, without: ReadonlySet<number> = new Set()): { kill(): void } {
    const life = new AbortController();
    const self = {};
    const { clock } = this;
    const board = new Board({
      open: async (mode) => this.#open(mode, self),
      assignments: async () => [],
      clock,
    });
    const releases = new Releases({
      ...{ policy: given, board, clock, log: quiet, atOnce: 10 },
      ask: async (projects) => {
        for (const id of projects) this.reconcile(id);
      },
      left: async (projects) => projects.flatMap((id) => this.#memory(id) ?? []),
      deletions: async ({ projectId }) => {
        this.planned += 1;
        return this.deleting?.has(projectId) === false ? 0 : this.deletions;
      },
      approval: (change) => `approve ${change}`,
      onNotification: (notice) => void this.notices.push(notice.detail),
    });
    const source = fleetSource({
      ...{ board, releases, clock, log: quiet, intervalMs: 1_000 },
      queue: { add: async () => {}, ask: async () => {}, hints: async () => this.#hints },
      source: {
        name: 'branch',
        read: async () => this.#snapshot(),
        watch: async () => new Promise(() => {}),
      },
      intake: { take: async (snapshot: Snapshot) => taken(snapshot, without) } as unknown as Intake,
    });
    let reading: Promise<unknown> = Promise.resolve();
    const read = () => {
      reading = reading
        .then(() => (life.signal.aborted ? undefined : source.read(life.signal)))
        // One that is killed may be in the middle of it.
        .catch((error: unknown) => expect(error).toBeInstanceOf(SourceError));
    };
    source.watch(read, life.signal).catch(() => undefined);
    // The queue gives the lead to one replica at a time, and again to the next one.
    const leading = async () => {
      while (!life.signal.aborted) {
        await source.lead(life.signal).catch(() => undefined);
        await clock.sleep(1_000, life.signal).catch(() => undefined);
      }
    };
    void leading();
    const kill = () => {
      life.abort(new Error('killed'));
      if (this.#owner === self) this.#owner = undefined;
    };
    onTestFinished(kill);
    this.look = read;
    return { kill };
  }

  /** Has the replica that leads read the branch. */
  look: () => void = () => {};

  /** The leader reads the branch, and so much time goes by. */
  async advance(seconds: number): Promise<void> {
    this.look();
    for (let at = 0; at < seconds; at += 5) await this.clock.advance(5_000);
  }

  #open(mode: 'read' | 'write', self: object): Publications {
    if (mode === 'write' && this.#owner !== undefined) throw new StateInUseError('another replica leads');
    if (mode === 'write') this.#owner = self;
    const { publish } = this.#publications.open();
    return this.#publications.open({
      isOwned: () => mode === 'read' || this.#owner === self,
      projects: async () => ids,
      publish: async (news, ...others) => {
        if (this.#owner !== self) throw new Error('the fence');
        const version = await publish(news, ...others);
        for (const each of news) this.#workOn(each);
        return version;
      },
      close: async () => {
        if (mode === 'write' && this.#owner === self) this.#owner = undefined;
      },
    });
  }

  #workOn({ project, body }: PublishedSpec): void {
    if (project === null || body === null) return;
    const spec = JSON.parse(body) as SpecText;
    const text = 'sources' in spec ? (spec.sources[0]?.text ?? '') : '';
    this.done.get(project)?.push(text);
    this.#marks.set(project, markOf(spec));
    this.reconcile(project, text.includes('bad') || project === this.broken ? 'blocked' : 'converged');
  }

  #memory(id: number): Assignment | undefined {
    const [spec, condition, turn] = [this.#marks.get(id), this.condition.get(id), this.#turns.get(id)];
    if (spec === undefined) return undefined;
    const memory = { spec, ...turn, history: { condition } } as unknown as ReconciliationMemory;
    return { project: id, worker: undefined, since: undefined, memory };
  }

  #snapshot(): Snapshot {
    if (this.unreadable) throw new SourceError('the branch cannot be read');
    const commit = {
      id: `commit-${this.#commit}`,
      ref: 'main',
      fullRef: 'main',
      subject: '',
      author: '',
      at: 0,
    };
    return {
      specs: [...this.#texts].map(([id, text]) => ({ name: `${id}.yaml`, sources: [{ file: '', text }] })),
      commit,
    };
  }
}

function taken({ specs, commit }: Snapshot, without: ReadonlySet<number>): readonly Taken[] {
  return specs.map(({ name }) => {
    if (without.has(Number.parseInt(name, 10))) return { name, problem: [] };
    const desired = { projectId: Number.parseInt(name, 10), settings: { max_deletions: 2 } };
    return { name, offer: { desired: desired as unknown as Desired, commit, files: [name] } };
  });
}

/** A fleet that is at rest by its first commit. */
async function fleetAtRest(given = policy) {
  const fleet = new SimulatedFleet();
  fleet.push('first');
  const leader = fleet.lead(given);
  await fleet.advance(10);
  expect(fleet.with('first')).toEqual(ids);
  return { fleet, leader };
}

/** A fleet whose second commit has failed in its canaries. */
async function fleetWithFailure() {
  const made = await fleetAtRest();
  made.fleet.push('bad');
  await made.fleet.advance(600);
  return made;
}

describe('src/daemon/fleet/releases.ts', () => {
  test('a bad commit over 1,000 projects reaches the canary alone, with one report, over restarts and leaders', async () => {
    const { fleet, leader } = await fleetAtRest();
    const bad = fleet.push('bad');
    await fleet.advance(3_600);
    expect(fleet.with('bad')).toEqual(canaries);
    expect(fleet.shown()).toMatchObject([{ phase: 'stopped', change: bad, wave: 1, left: 998 }]);

    leader.kill();
    for (let restart = 0; restart < 3; restart += 1) {
      const next = fleet.lead();
      await fleet.advance(3 * 3_600);
      next.kill();
    }
    fleet.lead();
    await fleet.advance(3 * 3_600);

    expect(fleet.with('bad')).toEqual(canaries);
    expect(fleet.notices).toHaveLength(1);
    expect(fleet.notices[0]).toContain('approve commit-2');
  });

  test('a good commit reaches a wave once the wave before has stayed converged for the set time', async () => {
    const { fleet } = await fleetAtRest();
    fleet.push('good');
    await fleet.advance(500);
    expect(fleet.with('good')).toEqual(canaries);
    await fleet.advance(200);
    const tenth = fleet.with('good');
    expect(tenth).toHaveLength(100);
    expect(tenth).toEqual(expect.arrayContaining(canaries));
    await fleet.advance(700);
    expect(fleet.with('good')).toEqual(ids);
    expect(fleet.shown()).toEqual([]);
    expect(fleet.notices).toEqual([]);
  });

  test('a new leader continues the time for which a wave has to stay converged', async () => {
    const { fleet, leader } = await fleetAtRest();
    fleet.push('good');
    await fleet.advance(400);
    expect(fleet.with('good')).toEqual(canaries);
    leader.kill();
    fleet.lead();
    // 600 s are the usual time to stay: a new count would end after 1,000 s.
    await fleet.advance(250);
    expect(fleet.with('good')).toHaveLength(100);
  });

  test('a wave whose projects do not stay converged stops the commit', async () => {
    const { fleet } = await fleetAtRest();
    fleet.push('good');
    await fleet.advance(300);
    fleet.reconcile(404, 'failing');
    await fleet.advance(3_600);
    expect(fleet.with('good')).toEqual(canaries);
    expect(fleet.phases()).toEqual(['commit-2 stopped 1']);
  });

  test('a correction of a stopped commit begins with the canary, and the stopped commit reaches no other project', async () => {
    const { fleet } = await fleetWithFailure();
    fleet.push('corrected');
    await fleet.advance(60);
    expect(fleet.with('corrected')).toEqual(canaries);
    await fleet.advance(3_600);
    expect(fleet.with('corrected')).toEqual(ids);
    expect(fleet.with('bad')).toEqual(canaries);
  });

  test('a commit that does not change the failed projects waits for them', async () => {
    const { fleet } = await fleetWithFailure();
    fleet.push('other', others);
    await fleet.advance(3_600);
    expect(fleet.with('other')).toEqual([]);
    expect(fleet.phases()).toEqual(['commit-2 stopped 1', 'commit-3 queued 0']);
  });

  test('a stopped commit continues once the operator approves the commit, also under a new leader', async () => {
    const { fleet, leader } = await fleetWithFailure();
    fleet.approve('commit-1');
    await fleet.advance(60);
    expect(fleet.with('bad')).toEqual(canaries);
    fleet.approve('commit-2');
    await fleet.advance(10);
    expect(fleet.with('bad')).toHaveLength(100);
    leader.kill();
    fleet.lead();
    await fleet.advance(60);
    expect(fleet.phases()).toEqual(['commit-2 stopped 2']);
    expect(fleet.with('bad')).toHaveLength(100);
    expect(fleet.notices).toHaveLength(2);
  });

  test('a project that was already blocked delays no wave, and an edit of one project waits for no wave', async () => {
    const { fleet } = await fleetAtRest();
    fleet.push('edit', [800]);
    await fleet.advance(5);
    expect(fleet.with('edit')).toEqual([800]);
    fleet.reconcile(404, 'blocked');
    fleet.push('good');
    fleet.broken = 404;
    await fleet.advance(3_600);
    expect(fleet.with('good')).toEqual(ids);
  });

  test('a commit with more deletions than the fleet allows changes nothing until it is approved, also after a restart', async () => {
    const { fleet, leader } = await fleetAtRest(defaultPolicy);
    fleet.deletions = 1;
    const change = fleet.push('less');
    await fleet.advance(60);
    expect([fleet.with('less'), fleet.planned]).toEqual([[], 1_000]);
    expect(fleet.shown()).toMatchObject([{ phase: 'waiting', deletions: 1_000 }]);
    leader.kill();
    fleet.lead(defaultPolicy);
    await fleet.advance(3_600);
    expect([fleet.with('less'), fleet.planned]).toEqual([[], 1_000]);
    expect(fleet.notices).toHaveLength(1);
    fleet.approve(change);
    await fleet.advance(10);
    expect(fleet.with('less')).toEqual(ids);
  });

  test('the next leader carries out an approval that the leader before received', async () => {
    const { fleet, leader } = await fleetAtRest(defaultPolicy);
    fleet.deletions = 1;
    const change = fleet.push('less');
    await fleet.advance(60);
    fleet.unreadable = true;
    fleet.approve(change);
    await fleet.advance(10);
    leader.kill();
    fleet.unreadable = false;
    expect(fleet.with('less')).toEqual([]);
    fleet.lead(defaultPolicy);
    await fleet.advance(10);
    expect(fleet.with('less')).toEqual(ids);
  });

  test('only projects with deletions wait, and their approval stays valid over newer commits of other projects', async () => {
    const { fleet, leader } = await fleetAtRest(defaultPolicy);
    const [tenant, others] = [ids.slice(0, 20), ids.slice(20)];
    fleet.deletions = 1;
    fleet.deleting = new Set(tenant);
    const change = fleet.push('less');
    await fleet.advance(60);
    expect(fleet.with('less')).toEqual(others);
    expect(fleet.shown()).toMatchObject([{ change, phase: 'waiting', deletions: 20, left: 20 }]);

    fleet.push('more', others);
    leader.kill();
    fleet.lead(defaultPolicy);
    await fleet.advance(60);
    expect(fleet.with('more')).toEqual(others);
    expect(fleet.phases()).toEqual([`${change} waiting 0`]);
    expect(fleet.notices).toHaveLength(1);

    fleet.approve(change);
    await fleet.advance(10);
    expect(fleet.with('less')).toEqual(ids);
    expect(fleet.phases()).toEqual([]);
  });

  test('a waiting project with a new spec is counted again, and the approval of the others stays', async () => {
    const { fleet } = await fleetAtRest(defaultPolicy);
    const [first, second] = [ids.slice(0, 20), ids.slice(20, 40)];
    fleet.deletions = 1;
    fleet.deleting = new Set([...first, ...second]);
    const one = fleet.push('less', [...first, ...second]);
    await fleet.advance(60);
    const two = fleet.push('still less', second);
    await fleet.advance(60);
    expect(fleet.phases()).toEqual([`${one} waiting 0`, `${two} waiting 0`]);

    fleet.approve(one);
    await fleet.advance(10);

    expect(fleet.with('less')).toEqual(first);
    expect(fleet.with('still less')).toEqual([]);
    expect(fleet.phases()).toEqual([`${two} waiting 0`]);
  });

  test('the next leader counts specs that the leader before could not use', async () => {
    const { fleet, leader } = await fleetAtRest(defaultPolicy);
    leader.kill();
    const [usable, others] = [ids.slice(0, 3), ids.slice(3)];
    const next = fleet.lead(defaultPolicy, new Set(others));
    fleet.deletions = 1;
    const change = fleet.push('less');
    await fleet.advance(60);
    expect(fleet.with('less')).toEqual(usable);
    next.kill();

    fleet.lead(defaultPolicy);
    await fleet.advance(3_600);

    expect(fleet.with('less')).toEqual(usable);
    expect(fleet.shown()).toMatchObject([{ phase: 'waiting', deletions: others.length }]);
    fleet.approve(change);
    await fleet.advance(10);
    expect(fleet.with('less')).toEqual(ids);
  });

  test('counts deletions over all projects of a commit, and deletions below the limit delay nothing', async () => {
    const { fleet } = await fleetAtRest(defaultPolicy);
    fleet.deletions = 2;
    fleet.push('five', ids.slice(0, 5));
    await fleet.advance(5);
    // Five projects that may delete two each cannot delete more than ten.
    expect([fleet.with('five').length, fleet.planned]).toEqual([5, 0]);
    fleet.push('six', ids.slice(0, 6));
    await fleet.advance(60);
    expect([fleet.with('six'), fleet.planned]).toEqual([[], 6]);
    fleet.deletions = 0;
    fleet.push('six others', ids.slice(10, 16));
    fleet.push('five', ids.slice(0, 5));
    fleet.push('first', [6]);
    await fleet.advance(60);
    expect(fleet.with('six others')).toEqual(ids.slice(10, 16));
    expect(fleet.with('six')).toEqual([]);
  });

  test('a leader with another fleet file keeps the waves of a running rollout', async () => {
    const { fleet, leader } = await fleetAtRest();
    fleet.push('new');
    await fleet.advance(60);
    expect(fleet.with('new')).toEqual(canaries);
    leader.kill();

    fleet.lead(defaultPolicy);
    await fleet.advance(60);

    expect(fleet.with('new')).toEqual(canaries);
    expect(fleet.phases()).toEqual(['commit-2 running 1']);
  });

  test('commits to other projects delay no wave, and each wave continues after a restart or a change of the leader', async () => {
    const { fleet, leader } = await fleetAtRest();
    let alive = leader;
    fleet.push('template');
    await fleet.advance(60);
    // One commit every two minutes, each to a project that waits for its wave, or is in one.
    for (let at = 0; at < 20; at += 1) {
      fleet.push(`template, edit ${at}`, [ids[at * 47] as number]);
      await fleet.advance(120);
      if (at === 2 || at === 9) {
        alive.kill();
        alive = fleet.lead();
      }
    }
    // Two waves of ten minutes each, and each leader begins to watch anew.
    const edited = Array.from({ length: 20 }, (_, at) => ids[at * 47] as number);
    const others = ids.filter((id) => !edited.includes(id));
    expect(others.filter((id) => !fleet.done.get(id)?.includes('template')).length).toBe(0);
    await fleet.advance(3_600);
    for (const [at, id] of edited.entries())
      expect(fleet.done.get(id)?.at(-1), `project ${id}`).toBe(`template, edit ${at}`);
    expect(fleet.phases()).toEqual([]);
    expect(fleet.notices).toEqual([]);
  });

  test('a stream of commits to all projects reaches the last wave, after the canaries, under many leaders', async () => {
    const { fleet, leader } = await fleetAtRest();
    let alive = leader;
    const arrived: number[] = [];
    const last = ids.findLast((id) => !canaries.includes(id)) as number;
    for (let at = 0; at < 60; at += 1) {
      fleet.push(`commit ${at}`);
      await fleet.advance(300);
      if (at % 7 === 6) {
        alive.kill();
        alive = fleet.lead();
      }
      const now = fleet.done.get(last)?.at(-1);
      if (now !== undefined && now !== 'first') arrived.push(at - Number(now.slice(7)));
    }
    // Every commit is five minutes later than the last one: one hour until it is not superseded any more, and the waves.
    expect(arrived.length).toBeGreaterThan(60 - 24);
    expect(fleet.with('commit 0')).toEqual(canaries);
    for (const text of new Set(fleet.done.get(last)?.slice(1)))
      expect(
        canaries.every((id) => fleet.done.get(id)?.includes(text)),
        text,
      ).toBe(true);
    await fleet.advance(3 * 3_600);
    expect(fleet.with('commit 59')).toEqual(ids);
  });

  test('projects in an older rollout get an approved commit later, without another approval', async () => {
    const { fleet } = await fleetAtRest({ ...policy, supersedeMs: 60_000 });
    fleet.push('one');
    await fleet.advance(120);
    fleet.deletions = 1;
    fleet.push('two');
    await fleet.advance(60);
    expect(fleet.phases()).toEqual(['commit-2 running 1', 'commit-3 waiting 0']);
    fleet.approve('commit-3');
    await fleet.advance(5_000);
    expect(fleet.phases()).toEqual([]);
    expect(fleet.with('two')).toEqual(ids);
    expect(fleet.notices).toHaveLength(1);
  });

  test('a newer commit that restores the specs in force stops the older commit at once', async () => {
    const { fleet } = await fleetAtRest();
    fleet.push('template');
    await fleet.advance(800);
    expect(fleet.with('template')).toHaveLength(100);
    const others = ids.filter((id) => !fleet.with('template').includes(id));
    fleet.push('first', others);
    await fleet.advance(3 * 3_600);
    expect(fleet.with('template')).toHaveLength(100);
    expect(fleet.phases()).toEqual([]);
  });

  test('a failure outlives a commit that reverts all but the failed canary, until the canary converges', async () => {
    const { fleet, leader } = await fleetWithFailure();
    fleet.push('first', others);
    await fleet.advance(600);
    expect(fleet.phases()).toEqual(['commit-2 stopped 1']);
    leader.kill();
    fleet.lead();
    fleet.push('bad', others);
    await fleet.advance(3 * 3_600);
    expect(fleet.with('bad')).toEqual(canaries);
    expect(fleet.phases()).toEqual(['commit-2 stopped 1', 'commit-4 queued 0']);
    expect(fleet.notices).toHaveLength(1);

    // A correction of the canaries alone is put in force at once, and ends the failure.
    fleet.push('corrected', canaries);
    await fleet.advance(30);
    expect(fleet.with('corrected')).toEqual(canaries);
    expect(fleet.with('bad')).toEqual(canaries);
    fleet.push('corrected', others);
    await fleet.advance(2 * 3_600);
    expect(fleet.with('corrected')).toEqual(ids);
    expect(fleet.with('bad')).toEqual(canaries);
  });

  test('a failure of a reverted commit ends when an operator approves the commit', async () => {
    const { fleet } = await fleetWithFailure();
    fleet.push('first', others);
    await fleet.advance(60);
    fleet.approve('commit-2');
    await fleet.advance(10);
    expect(fleet.phases()).toEqual([]);
    expect(fleet.with('bad')).toEqual(canaries);
  });

  test('a stopped commit continues once its canaries have converged and stayed converged', async () => {
    const { fleet } = await fleetAtRest();
    fleet.push('good');
    await fleet.advance(60);
    fleet.reconcile(404, 'failing');
    await fleet.advance(600);
    expect(fleet.phases()).toEqual(['commit-2 stopped 1']);
    fleet.reconcile(404, 'converged');
    await fleet.advance(500);
    expect(fleet.with('good')).toEqual(canaries);
    await fleet.advance(3_600);
    expect(fleet.with('good')).toEqual(ids);
  });

  test('the approval of a queued commit ends the rollout before, and the waves begin again', async () => {
    const { fleet } = await fleetAtRest();
    fleet.push('template');
    await fleet.advance(800);
    const change = fleet.push('urgent', fleet.with('template'));
    await fleet.advance(60);
    expect(fleet.phases()).toEqual(['commit-2 running 2', `${change} queued 0`]);
    fleet.approve(change);
    await fleet.advance(10);
    expect(fleet.with('urgent')).toEqual(canaries);
    await fleet.advance(3_600);
    expect(fleet.with('urgent')).toHaveLength(100);
    expect(fleet.phases()).toEqual([]);
  });
});
