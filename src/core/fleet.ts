import type { Json } from './json.ts';

/** Why a project or the source is read again. */
export type Trigger =
  | 'start'
  | 'file'
  | 'git'
  | 'webhook'
  | 'timer'
  | 'refresh'
  | 'back-off'
  | 'token'
  | 'command'
  | 'fleet'
  | 'signal';

/** The key of the job of the source: the replica that has this job leads the fleet. Every other key is a project. */
export const sourceKey = 'source';

/** A job that this replica has: one turn of a project, or the lead. */
export interface JobClaim {
  readonly id: string;
  /** A later attempt of the same job takes it from this one. */
  readonly attempt: number;
  readonly key: string;
  readonly trigger: Trigger;
  readonly urgency: number;
  readonly tenant: string | undefined;
  /** How long the job was due before this replica took it, in ms. */
  readonly lateMs: number;
  /** When this replica took the job. Wall ms of the database. */
  readonly takenAt: number;
}

/**
 * - `lead`: the job of the source
 * - `begun`: a turn that its replica could not end. Its writes may be in flight
 * - `edit`: another spec, or the command of an operator
 * - `all`: an operator asks for every project
 * - `time`: the interval is over
 */
export const urgencies = { lead: 100, begun: 30, edit: 20, all: 10, time: 0 } as const;

/** A request of one replica to the replica that leads. */
export type Hint =
  /** The source may have changed. */
  | { readonly of: 'source'; readonly trigger: Trigger }
  /** Every project must be reconciled. */
  | { readonly of: 'projects'; readonly trigger: Trigger }
  /** The operator approves a change that waits or has stopped. */
  | { readonly of: 'approve'; readonly change: string };

/** A hint that is not done yet. If the leader ends before, the next leader takes the hint. */
export interface HeardHint {
  readonly hint: Hint;
  readonly done: () => Promise<void>;
}

/** Which jobs to take. */
export interface Taking {
  /** Jobs of less urgency wait. */
  readonly leastUrgency: number;
  /** Tenants that have as many places of this replica as one tenant may have. */
  readonly fullTenants: readonly string[];
}

/** The turn after this one. */
export interface NextReconciliation {
  readonly trigger: Trigger;
  readonly afterMs: number;
  readonly urgency: number;
}

/** The turn that continues one which its replica could not end. */
export function continued({ trigger, urgency }: JobClaim): NextReconciliation {
  return { trigger, afterMs: 0, urgency: Math.max(urgency, urgencies.begun) };
}

/**
 * The jobs of a fleet, in the shared database. A key has at most one job in hand and one that waits. A replica that stops
 * confirming its jobs loses them to the others.
 */
export interface FleetQueue {
  /** The most urgent jobs that are due, at most this number. They are this replica's from now on. */
  take(most: number, taking: Taking): Promise<readonly JobClaim[]>;
  /** Confirms that this replica works on these jobs. Returns the ids of those that are still its own. */
  confirm(claims: readonly JobClaim[]): Promise<ReadonlySet<string>>;
  /** The turn has ended. Without `next`, the key gets no other job. */
  end(claim: JobClaim, next: NextReconciliation | undefined): Promise<void>;
  /** The turn has failed: it is made again, after 1, 2, 4 … s. */
  fail(claim: JobClaim, reason: string): Promise<void>;
  /** The keys are due now, or as soon as their turn in hand has ended. */
  ask(keys: readonly string[], trigger: Trigger, urgency: number): Promise<void>;
  /**
   * Gives each of the keys a job, due within `withinMs`, if the key has none. The job of a key in hand would take the place
   * of the next turn.
   */
  add(keys: readonly string[], withinMs: number): Promise<void>;
  send(hint: Hint): Promise<void>;
  hints(): Promise<readonly HeardHint[]>;
  /** How many jobs were due and waited at the last check of the monitor. */
  waiting(): Promise<number>;
  close(): Promise<void>;
}

/** One spec as it was published. */
export interface PublishedSpec {
  readonly name: string;
  /** The project of the spec. */
  readonly project: number | null;
  /** A `SpecText` as JSON; `null`: it is gone. */
  readonly body: string | null;
}

/** The spec of a project, with the version and the commit in which it is in force. Spec and commit as JSON. */
export interface PublishedFor {
  readonly version: number;
  readonly body: string;
  readonly commit: string | null;
}

/** The stored form of a spec that a project waits for. */
export interface WaitingSpec {
  readonly project: number;
  readonly rollout: string;
  /** A `SpecText` as JSON. */
  readonly body: string | null;
}

/** A change of the specs that projects wait for. */
export interface WaitingChange {
  readonly put: readonly WaitingSpec[];
  /** Projects that wait no more. */
  readonly gone: readonly number[];
}

/** The storage of a fleet's published specs. Only the owner publishes, and each replica reads the specs of its turns. */
export interface Publications {
  isOwned?(): boolean;
  /** Asks for the last version; `undefined` where nothing was published yet. */
  publication(): Promise<{ readonly version: number; readonly head: Json } | undefined>;
  published(after: number, upTo: number): Promise<readonly PublishedSpec[]>;
  publishedFor(project: number): Promise<PublishedFor | undefined>;
  projects(): Promise<readonly number[]>;
  changed(versions: ReadonlyMap<number, number>): Promise<readonly number[]>;
  /** The version up to which the projects of changed specs were asked to reconcile. Only for the owner. */
  asked(): Promise<number>;
  setAsked(version: number): Promise<void>;
  /** The specs that projects wait for. Only for the owner. */
  waiting(): Promise<readonly WaitingSpec[]>;
  publish(specs: readonly PublishedSpec[], head: Json, waiting: WaitingChange): Promise<number>;
  close(): Promise<void>;
}
