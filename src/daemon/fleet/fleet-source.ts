import { LaterReleaseError, StateError } from '../../core/errors.ts';
import { type FleetQueue, type HeardHint, type Trigger, urgencies } from '../../core/fleet.ts';
import type { DaemonDeps } from '../ports.ts';
import { abortedWith } from '../scheduling/wake.ts';
import { holdersAfter } from '../sources/claims.ts';
import type { Intake } from '../sources/intake.ts';
import { type Snapshot, SourceError, type SpecSource, vanished } from '../sources/source.ts';
import type { Board } from './board.ts';
import { UnfitError } from './fitness.ts';
import type { Releases } from './releases.ts';
import { usable } from './rollout.ts';

/** Time between two readings of a board that could not be read. Real ms. */
const againMs = 2_000;
/** Time after which a follower takes in the commit and the rollouts in force again. Real ms. */
const followMs = 5_000;
/** Time after which the leader reads the hints again. Real ms. */
const hintsMs = 1_000;
/** Time between two checks for the first specs. Real ms. */
const firstMs = 200;

export interface FleetSourceOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  /** The source that the leader reads. */
  readonly source: SpecSource;
  readonly board: Board;
  readonly queue: Pick<FleetQueue, 'add' | 'ask' | 'hints'>;
  /** How much of a change is put in force, and when. */
  readonly releases: Releases;
  readonly intake: Intake;
  /** A project without a trigger is reconciled after this time, in ms of real time. */
  readonly intervalMs: number;
}

/** The source of a fleet. The specs are for the replica that leads: it publishes them. The others get the commit in force. */
export function fleetSource(options: FleetSourceOptions) {
  const { source, board, queue, releases, intake, clock, log } = options;
  const { name } = source;
  /** The last reading of the board failed. Only another reading can show that the board is readable again. */
  let unread = false;
  let hint: (trigger: Trigger) => void = () => {};
  /** The files that this process has read. A file that is gone keeps its last content in force until another process leads. */
  const seen = new Set<string>();
  /** Approvals that no reading has taken in yet. A leader that ends before leaves them to the next one. */
  let approvals: readonly HeardHint[] = [];
  /** This replica has no token, so the specs that it would publish are none. */
  let isBlind = false;
  /** A replica of a later release has updated the tables, and has to lead. */
  let outgrown: LaterReleaseError | undefined;

  async function read(signal: AbortSignal): Promise<Snapshot> {
    try {
      const snapshot = board.leads() ? await readAsLeader(signal) : await readAsFollower(signal);
      unread = false;
      return snapshot;
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      if (error instanceof LaterReleaseError) outgrown = error;
      unread = true;
      throw new SourceError(error.message);
    }
  }

  async function readAsFollower(signal: AbortSignal): Promise<Snapshot> {
    // No replica has led yet: this happens for a moment at the first start of a fleet.
    while (!(await board.refresh())) {
      if (board.leads()) return readAsLeader(signal);
      await clock.sleep(firstMs, signal);
    }
    return { specs: [], ...(board.commit === undefined ? {} : { commit: board.commit }) };
  }

  async function readAsLeader(signal: AbortSignal): Promise<Snapshot> {
    // Judge the change by the specs that are in force for all replicas, published by this leader or an earlier one. The
    // bare repository of this replica may have no earlier commit, or an older one.
    const before = await board.published();
    const snapshot = withVanished(await source.read(signal, before?.commit), before);
    const taken = await intake.take(snapshot);
    isBlind = taken.length > 0 && taken.every((each) => 'problem' in each && each.isTransient === true);
    if (isBlind)
      throw new StateError('this replica can use none of the specs, for example without their tokens');
    const approved = approvals;
    const holders = holdersAfter(taken, before?.holders ?? {});
    const shared = await releases.next({ ...snapshot, holders }, taken, before);
    if (await board.publish(usable(shared, before, taken)))
      releases.report(before?.rollouts, shared.rollouts);
    for (const { done } of approved) await done();
    approvals = approvals.filter((each) => !approved.includes(each));
    const { projects, done } = await board.unasked();
    await queue.ask(projects.map(String), 'fleet', urgencies.edit);
    await done();
    return { ...snapshot, holders };
  }

  /** A deleted file is no request to delete resources, nor to leave its project alone. */
  function withVanished(snapshot: Snapshot, before: Snapshot | undefined): Snapshot {
    const names = new Set(snapshot.specs.map((spec) => spec.name));
    for (const each of names) seen.add(each);
    const gone = (before?.specs ?? [])
      .filter(({ name }) => seen.has(name) && !names.has(name))
      .map(({ name }) => ({ name, problem: vanished(name) }));
    return { ...snapshot, specs: [...snapshot.specs, ...gone] };
  }

  async function watch(hintOf: (trigger: Trigger) => void, signal: AbortSignal): Promise<void> {
    hint = hintOf;
    for (;;) {
      await clock.sleep(unread ? againMs : followMs, signal);
      if (unread || !board.leads()) hint('fleet');
    }
  }

  /** Leads, until the signal aborts or the lead is lost. Rejects if the fleet's state cannot be owned. */
  async function lead(over: AbortSignal): Promise<void> {
    await board.lead();
    if (!board.leads()) throw new StateError('the lead of the fleet was lost at once');
    log.info({ source: name }, 'leadership acquired');
    [isBlind, approvals] = [false, []];
    const { own: end, release } = abortedWith(over);
    let watching: Promise<unknown> | undefined;
    try {
      // A key may have lost its job, for example with a database that was restored.
      await queue.add((await board.projects()).map(String), options.intervalMs);
      watching = Promise.all([
        source.watch(hint, end.signal),
        releases.watch(() => hint('fleet'), end.signal),
        hear(end.signal),
      ]);
      hint('start');
      await watching;
    } catch (error) {
      if (!end.signal.aborted) throw error;
    } finally {
      release();
      end.abort(new Error('this replica is no longer the leader'));
      await watching?.catch(() => undefined);
      await board.yieldLead();
      log.warn({ source: name }, 'leadership ended');
    }
  }

  /** Until the signal aborts, or the lead is lost with its connection. */
  async function hear(signal: AbortSignal): Promise<void> {
    for (;;) {
      await clock.sleep(hintsMs, signal);
      if (!board.leads()) throw new StateError('the lead of the fleet was lost');
      if (outgrown !== undefined) throw outgrown;
      if (isBlind) throw new UnfitError('it can use none of the specs, for example without their tokens');
      const heard = await queue.hints().catch((error: unknown) => {
        log.debug({ error }, 'hints not read');
        return [];
      });
      for (const each of heard) await take(each);
    }
  }

  async function take(heard: HeardHint): Promise<void> {
    if (heard.hint.of === 'approve') {
      approvals = [...approvals, heard];
      return releases.approve(heard.hint.change);
    }
    if (heard.hint.of === 'source') hint(heard.hint.trigger);
    else await queue.ask((await board.projects()).map(String), heard.hint.trigger, urgencies.all);
    await heard.done();
  }

  return { name, read, watch, lead };
}
