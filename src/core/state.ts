import type { Claim, LiveObject, Recovered } from './claims.ts';
import type { EntryFields } from './desired.ts';
import type { Json } from './json.ts';
import type { ResourceKey } from './keys.ts';
import type { KindName } from './kind-facts.ts';
import type { Change, Verb } from './plan.ts';
import type { WriteRequest } from './ports.ts';
import type { Preimage } from './preimage.ts';
import type { TaskId } from './resources.ts';

/** Key ↔ live id: a live resource with a binding belongs to this spec. */
export interface Binding {
  readonly key: ResourceKey;
  readonly kind: KindName;
  /** The API's id, as text. */
  readonly id: string;
  /** The live id of the server that the resource belongs to. The same id in another server is another resource. */
  readonly parentId?: string;
  /** Distinguishes the resource from a later one with the same id: address, name, cidr. @assumption A17 */
  readonly identity: Readonly<Record<string, string>>;
  /** The last applied fields, where the API does not show them. */
  readonly applied: Json;
  /** The last value in the spec: it still protects the resource after the entry has left the spec. */
  readonly protect: boolean;
  /** The resource remains when its server is deleted: an address with `keep_ip`. */
  readonly keep: boolean;
  /** Its server is gone, and not because of a replacement. Another server has its key now. */
  readonly orphaned?: true;
  /** The reason why the resource is not trustworthy: a failed task left it. */
  readonly tainted?: string;
  /** No operator has confirmed that the entry means this resource. It is neither deleted nor replaced. */
  readonly recovered?: Recovered;
  /** Keys that the spec has renamed to this one. */
  readonly formerKeys?: readonly ResourceKey[];
  /** Wall time in ms. */
  readonly boundAt: number;
}

/**
 * The phase of a write; its fields are those of `Stage`.
 * ```
 * sending ──2xx──▶ accepted ──evidence──▶ closed
 *    │ ▲
 *    │ └─ due ── waiting      (409, 429, refused connection: no effect, same key)
 *    ├─ lost answer ▶ unknown ──key (of a creation), evidence──▶ sending | accepted | waiting | closed
 *    └─ refusal ▶ closed
 * accepted ──its id is given to another key──▶ superseded ──▶ closed
 * any ──▶ blocked ──resolve──▶ closed
 * ```
 * `sending` found at start means the process died in between: it is `unknown`.
 */
export type IntentPhase = Stage['phase'];

/**
 * The outcome of a closed intent. `refused`: the API refused the write, and nothing happened. `void`: the write
 * had no effect and left nothing under its key, so its attempt may be used again.
 */
export type IntentOutcome = 'done' | 'refused' | 'absent' | 'failed' | 'abandoned' | 'void';

/** The end of an intent. `because`: left out if later attempts do not depend on the reason. No code reads `text`. */
export interface Ended {
  readonly outcome: IntentOutcome;
  readonly because?: Because;
  readonly text: string;
}

/**
 * - `replayed`: the API gave a stored refusal again, which belongs to an earlier send of the key.
 * - `no_capacity`: no host has the graphics cards free.
 * - `reported_absent`: the operator said so.
 * - `key_too_old`: the idempotency key cannot be sent again.
 * - `found`, `gone`: a new state asked the key, and the answer names a resource that exists, or that is gone.
 * - `unused`: no earlier state used the key, nor a later key of this resource. `taken`: it holds another answer.
 * - `used_elsewhere`: it could not be reserved, because it holds the answer to a creation of another state.
 * - `reserved`: it holds the refusal of a request that cannot be carried out, so that no state creates a resource under it.
 * - `unaskable`: the API does not store refusals of this operation, so no probe shows the content of a key.
 */
export type Because =
  | ('replayed' | 'no_capacity' | 'reported_absent' | 'key_too_old')
  | ('found' | 'gone' | 'unused' | 'taken' | 'used_elsewhere' | 'reserved' | 'unaskable');

