import type { Claim, LiveObject } from './claims.ts';
import type { Json } from './json.ts';
import type { KindName, ResourceKey } from './keys.ts';
import type { Change, Verb } from './plan.ts';
import type { WriteRequest } from './ports.ts';

/** Key ↔ live id: what makes a live resource this file's. */
export interface Binding {
  readonly key: ResourceKey;
  readonly kind: KindName;
  /** The API's id, as text. */
  readonly id: string;
  /** The live id of the server that the resource belongs to; another server's is another resource. */
  readonly parentId?: string;
  /** What tells it from a later resource with the same id: its address, its name and cidr. @assumption A17 */
  readonly identity: Readonly<Record<string, string>>;
  /** The fields as they were last applied, where the API does not show them. */
  readonly applied: Json;
  /** As the file said last: it goes on protecting after the entry has left the file. */
  readonly protect: boolean;
  /** It stays when its server goes: an address with `keep_ip`. */
  readonly keep: boolean;
  /** Why it must not be trusted: what a failed task left behind. */
  readonly tainted?: string;
  /** Keys that the file has renamed to this one. */
  readonly formerKeys?: readonly ResourceKey[];
  /** Wall time in ms. */
  readonly boundAt: number;
}

/**
 * Where a write stands.
 *
 * ```
 * sending ──2xx──▶ accepted ──evidence──▶ closed
 *    │ ▲
 *    │ └─ due ── waiting      (409, 429, refused connection: no effect, same key)
 *    ├─ lost answer ▶ unknown ──key (of a creation), evidence──▶ sending | accepted | waiting | closed
 *    └─ refusal ▶ closed
 * any ──▶ blocked ──resolve──▶ closed
 * ```
 * `sending` found at start means the process died in between: it is `unknown`.
 */
export type IntentPhase = 'sending' | 'waiting' | 'unknown' | 'accepted' | 'blocked' | 'closed';

/**
 * How a closed intent ended. `refused`: the API said no, and nothing happened. `void`: it
 * had no effect and left nothing under its key, so its attempt may be used again.
 */
export type IntentOutcome = 'done' | 'refused' | 'absent' | 'failed' | 'abandoned' | 'void';

/** How an intent ended. `because` decides what later attempts do; nothing reads the text, which is for the history. */
export interface Ended {
  readonly outcome: IntentOutcome;
  readonly because: Because;
  readonly text: string;
}

/**
 * - `replayed`: the API gave a stored refusal again, which belongs to an earlier send of the key.
 * - `no_capacity`: no host has the graphics cards free.
 * - `reported_absent`, `adopted`, `given_up`: the operator decided.
 * - `not_wanted`, `file_changed`, `moved`: the file or the project asks for something else now.
 * - `found`, `key_unused`, `key_refused`, `key_unknown`, `key_conflict`, `key_too_old`: what its idempotency key shows.
 * - `server_gone`, `id_reused`: its server was deleted, or its id was given to another key.
 */
export type Because =
  | 'done'
  | 'refused'
  | 'replayed'
  | 'no_capacity'
  | 'unanswered'
  | 'server_error'
  | 'task_failed'
  | 'not_there'
  | 'confirmed_absent'
  | 'reported_absent'
  | 'adopted'
  | 'given_up'
  | 'not_wanted'
  | 'file_changed'
  | 'moved'
  | 'found'
  | 'key_unused'
  | 'key_refused'
  | 'key_unknown'
  | 'key_conflict'
  | 'key_too_old'
  | 'server_gone'
  | 'id_reused';

/**
 * Why an intent's effect is unknown. It decides what follows *absent*. An absent creation takes a new key if its key is
 * fenced, else the same key; `unreadable` is blocked.
 *
 * | | after an update or a deletion |
 * | --- | --- |
 * | `lost` | the same key again |
 * | `conflict` | the same key again: a 409 on a resend, which the success of the first send may have caused |
 * | `unreadable` | the same key again: the write was accepted |
 * | `refused` | a new key: the refusal of a resend is stored under this one |
 * | `server_error` | a new key: the API stores no server error, and would carry the same key out again |
 * | `gateway_error` | a new key, after the origin had 15 minutes |
 * | `not_found` | blocked: the API refuses the deletion with 404, and its reads show the resource |
 */
export type WhyUnknown =
  | 'lost'
  | 'conflict'
  | 'unreadable'
  | 'refused'
  | 'server_error'
  | 'gateway_error'
  | 'not_found';

