import { backOff } from '../../core/clock.ts';
import type { Trigger } from '../../core/fleet.ts';
import { linesText } from '../../core/text.ts';
import type { Commit } from '../../view/facts.ts';
import type { Notification } from '../notifications/notification.ts';
import type { DaemonDeps } from '../ports.ts';
import { Wake } from '../scheduling/wake.ts';
import { holdersAfter, refuseOthers } from './claims.ts';
import type { Intake, Taken } from './intake.ts';
import { type Holders, SourceError, type SpecSource } from './source.ts';

/** A source that cannot be read is tried again after 2, 4, 8 … s, at most 5 min. */
const retry = { firstMs: 2_000, mostMs: 5 * 60_000 } as const;
/** Time between two readings without any hint, in ms of real time. A source has its own, shorter interval. */
const idleMs = 3_600_000;
/** Time after a problem that may end without a change of the specs, such as a missing token file. Real ms. */
const againMs = 60_000;

export interface SpecReaderOptions {
  readonly deps: DaemonDeps;
  readonly source: SpecSource;
  readonly intake: Intake;
  readonly deliver: (taken: readonly Taken[], holders: Holders, trigger: Trigger) => void;
  readonly onNotification: (
    notification: Omit<Notification & { readonly event: 'source' }, 'project'>,
  ) => void;
  readonly onChange: () => void;
}

/** The state of the source. Wall times in real ms. */
export interface SourceState {
  readonly name: string;
  readonly commit: Commit | undefined;
  readonly readAt: number | undefined;
  readonly error: string | undefined;
  readonly orphans: readonly Orphan[];
}

/** A spec that cannot be used and is in force nowhere. */
export type Orphan = Extract<Taken, { readonly problem: unknown }>;

/** Reads the source at each hint, one reading at a time, and passes its specs on. */
export class SpecReader {
  readonly #options: SpecReaderOptions;
  readonly #wake = new Wake();
  #state: SourceState;
  #holders: Holders = {};
  #hasTransient = false;

  constructor(options: SpecReaderOptions) {
    this.#options = options;
    this.#state = {
      ...{ name: options.source.name, commit: undefined },
      ...{ readAt: undefined, error: undefined, orphans: [] },
    };
  }

  hint(trigger: Trigger): void {
    this.#wake.nudge(trigger);
  }

  state(): SourceState {
    return this.#state;
  }

  /** Sets the specs without a project. The caller reports each of them once. */
  setOrphans(orphans: SourceState['orphans']): void {
    this.#state = { ...this.#state, orphans };
  }

  /** Releases a dropped project: its file may describe another project from now on. */
  free(project: number): void {
    this.#holders = Object.fromEntries(
      Object.entries(this.#holders).filter(([id]) => id !== String(project)),
    );
    this.hint('file');
  }

  async run(stop: AbortSignal): Promise<void> {
    const { deps, source } = this.#options;
    const watching = source
      .watch((trigger) => this.hint(trigger), stop)
      .catch((error: unknown) => {
        if (!stop.aborted) throw error;
      });
    const reading = this.#read(stop).catch((error: unknown) => {
      if (!stop.aborted) throw error;
    });
    deps.log.info({ source: source.name }, 'source watch started');
    await Promise.all([watching, reading]);
  }

  async #read(stop: AbortSignal): Promise<void> {
    const { deps, source } = this.#options;
    this.#wake.nudge('start');
    let failures = 0;
    for (;;) {
      stop.throwIfAborted();
      const [trigger = 'timer'] = this.#wake.take();
      const failed = !(await this.#readOnce(trigger, stop));
      failures = failed ? failures + 1 : 0;
      const restMs = failed
        ? backOff(retry, failures - 1, deps.random.next())
        : this.#hasTransient
          ? againMs
          : idleMs;
      await this.#wake.sleep(deps.clock, restMs, stop);
      if (failed && !this.#wake.pending())
        deps.log.debug({ source: source.name }, 'retrying to read the source');
    }
  }

  /** Returns whether the source could be read. */
  async #readOnce(trigger: Trigger, stop: AbortSignal): Promise<boolean> {
    const { deps, source, intake, deliver, onNotification, onChange } = this.#options;
    try {
      const snapshot = await source.read(stop);
      const { commit } = snapshot;
      if (commit !== undefined && commit.id !== this.#state.commit?.id) {
        deps.log.info({ source: source.name, commit: commit.id, ref: commit.ref }, 'new commit found');
      }
      if (this.#state.error !== undefined) {
        deps.log.info({ source: source.name }, 'source readable again');
        onNotification({ event: 'source', detail: 'the source can be read again' });
      }
      this.#state = { ...this.#state, commit, readAt: deps.clock.now(), error: undefined };
      const taken = await intake.take(snapshot);
      stop.throwIfAborted();
      this.#hasTransient = taken.some((each) => 'problem' in each && each.isTransient === true);
      this.#holders = holdersAfter(taken, snapshot.holders ?? this.#holders);
      deliver(refuseOthers(taken, this.#holders), this.#holders, trigger);
      return true;
    } catch (error) {
      if (stop.aborted || !(error instanceof SourceError)) throw error;
      if (this.#state.error !== error.message) {
        deps.log.error({ source: source.name, reason: error.message }, 'source read failed');
        onNotification({
          event: 'source',
          detail: linesText([`the source cannot be read: ${error.message}`]),
        });
      }
      this.#state = { ...this.#state, error: error.message };
      return false;
    } finally {
      onChange();
    }
  }
}