/**
 * The reason why an intent's effect is unknown. It decides the next step after *absent*. An absent creation takes a new
 * key if its key is fenced, else the same key.
 *
 * | | after an update or a deletion |
 * | --- | --- |
 * | `lost` | the same key again |
 * | `conflict`, `reused` | the same key again: the first send may have caused the 409, or the refusal as a used key |
 * | `unreadable` | the same key again: the write was accepted |
 * | `refused` | a new key: the refusal of a resend is stored under this one |
 * | `server_error` | a new key: the API stores no server error, and would carry the same key out again |
 * | `gateway_error` | a new key, after the origin had 15 minutes |
 * | `not_found` | blocked: the API refuses the deletion with 404, and its reads show the resource |
 */
export type WhyUnknown =
  | 'lost'
  | 'conflict'
  | 'reused'
  | 'unreadable'
  | 'refused'
  | 'server_error'
  | 'gateway_error'
  | 'not_found';

/**
 * The stage of the question to an idempotency key: was the request under the key carried out, and may it still be?
 * ```
 * asking ──the probe's refusal is replayed──▶ fenced   nothing else was ever stored; a late original is refused too
 *    ├─────the key holds another answer─────▶ taken    the original bytes, sent again, are replayed
 *    └─────this API stores no refusals──────▶ open     lists decide; then the original bytes go out again
 * ```
 * Only *fenced*, or the replayed refusal of the original, permits the next attempt.
 * @source API §4 rule 3, §8
 */
export interface KeyQuestion {
  readonly stage: 'asking' | 'taken' | 'fenced' | 'open';
  /** Probes under this key, each counted before it is sent. */
  readonly probes: number;
  /** The key refused the original bytes too, because the API holds another request under the key. */
  readonly conflict?: true;
  /** The code of the 409 that lasted past the deadline: the run ends with this code once the key is fenced. */
  readonly lasting?: string;
}

/** A send that may have had an effect. Only a 2xx on its key, or evidence, ends this. */
export interface Unconfirmed {
  readonly why: WhyUnknown;
  /** The question to the key of a creation. */
  readonly question: KeyQuestion;
}

/** The facts that a kind takes from an answer or from evidence, for the binding. */
export interface Facts {
  /** The address of the created resource, or of the created server. */
  readonly address?: string;
  /** As a deletion of a server answered. @assumption A18 */
  readonly billable_ips?: readonly Json[];
  /** The addresses that a server has. */
  readonly addresses?: readonly { readonly id: number; readonly address: string }[];
  /** The undocumented fields that the API added to the rules of a firewall, with their values. @assumption A32 */
  readonly ruleFields?: Readonly<Record<string, readonly Json[]>>;
}

/** The 2xx answer to a write, or the evidence that took its place. */
export interface Answer {
  /** Wall time in ms. */
  readonly at: number;
  /** `at` by the API's clock; left out of evidence. @assumption A35 */
  readonly apiAt?: number;
  /** The live id. */
  readonly id?: string;
  readonly taskId?: TaskId;
  readonly facts: Facts;
  /** A replay answers an `earlier` send of the intent, or an `unknown` send, which this state never made. */
  readonly to: 'this_send' | 'earlier_send' | 'unknown_send';
  /** How the API reports the end of the operation: as a success, never, or as a failure. */
  readonly end: 'reported' | 'unreported' | 'failed';
}

/** The question to the operator, or to the spec, that an intent waits for. */
export interface Question {
  readonly code: string;
  readonly reason: string;
  /** Live ids that the operator may choose from. */
  readonly candidates: readonly string[];
  /** The API refused the entry of the spec: the block remains until the entry changes. */
  readonly until?: 'file';
  /** The parameters that the refusal names, with the API's names. */
  readonly parameters?: readonly string[];
}

