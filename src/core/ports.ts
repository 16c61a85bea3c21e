import type { Json } from './json.ts';
import type { UndocumentedWrite } from './profile.ts';
import type {
  Backup,
  BackupPolicy,
  Firewall,
  ImageEntry,
  Ip,
  Iso,
  Network,
  NetworkInterface,
  Project,
  Server,
  ServerId,
  ServerType,
  ServerTypeId,
  ServerTypePricing,
  Task,
  TaskId,
} from './resources.ts';

/**
 * Every documented read. The port has no write methods, so observing cannot change anything.
 * A method rejects with `ApiProblem` or `TransportError`. The client has retried a failed read
 * by then, and a failed read is never evidence of anything.
 *
 * Methods named `find…` give `undefined` for a 404: the resource does not exist.
 */
export interface ReadPort {
  project(): Promise<Project>;
  ips(): Promise<readonly Ip[]>;
  findIp(id: number): Promise<Ip | undefined>;
  networks(): Promise<readonly Network[]>;
  isos(): Promise<readonly Iso[]>;
  findIso(id: string): Promise<Iso | undefined>;
  /** `undefined`: 404 `server_not_found`, the only documented sign that a server is gone. */
  findNetworkInterfaces(server: ServerId): Promise<readonly NetworkInterface[] | undefined>;
  findFirewall(server: ServerId): Promise<Firewall | undefined>;
  findBackups(server: ServerId): Promise<readonly Backup[] | undefined>;
  findBackupPolicy(server: ServerId): Promise<BackupPolicy | undefined>;
  serverTypes(): Promise<readonly ServerType[]>;
  pricing(type: ServerTypeId): Promise<ServerTypePricing>;
  images(type: ServerTypeId): Promise<readonly ImageEntry[]>;
  findTask(id: TaskId): Promise<Task | undefined>;
  /** Every server of the project; present only if the profile enables `list_servers`. */
  readonly servers?: () => Promise<readonly Server[]>;
  /** Present only if the profile enables `read_server`. */
  readonly findServer?: (id: ServerId) => Promise<Server | undefined>;
  /** The API's clock, from the last answer's `Date` header. `undefined`: no answer had one. @assumption A35 */
  apiNow(): number | undefined;
  /** Our own clock, wall ms. */
  now(): number;
}

/** A read whose answer several callers may share. */
export type ReadName = Exclude<keyof ReadPort, 'findTask' | 'apiNow' | 'now'>;

/** The reads of one server. Their answers become untrue together once the server is gone. */
export const serverReads = [
  'findServer',
  'findNetworkInterfaces',
  'findFirewall',
  'findBackups',
  'findBackupPolicy',
] as const satisfies readonly ReadName[];

/** The answers that a write makes untrue. */
export interface StaleReads {
  /** Every answer of these reads. */
  readonly lists?: readonly ReadName[];
  /** The answers about one server: those `inside` names, or all. */
  readonly server?: string | number | undefined;
  readonly inside?: readonly (typeof serverReads)[number][];
}

/** Every write that the API documents with its payload. @source API §4 */
export type DocumentedWrite =
  | 'allocate_ip'
  | 'release_ip'
  | 'add_iso'
  | 'delete_iso'
  | 'create_network'
  | 'delete_network'
  | 'create_server'
  | 'delete_server'
  | 'add_network_interface'
  | 'put_firewall'
  | 'take_backup';

/** A documented write, or one that a profile may enable. */
export type WriteName = DocumentedWrite | UndocumentedWrite;

/** A write as data: a kind makes it, the state records it, and the client sends it unchanged. */
export interface WriteRequest {
  readonly name: WriteName;
  /** The ids in the path. */
  readonly path: Readonly<Record<string, string | number>>;
  readonly body?: Json;
  /** Sends an invalid body in place of the request's own. */
  readonly probe?: Probe;
}

/**
 * The invalid body of a request that the API must refuse. It always has an unknown field.
 *
 * - a number: a documented field has a wrong type. No reading of the document lets the API carry this request out; the
 *   refusal shows whether the key is in use. The body follows from the operation and the number alone, so that every
 *   state sends the same body.
 * - `impossible`: the fields of the request have values that cannot exist. The refusal shows which of them the API
 *   checks next to an unknown field.
 * - `proof`: the fields of the request are unchanged. The refusal shows whether the API accepts them.
 *
 * @source API §4 rule 3, §7
 */
export type Probe = 1 | 2 | 'impossible' | 'proof';

/** The unknown field of a probe: a refusal that names this field refuses the body of the probe. */
export const probeField = 'vdcsync_probe';

/** The `task` member of a write's answer: `missing` breaks the contract of §4.5. */
export type AnsweredTask = { readonly id: TaskId; readonly terminal: boolean } | null | 'missing';

