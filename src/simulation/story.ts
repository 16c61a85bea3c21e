import type { FaultAction, FaultRule } from '../emulator/faults.ts';
import type { Mutation } from '../emulator/mutations.ts';
import type { Readings } from '../emulator/readings.ts';
import type { Durations } from '../emulator/world.ts';
import type { Source } from '../spec/load.ts';
import type { TokenName } from './tokens.ts';

/**
 * Everything that a scenario does not leave to the code under test, as plain JSON: the
 * same story gives the same trace, and a part taken out of it gives a shorter story.
 */
export interface Story {
  readonly seed: number;
  readonly state: 'memory' | 'sqlite';
  readonly readings: Partial<Readings>;
  /** How long work takes, where it is slower than usual. */
  readonly durations?: Partial<Durations>;
  /** The operations that only a profile enables are known to both sides. */
  readonly profile?: true;
  /** The machine's tokens, where it has several. */
  readonly tokens?: readonly TokenName[];
  /** The spec at the start, and after each edit. */
  readonly specs: readonly SpecModel[];
  readonly faults: readonly FaultRule[];
  readonly incidents: readonly Incident[];
  /** The actions of operators, one after the other: {@link StoryParts.actions} plays them. */
  readonly actions?: readonly object[];
  /** Time between two runs, in ms, one after the other; the last one is used from then on. */
  readonly pausesMs: readonly number[];
  /** Before each run that no disturbance meets, a dry run shows the operations that the run will do. */
  readonly shown?: true;
  /** The spec is edited right after the first approval, so that the approved plan is out of date. */
  readonly editedOnceApproved?: true;
  /** Once converged, and `afterMs` later, the last `back` changes of the state are undone. Then all must converge again. */
  readonly cut?: { readonly back: number; readonly afterMs: number };
}

/** The spec as JSON, which is YAML too. */
export interface SpecModel {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly networks: Entries;
  readonly ips: Entries;
  readonly isos: Entries;
  readonly servers: Entries;
  readonly server_images?: Entries;
  /** The name of the spec among the specs of its project. */
  readonly scope?: string;
  /** The spec below an overlay, which contains all changes since. {@link StoryParts.sources} splits it. */
  readonly under?: Omit<SpecModel, 'under'>;
}

export type Entries = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Something that happens at one moment: the `nth` time (from 1) that a process crosses a boundary so named. */
export interface Incident {
  readonly at: { readonly boundary: string; readonly nth: number };
  readonly what: Disturbance;
}

export type Disturbance =
  /** kill -9: nothing that the process has under way ever acts again. */
  | { readonly do: 'crash' }
  /** SIGTERM, once and twice. */
  | { readonly do: 'stop' | 'halt' }
  /** Changes of the state fail; `durable`: they are on disk, and the failure is a lie. */
  | { readonly do: 'disk_full'; readonly writes: number; readonly durable: boolean }
  /** With the process: a new machine, or a backup put back. `back` counts runs. */
  | { readonly do: 'lose_state' }
  | { readonly do: 'restore_state'; readonly back: number }
  /** The same, as it was `back` durable changes ago. */
  | { readonly do: 'cut_state'; readonly back: number }
  /** With the process: its machine comes back with another wall time. */
  | { readonly do: 'set_clock'; readonly ms: number }
  /**
   * The process is suspended for `ms`, and another one takes its state. `knows`: when it continues, its clocks show that
   * its lease has ended. Otherwise only the state refuses its writes.
   */
  | { readonly do: 'replace'; readonly ms: number; readonly knows: boolean }
  /** The machine is suspended: wall time passes everywhere, and no timer of the process fires. */
  | { readonly do: 'suspend'; readonly ms: number }
  /** From now on and for `ms`, the service treats every request like this. */
  | { readonly do: 'outage'; readonly ms: number; readonly action: FaultAction }
  /** The spec is edited: the process is stopped, and the next run has the spec of that number. */
  | { readonly do: 'edit'; readonly spec: number }
  /** The token's source gives another token, until the faults stop or `runs` runs have begun. */
  | { readonly do: 'token'; readonly to: 'revoked' | 'foreign' | 'read' | 'member'; readonly runs: number }
  /** A change by another user of the project. */
  | { readonly do: 'mutate'; readonly mutation: Mutation }
  /** The same for the resource at that place of the list; no effect if the list is empty. */
  | { readonly do: 'remove'; readonly sort: 'server' | 'ip' | 'network' | 'iso'; readonly place: number }
  | { readonly do: 'open_firewall'; readonly place: number }
  /** Another machine with the same spec starts: with a state of its own, and this or its own token. */
  | { readonly do: 'second'; readonly token: 'same' | 'member' };

/** Polls are this far apart where the limit of reads is used up. */
const longestPollMs = 120_000;

/**
 * Without a task in the answer, or with a task that is forgotten before the next poll, no client learns of a failure
 * that no read shows. @assumption A10 A34
 */
export function failuresAreReported({ readings, faults }: Story): boolean {
  const { omitTaskField, taskRetentionMs = longestPollMs } = readings;
  return (
    omitTaskField !== true &&
    taskRetentionMs >= longestPollMs &&
    !faults.some(({ then }) => then.do === 'omit_task')
  );
}

/** The spec as one file, without an overlay. */
export function plainSources(model: SpecModel, projectId: number): readonly Source[] {
  return [{ file: 'vdcsync.yaml', text: specText(model, projectId) }];
}

export function specText(model: SpecModel, projectId: number): string {
  return JSON.stringify(plainFile(model, projectId));
}

export function plainFile(
  { scope, under: _under, ...model }: SpecModel,
  projectId: number,
): Readonly<Record<string, unknown>> {
  const project = { id: projectId, ...(scope === undefined ? {} : { scope }) };
  return { version: 1, project, ...model };
}