/** The fields of each phase. A new phase replaces all fields of the previous phase. */
export type Stage =
  | {
      readonly phase: 'sending' | 'waiting';
      /** An earlier send under the key. */
      readonly unconfirmed?: Unconfirmed;
      /**
       * The reason of a wait. `key_maybe_used`: another request may have used the key, so the key is asked before the write is
       * given up. @assumption A4
       */
      readonly because?: 'no_capacity' | 'key_maybe_used';
    }
  | {
      readonly phase: 'unknown';
      readonly unconfirmed: Unconfirmed;
      /** The time of the first observation without the resource; absence needs a second observation. */
      readonly notSeenAt?: number;
    }
  | { readonly phase: 'accepted'; readonly answer: Answer; readonly notSeenAt?: number }
  /** The created resource is gone: the API gave its id to another key. `former`: its id, and its address. */
  | { readonly phase: 'superseded'; readonly by: ResourceKey; readonly former: Pick<Answer, 'id' | 'facts'> }
  | ({ readonly phase: 'blocked'; readonly blocked: Question } & KnownEffect)
  | ({
      readonly phase: 'closed';
      readonly outcome: IntentOutcome;
      readonly because?: Because;
      readonly closedAt: number;
    } & KnownEffect);

/** The known effect of a write that is blocked or closed. */
export interface KnownEffect {
  readonly unconfirmed?: Unconfirmed;
  readonly answer?: Answer;
}

/** The constant part of an intent. */
export interface RecordedWrite {
  readonly id: string;
  readonly key: ResourceKey;
  readonly kind: KindName;
  readonly verb: Verb;
  readonly changes: readonly Change[];
  /** Increases when the resource is gone. The incarnation of a child contains that of its server: `2.0`. */
  readonly incarnation: string;
  /** The counted incarnations that had another idempotency key: of another name, or in another `project.scope`. */
  readonly elsewhere?: number;
  /** Increases only where the outcome table requires a new key. */
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly request: WriteRequest;
  /** Digest of the request that was sent, with method and path: the profile may define them in another way later. */
  readonly sentAs: string;
  /** Digests of the entry that asked for the write (a refusal remains valid until the entry changes), and of the spec. */
  readonly basis: string;
  readonly spec?: string;
  /**
   * That entry, for the binding: the spec may have another entry, or none, once the write has taken effect. `protect`
   * counts only once the entry has left the spec. `moved`: the earlier key of its line.
   */
  readonly entry?: { readonly value: EntryFields; readonly protect: boolean; readonly moved?: ResourceKey };
  /** Of the creation of a server: the declared resources inside it, except for backups, which come later. */
  readonly parts?: readonly ResourceKey[];
  /** The reads that evidence is compared with. */
  readonly preimage: Preimage;
  readonly parentId?: string;
  /** Of a creation: the live id of the resource of the same key that it replaces, and that remains until then. */
  readonly replaces?: string;
  /** Of a deletion that a creation of the same key follows: the known monthly price of the resource, as decimal text. */
  readonly freed?: string;
  /**
   * Of a question that a new state asks a key: the entry whose resource the state asks about. The resource is claimed as
   * found, and never bound.
   */
  readonly recovers?: ResourceKey;
  /** When the write was ready, in wall ms, if it then waited for its turn or for the request limit. */
  readonly queuedAt?: number;
  /** Wall times in ms. */
  readonly createdAt: number;
  readonly firstSentAt: number;
  /** `firstSentAt` by the API's clock: the local clock may be changed later. `null`: the API shows none. @assumption A35 */
  readonly firstSentApiAt: number | null;
}

/** The part of an intent that every phase has, and that changes. */
export interface Sends {
  readonly sends: number;
  /** Sends without an answer of their own; the outcome table limits their number. */
  readonly lost: number;
  readonly lastSentAt: number;
  /** `lastSentAt` by the API's clock. @assumption A35 */
  readonly lastSentApiAt: number | null;
  /** No send before this time: a wait that the API or the outcome table requires. */
  readonly dueAt: number;
  /** The text of the last answer, or of the end; for the operator. */
  readonly detail: string;
  /** Of the last answer. */
  readonly requestId?: string;
}

/** The durable record of a write, made before its first byte is sent. */
export type Intent = RecordedWrite & Sends & Stage;

/** An intent in one of these phases, with the fields of the phase. */
export type InPhase<Phase extends IntentPhase> = Intent & { readonly phase: Phase };

/** A change of an open intent. */
export type IntentPatch = Partial<Sends> & { readonly stage?: Exclude<Stage, { readonly phase: 'closed' }> };

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
    | 'proof'
    | 'note';
  readonly intentId?: string;
  readonly data: Json;
}

