import type { Claim } from '../core/claims.ts';
import { type Desired, type DesiredResource, withoutExpired } from '../core/desired.ts';
import type { Diagnostic } from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Observations } from '../core/kind.ts';
import type { Blocked, Plan, Verb } from '../core/plan.ts';
import type { PriceList } from '../core/profile.ts';
import type { RequestCounts, Step } from '../core/progress.ts';
import type { Binding, Intent, StateInfo } from '../core/state.ts';
import type { HeldClass } from '../engine/intents/pauses.ts';
import type { Condition } from './condition.ts';

/** The facts about a project at one moment: the input of {@link viewOf}. Times are wall ms of the project's clock. */
export interface ProjectFacts {
  readonly id: number | null;
  /** The flags that select this project in a command. */
  readonly flags?: string;
  /** The state that a command has read. */
  readonly place?: StatePlace;
  /** The content of the state. Absent until the state is open. */
  readonly known?: KnownFacts | undefined;
  readonly offer?: Offer | undefined;
  /** The reasons why the newest spec cannot be used. Empty if it can be used. */
  readonly problem?: readonly Diagnostic[];
  readonly problemSince?: number | undefined;
  readonly plan?: Plan | undefined;
  /** Digest of the plan that waits for the operator. */
  readonly awaiting?: string | undefined;
  /** The last reads of the API. */
  readonly world?: Observations | undefined;
  readonly refreshedAt?: number | undefined;
  /** The reason why the API was not read. */
  readonly offline?: string;
  readonly prices?: PriceList | undefined;
  readonly condition?: Condition;
  readonly conditionSince?: number | undefined;
  /** The time since which the project has differed from the spec. */
  readonly differsSince?: number | undefined;
  /** When each exposed server was first seen exposed. */
  readonly exposedSince?: ReadonlyMap<string, number>;
  /** When an address was first seen without a server, by the id of the address. */
  readonly idleSince?: ReadonlyMap<number, number>;
  /** The operations that this process carries out now. */
  readonly inFlight?: readonly RunningOperation[];
  readonly daemon?: DaemonFacts;
}

export interface StatePlace {
  readonly location: string;
  readonly exists: boolean;
  /** Time of the last line of the journal. */
  readonly changedAt: number | undefined;
}

export interface KnownFacts {
  /** The project's clock. Absent without the API: the recorded times may come from a faster clock. */
  readonly now: number | undefined;
  readonly info?: StateInfo;
  readonly bindings: readonly Binding[];
  /** Open ones. */
  readonly intents: readonly Intent[];
  readonly claims: readonly Claim[];
  /** The last writes, newest first. */
  readonly history?: readonly Intent[];
  /** The blocks of the last run that no later write has ended. They count only without a plan. */
  readonly findings?: readonly Blocked[];
}

/** The desired state of a project, and its origin. */
export interface Offer {
  readonly desired: Desired;
  readonly files: readonly string[];
  readonly commit: Commit | undefined;
}

/** The origin of a spec in Git. */
export interface Commit {
  readonly id: string;
  /** The configured name: `main`. */
  readonly ref: string;
  /** The full name at the remote: `refs/heads/main`. */
  readonly fullRef: string;
  /** First line of its message. */
  readonly subject: string;
  readonly author: string;
  /** The page of the commit at its forge, if the address of the repository shows it. */
  readonly url?: string;
  /** When it was committed, wall ms. */
  readonly at: number;
}

/** An operation that is being carried out, with its current step. */
export interface RunningOperation {
  readonly key: ResourceKey;
  readonly verb: Verb;
  readonly step: Step;
  readonly detail: string;
  readonly since: number;
  /** The usual end of the step. */
  readonly until?: number;
  /** When vdcsync stops waiting. */
  readonly deadline?: number;
}

/** The process that keeps the project equal to its spec. */
export interface DaemonFacts {
  readonly mode: 'correct' | 'observe';
  readonly intervalMs: number;
  /** The error that ended the last reconciliation. */
  readonly error: unknown;
  /** The owner of the state that this process waits for. */
  readonly waitingFor: string | undefined;
  readonly reconciling: boolean;
  /** Their number, and the last ones, newest first. */
  readonly reconciliations: number;
  readonly lastReconciliations: readonly ReconciliationFacts[];
  readonly nextReconciliationAt: number | undefined;
  readonly pauses: readonly HeldClass[];
  /** Absent until the state is open. */
  readonly client: ClientFacts | undefined;
}

export interface ReconciliationFacts {
  readonly triggers: readonly string[];
  readonly startedAt: number;
  readonly endedAt: number;
  readonly outcome: string;
  /** The number of operations that ended, with success or without. */
  readonly operations: number;
  readonly commit: string | undefined;
}

export interface ClientFacts {
  readonly limits: { readonly windowMs: number; readonly reads: number; readonly writes: number };
  readonly used: { readonly reads: number; readonly writes: number };
  readonly counts: RequestCounts;
  /** Age in ms of the oldest answer about a server that this data is based on. */
  readonly oldestReadMs: number;
  readonly backOff: readonly BackOff[];
}

/** A key that is paused for a while, with the reason. */
export interface BackOff {
  readonly key: ResourceKey;
  readonly failures: number;
  readonly until: number;
  readonly code: string;
  readonly reason: string;
}

const nothing: KnownFacts = { now: undefined, bindings: [], intents: [], claims: [] };

export function knownIn({ known }: Pick<ProjectFacts, 'known'>): KnownFacts {
  return known ?? nothing;
}

/** The entries of the spec that had not expired when the plan was made. */
export function entriesIn({ offer, plan }: Pick<ProjectFacts, 'offer' | 'plan'>): readonly DesiredResource[] {
  if (offer === undefined || plan === undefined) return offer?.desired.resources ?? [];
  return withoutExpired(offer.desired, Date.parse(plan.observed_at)).resources;
}

/** A moment in the public JSON. */
export function time(ms: number): string {
  return new Date(ms).toISOString();
}

export function timeOrNull(ms: number | null | undefined): string | null {
  return ms === undefined || ms === null || !Number.isFinite(ms) ? null : time(ms);
}
