import type { Clock } from '../../core/clock.ts';
import { StateError } from '../../core/errors.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';
import { createWake } from '../scheduling/wake.ts';
import { holdersAfter } from '../sources/claims.ts';
import type { Intake } from '../sources/intake.ts';
import { SourceError, type SpecSource } from '../sources/source.ts';
import type { Board } from './board.ts';
import { type Calls, triggerOf } from './calls.ts';
import type { Releases } from './releases.ts';
import { usable } from './rollout.ts';

/** Time between two readings of a board that could not be read. Real ms. */
const againMs = 2_000;
/** Time between two readings of the board if no call arrives: a call may be lost. Real ms. */
const refreshMs = 30_000;
/** Time between two attempts to become the leader, and between two checks whether this replica still leads. Real ms. */
const leadMs = 5_000;
/** Time between two checks for the first specs. Real ms. */
const firstMs = 200;

export interface FleetSourceOptions {
  /** The source that the leader reads. */
  readonly source: SpecSource;
  readonly board: Board;
  readonly calls: Calls;
  /** How much of a change is put in force, and when. */
  readonly releases: Releases;
  /** Whether this replica should become the leader if no replica leads. */
  readonly mayLead: () => boolean;
  readonly intake: Intake;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

/** The specs of a fleet: from the source for the replica that leads, from the board for the others. */
export function fleetSource(options: FleetSourceOptions): SpecSource {
  const { source, board, calls, releases, mayLead, intake, clock, log } = options;
  const { name } = source;
  /** The last reading of the board failed. Only another reading can show that the board is readable again. */
  let unread = false;

  async function read(signal: AbortSignal) {
    try {
      const snapshot = await readFrom(signal);
      unread = false;
      return snapshot;
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      unread = true;
      await board.stillLeads();
      throw new SourceError(error.message);
    }
  }

  async function readFrom(signal: AbortSignal) {
    while (!board.leads()) {
      const snapshot = await board.snapshot();
      if (snapshot !== undefined) return snapshot;
      // No replica has led yet: this happens for a moment at the first start of a fleet.
      await clock.sleep(firstMs, signal);
    }
    // Judge the change by the specs that are in force for all replicas, published by this leader or an earlier one. The
    // bare repository of this replica may have no earlier commit, or an older one.
    const before = await board.published();
    const snapshot = await source.read(signal, before?.commit);
    const taken = await intake.take(snapshot);
    const holders = holdersAfter(taken, before?.holders ?? {});
    const shared = await releases.next({ ...snapshot, holders }, taken, before);
    if (await board.publish(usable(shared, before, taken))) {
      calls.send({ of: 'specs' });
      releases.tell(before?.rollouts, shared.rollouts);
    }
    return shared;
  }

  async function watch(hint: (trigger: Trigger) => void, signal: AbortSignal): Promise<void> {
    await Promise.all([follow(hint, signal), leadWhenFree(hint, signal)]);
  }

  async function follow(hint: (trigger: Trigger) => void, signal: AbortSignal): Promise<void> {
    const wake = createWake();
    const end = calls.listen(({ of }) => of === 'specs' && wake.nudge('fleet'));
    signal.addEventListener('abort', end, { once: true });
    for (;;) {
      await wake.sleep(clock, unread ? againMs : refreshMs, signal);
      wake.take();
      // If the board cannot be reached, the next reading reports the error.
      if (unread || (await board.hasMoved().catch(() => true))) hint('fleet');
    }
  }

  async function leadWhenFree(hint: (trigger: Trigger) => void, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (mayLead() && (await triesToLead())) await leadOn(hint, signal);
      await clock.sleep(leadMs, signal);
    }
  }

  async function triesToLead(): Promise<boolean> {
    try {
      await board.lead();
      if (board.leads()) return true;
      // Without a confirmed heartbeat the publications of this replica do not count. The replica gives up the lead, and
      // reads the source as a follower.
      await board.yieldLead();
      return false;
    } catch (error) {
      log.debug({ error }, 'leadership not acquired');
      return false;
    }
  }

  /** Until the signal aborts or the lead is lost. */
  async function leadOn(hint: (trigger: Trigger) => void, signal: AbortSignal): Promise<void> {
    log.info({ source: name }, 'leadership acquired');
    const over = new AbortController();
    const end = () => over.abort(new Error('this replica is no longer the leader'));
    signal.addEventListener('abort', end, { once: true });
    const endHints = calls.listen((call) => call.of === 'source' && hint(triggerOf(call)));
    const watching = Promise.all([
      source.watch(hint, over.signal),
      releases.watch(() => hint('fleet'), over.signal),
    ]).catch((error: unknown) => {
      if (!over.signal.aborted) throw error;
    });
    try {
      hint('start');
      do await Promise.race([clock.sleep(leadMs, over.signal), watching]);
      while (await board.stillLeads());
      log.warn({ source: name }, 'leadership lost');
    } finally {
      end();
      signal.removeEventListener('abort', end);
      endHints();
      await watching;
    }
  }

  return { name, read, watch };
}