/** What only evidence can explain: of an accepted write, that it has `no_task` to tell its end, or one that failed. */
export type Why = WhyUnknown | 'no_task' | 'task_failed';

/**
 * Where the question to an idempotency key stands: was the request under the key carried out, and may it still be?
 *
 * ```
 * asking ──the probe's refusal is replayed──▶ fenced   nothing else was ever stored; a late original is refused too
 *    ├─────the key holds another answer─────▶ taken    the original bytes, sent again, are replayed
 *    └─────this API stores no such refusal──▶ open     lists decide; then the original bytes go out again
 * ```
 * Only *fenced*, or the replayed refusal of the original, permits the next attempt.
 *
 * @source API §4 rule 3, §8
 */
export interface KeyQuestion {
  readonly stage: 'asking' | 'taken' | 'fenced' | 'open';
  /** Probes under this key, each counted before it is sent. */
  readonly probes: number;
  /** The key refused the original bytes too, as another request than the one that it holds. */
  readonly conflict?: true;
  /** The code of the 409 that lasted past the deadline, by which the run ends once the key is fenced. */
  readonly lasting?: string;
}

/** The durable record of a write, made before its first byte is sent. */
export interface Intent {
  readonly id: string;
  readonly key: ResourceKey;
  readonly kind: KindName;
  readonly verb: Verb;
  readonly changes: readonly Change[];
  /** Goes up when the resource is gone; a child's holds its server's too: `2.0`. */
  readonly incarnation: string;
  /** Goes up only where the outcome table says "new key". */
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly request: WriteRequest;
  /** Digest of the request as it was sent, method and path included: the profile may say otherwise later. */
  readonly sentAs?: string;
  /** Digest of the entry that asked for it: a refusal holds until that changes. */
  readonly basis: string;
  /** That entry, for the binding: the file may say something else, or nothing, once the write has taken effect. */
  readonly entry?: Json;
  /** As that entry said; counts only once the entry has left the file. */
  readonly protect?: boolean;
  /** The reads that evidence is compared with. */
  readonly preimage: Json;
  readonly parentId?: string;
  readonly phase: IntentPhase;
  /** Stays until a 2xx on this key or evidence clears it. */
  readonly ambiguous: boolean;
  readonly why?: Why;
  /** Of a creation whose effect is unknown. */
  readonly question?: KeyQuestion;
  readonly sends: number;
  /** An answer may have belonged to an earlier use of this key, and no 2xx has come since. @assumption A4 */
  readonly doubted?: true;
  /** Sends without an answer of their own; the outcome table allows few. */
  readonly lost?: number;
  /** Wall times in ms. */
  readonly createdAt: number;
  readonly firstSentAt: number;
  /** `firstSentAt` by the API's clock: ours may be set to another time later. @assumption A35 */
  readonly firstSentApiAt?: number;
  readonly lastSentAt: number;
  /** Not before this: a wait the API or the table asked for. */
  readonly dueAt: number;
  /** When a first look found nothing; absence needs a second. */
  readonly notSeenAt?: number;
  readonly acceptedAt?: number;
  readonly taskId?: string;
  /** The live id, from the answer or the evidence. */
  readonly resourceId?: string;
  /** What the kind took from the answer, for the binding. */
  readonly facts?: Json;
  readonly requestId?: string;
  readonly blocked?: {
    readonly code: string;
    readonly reason: string;
    readonly candidates: readonly string[];
    /** A refusal of what the file says: it holds until the entry changes. */
    readonly until?: 'file';
    /** The parameters that the refusal names, in the API's words. */
    readonly parameters?: readonly string[];
  };
  readonly outcome?: IntentOutcome;
  /** Why it ended; of an open one, why it waits. */
  readonly because?: Because;
  readonly detail?: string;
  readonly closedAt?: number;
}

/** What may change on an intent after it began. */
export type IntentPatch = Partial<
  Pick<
    Intent,
    | 'phase'
    | 'ambiguous'
    | 'why'
    | 'question'
    | 'doubted'
    | 'sends'
    | 'lost'
    | 'lastSentAt'
    | 'dueAt'
    | 'notSeenAt'
    | 'acceptedAt'
    | 'taskId'
    | 'resourceId'
    | 'facts'
    | 'requestId'
    | 'blocked'
    | 'because'
    | 'detail'
  >
> & {
  /** Fields that no longer hold, such as a look that a new send has overtaken. */
  readonly clear?: readonly (
    | 'why'
    | 'question'
    | 'doubted'
    | 'notSeenAt'
    | 'acceptedAt'
    | 'taskId'
    | 'resourceId'
    | 'blocked'
  )[];
};