/** A complete, identified, parseable answer. */
export interface Conclusive {
  readonly type: 'answer';
  readonly status: number;
  readonly requestId: string;
  readonly replayed: boolean;
  /** Real milliseconds, from `Retry-After`. */
  readonly retryAfterMs?: number;
  /** A refusal of the token that the request carried; the API may permit the same request with another token. */
  readonly ofToken?: true;
  /** Of a 2xx. */
  readonly data?: unknown;
  readonly task?: AnsweredTask;
  /** The error in the body of a 2xx that cannot be read. */
  readonly malformed?: string;
  /** Of anything else: the stable code, or `null` where the body has none. */
  readonly code?: string | null;
  readonly title?: string;
  readonly detail?: string;
  readonly invalidParams?: readonly { readonly name: string; readonly reason: string }[];
}

/** The result of one send. Nothing is thrown: every result has its row in the outcome table. */
export type WriteResult =
  | Conclusive
  /** No byte reached the API. */
  | { readonly type: 'unsent'; readonly reason: string }
  /** The write may or may not have taken effect. */
  | { readonly type: 'ambiguous'; readonly reason: string; readonly status?: number };

/** Sends writes. The engine alone decides about a repetition: only its outcome table shows whether one is safe. */
export interface WritePort {
  /**
   * Resolves once the write budget has room for one more send. `isWriteWaiting`: further writes wait behind this one,
   * so other reads leave slots of the read budget to the reads of these writes.
   */
  room(signal?: AbortSignal, isWriteWaiting?: boolean): Promise<void>;
  /** The estimated time until this number of writes can be sent, in ms. */
  roomMs(writes: number): number;
  /** The writes that the limits allow in one window. */
  perWindow(): number;
  /**
   * Sends exactly these bytes, once. Never retries and never throws. `token`: the token
   * that belongs to the right project; under any other token the write stays unsent.
   * `mayGo` is called right before the first byte; if it returns false, the write stays unsent.
   */
  send(
    request: WriteRequest,
    idempotencyKey: string,
    token?: string,
    mayGo?: () => boolean,
  ): Promise<WriteResult>;
  /** Names the token that the next request will carry, without revealing it. */
  token(): string;
  /**
   * Digest of the request that `send` would send: equal digests mean the same method, path and body. Empty if it
   * cannot be sent, for example because a value of the environment has changed.
   */
  digest(request: WriteRequest): string;
}

/** The usual duration of a task of a sort, learnt from tasks that have ended. */
export interface TaskWatch {
  /**
   * Resolves when the task is terminal, after as few polls as its sort allows.
   * `lost`: the API does not know the task any more. @assumption A10
   * `stuck`: not terminal after `deadlineMs`.
   */
  wait(task: TaskWait, signal?: AbortSignal): Promise<TaskEnd>;
  /** The longest observed duration of a task of the sort, in ms; 0 if none has ended. */
  longest(sort: WriteName): Promise<number>;
  /** The time in which most tasks of the sort have ended, in ms. */
  usual(sort: WriteName): Promise<number>;
  /** The time before which few tasks of the sort have ended, in ms. An urgent write waits for them from then on. */
  earliest(sort: WriteName): Promise<number>;
}

/** The wait for one task of the API, from the acceptance of its write. @source API §4 rule 5 */
export interface TaskWait {
  readonly id: TaskId;
  /** Tasks of one sort take about the same time. */
  readonly sort: WriteName;
  /** When the API accepted it, wall time in ms. */
  readonly acceptedAt: number;
  readonly deadlineMs: number;
  /** A write that must not wait depends on the end of the task, so the task is polled more often. */
  readonly isUrgent?: () => boolean;
  /** Called with the time to the next poll of an urgent task, in ms. The urgent write does not come before it. */
  readonly onNextPoll?: (afterMs: number) => void;
}

/**
 * The end of the wait for a task. `failed`: the task may have left a resource. `lost`, `stuck`: the outcome of the
 * write is not known, so evidence decides.
 *
 * @source API §3 @assumption A10 A14
 */
export type TaskEnd =
  | { readonly end: 'succeeded' }
  | { readonly end: 'failed'; readonly detail: string | null }
  | { readonly end: 'lost' }
  | { readonly end: 'stuck' };

/** Values that a trace shows in addition to a span's name; never a body, a header or a value of the spec. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** One timed piece of work of a trace. */
export interface Span {
  /** Runs a part of the work: spans that begin within it are children of this one. */
  within<Result>(work: () => Promise<Result>): Promise<Result>;
  set(attributes: SpanAttributes): void;
  /** `failure`: why the work failed; without it, it succeeded. Exactly one call. */
  end(failure?: string): void;
}

/** Where spans go. `begin` is called in the async context of the parent. */
export interface Tracing {
  begin(name: string, attributes: SpanAttributes): Span;
}