/**
 * A change that becomes durable together with the end of its intent. The store rejects a change that gives an object
 * two holders: release a bound object first, and end the claim of a claimed object before you bind it.
 */
export type StateChange =
  | { readonly type: 'bind'; readonly binding: Binding }
  /** `gone`: the resource does not exist any more, so the next one is a new incarnation. */
  | { readonly type: 'release'; readonly key: ResourceKey; readonly gone: boolean; readonly reason: string }
  | { readonly type: 'next_incarnation'; readonly key: ResourceKey }
  /** Replaces the previous claim of the object. */
  | { readonly type: 'claim'; readonly claim: Claim }
  | { readonly type: 'unclaim'; readonly object: LiveObject; readonly reason: string }
  /** Only the journal has the proof: no plan depends on it. */
  | { readonly type: 'proof'; readonly key: ResourceKey; readonly proof: ProofRecord };

/** The record of a request that proves a creation, durable before it is sent. It cannot be carried out, so no crash leaves it open. */
export interface ProofRecord {
  readonly idempotencyKey: string;
  readonly request: WriteRequest;
  /** Left out before the answer. */
  readonly answer?: { readonly text: string; readonly requestId?: string };
}

/** The intents of a key, or the intents with an outcome. */
export type IntentFilter = { readonly limit: number } & (
  | { readonly key?: ResourceKey; readonly outcome?: undefined }
  | { readonly outcome: IntentOutcome; readonly key?: undefined }
);

/** Lines that meet all conditions; a condition that is left out accepts every line. */
export interface JournalFilter {
  readonly key?: ResourceKey | undefined;
  readonly event?: JournalEntry['event'] | undefined;
  readonly limit: number;
}

/** Identifies a state, and binds it to one project of one API. */
export interface StateInfo {
  /** Random, chosen when the state is created; two states with different lineages are independent. */
  readonly lineage: string;
  /** Increases with every durable change. */
  readonly serial: number;
  /** Wall time in ms. */
  readonly createdAt: number;
  /** The one project whose resources this state names; `null` until the first write. */
  readonly projectId: number | null;
  /** The API that gave out its ids, such as `emulator`; `null` until the first write. Ids of another API mean nothing. */
  readonly service: string | null;
}

/**
 * Identity plus intent, not a cache. Every method that changes something is durable (fsync) when it resolves. It rejects
 * with `StateError` if it could not make the change durable, or if another process has written since. Time is an
 * argument: no store reads a clock. A store opened for reading only rejects every change.
 */
export interface StateStore {
  info(): Promise<StateInfo>;
  /** Whether this process is still the owner, as far as it knows; left out where only its end ends ownership. */
  isOwned?(): boolean;
  /** Aborts with a `StateError` when the owner loses the state; left out where only its end ends ownership. */
  readonly lost?: AbortSignal | undefined;
  /** Binds the state to a project; rejects if the state is bound to another project. */
  claimProject(projectId: number): Promise<void>;
  /** Binds the state to an API; rejects if the state is bound to another one. */
  claimService(service: string): Promise<void>;

  bindings(): Promise<readonly Binding[]>;
  /** The objects that are claimed and not bound, by name. */
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
  /** The highest attempt recorded, open or closed except for `void`, or -1. */
  lastAttempt(key: ResourceKey, verb: Verb, incarnation: string): Promise<number>;
  /** Newest first. */
  intents(filter: IntentFilter): Promise<readonly Intent[]>;
  /** The last `limit` lines, oldest first. */
  journal(filter: JournalFilter): Promise<readonly JournalEntry[]>;

  /**
   * Removes ended records from before a moment that no other record needs; see `state/prune.ts`. Open records remain. A
   * replay of the remaining journal gives the same bindings, claims, incarnations and open intents. Resolves to the
   * number of removed lines.
   */
  prune(before: number): Promise<number>;

  /** Small facts that only save time, such as learnt task durations. Each reader treats another form as no note. */
  note(name: string): Promise<unknown>;
  /** Rejects a value that is not JSON. */
  putNote(name: string, value: unknown): Promise<void>;

  close(): Promise<void>;
}