/** One line of the journal. */
export interface JournalEntry {
  readonly at: number;
  /** Of a claim: the name of its object. */
  readonly key: ResourceKey;
  readonly event:
    | 'begun'
    | 'sent'
    | 'answered'
    | 'closed'
    | 'bound'
    | 'released'
    | 'claimed'
    | 'unclaimed'
    | 'note';
  readonly intentId?: string;
  readonly data: Json;
}

/**
 * A change that becomes durable together with the end of its intent. Rejected where an object would have two holders: what
 * is bound is released first, and what is claimed otherwise is bound once that claim has ended.
 */
export type StateChange =
  | { readonly type: 'bind'; readonly binding: Binding }
  /** `gone`: the resource does not exist any more, so the next one is a new incarnation. */
  | { readonly type: 'release'; readonly key: ResourceKey; readonly gone: boolean; readonly reason: string }
  | { readonly type: 'next_incarnation'; readonly key: ResourceKey }
  /** Takes the place of the claim that the object had. */
  | { readonly type: 'claim'; readonly claim: Claim }
  | { readonly type: 'unclaim'; readonly object: LiveObject; readonly reason: string };

/** Those of a key, or those that ended so. */
export type IntentFilter = { readonly limit: number } & (
  | { readonly key?: ResourceKey; readonly outcome?: undefined }
  | { readonly outcome: IntentOutcome; readonly key?: undefined }
);

export interface StateInfo {
  /** Random, given at birth; two states with different lineages never knew each other. */
  readonly lineage: string;
  /** Goes up with every durable change. */
  readonly serial: number;
  /** Wall time in ms. */
  readonly createdAt: number;
  /** The one project whose resources this state names; `null` until the first write. */
  readonly projectId: number | null;
}

/**
 * Identity plus intent, not a cache. Every method that changes something is durable
 * (fsync) when it resolves, and rejects with `StateError` when it could not be, or when
 * another process has written since. Time is an argument: no store asks for it.
 *
 * A store opened for reading only rejects every change.
 */
export interface StateStore {
  info(): Promise<StateInfo>;
  /** Whether this process is still its owner, as far as it has heard; left out where that ends with the process alone. */
  isOwned?(): boolean;
  /** Aborts with a `StateError` when the owner loses the state; left out where ownership ends with the process alone. */
  readonly lost?: AbortSignal;
  /** Ties the state to a project; rejects if it is tied to another. */
  claimProject(projectId: number): Promise<void>;

  bindings(): Promise<readonly Binding[]>;
  /** What is claimed and not bound, by the name of the object. */
  claims(): Promise<readonly Claim[]>;
  /** How many resources with this key are gone. */
  incarnation(key: ResourceKey): Promise<number>;
  change(changes: readonly StateChange[], at: number): Promise<void>;

  /** Rejects where the key has an open intent already. */
  beginIntent(intent: Intent): Promise<void>;
  updateIntent(id: string, patch: IntentPatch, at: number, note?: Json): Promise<void>;
  /** Closes the intent and applies the changes in one transaction. */
  closeIntent(id: string, ended: Ended, changes: readonly StateChange[], at: number): Promise<void>;
  openIntents(): Promise<readonly Intent[]>;
  /** The highest attempt recorded, open or closed but for `void`, or -1. */
  lastAttempt(key: ResourceKey, verb: Verb, incarnation: string): Promise<number>;
  /** Newest first. */
  intents(filter: IntentFilter): Promise<readonly Intent[]>;
  /** The last `limit` lines, oldest first. */
  journal(filter: { readonly key?: ResourceKey; readonly limit: number }): Promise<readonly JournalEntry[]>;

  /**
   * Forgets what ended before a moment and nothing needs any more; see `state/prune.ts`. What is open stays, and the journal that is
   * left gives the same bindings, claims, incarnations and open intents when it is replayed. Gives how many lines of the journal are gone.
   */
  prune(before: number): Promise<number>;

  /** Requests counted against a budget, by the hash of their token. */
  recordUse(bucket: string, at: number): Promise<void>;
  /** Wall times in ms, oldest first; entries before `since` may be forgotten. */
  recentUse(bucket: string, since: number): Promise<readonly number[]>;

  /** Small facts that nothing rests on but time and comfort: learnt task durations, when a bucket opens again. */
  note(name: string): Promise<Json | undefined>;
  putNote(name: string, value: Json): Promise<void>;

  close(): Promise<void>;
}
