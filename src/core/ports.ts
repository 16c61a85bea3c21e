import type { Json } from './json.ts';
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
 * Every documented read. It has no write methods, so observing cannot change anything.
 * A method rejects with `ApiProblem` or `TransportError`; failed reads have been
 * retried by then and are never evidence of anything.
 *
 * Methods named `find…` give `undefined` for the 404 that means "no such resource".
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
  /** Every server of the project; there only where the profile enables `list_servers`. */
  readonly servers?: () => Promise<readonly Server[]>;
  /** There only where the profile enables `read_server`. */
  readonly findServer?: (id: ServerId) => Promise<Server | undefined>;
  /** The API's clock, from the last answer's `Date` header. @assumption A35 */
  apiNow(): number;
  /** Our own clock, wall ms. */
  now(): number;
}

/** Every write that the API documents with its payload, and those that a profile may enable. @source API §4 */
export type WriteName =
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
  | 'take_backup'
  | 'update_backup_policy'
  | 'remove_network_interface'
  | 'resize_server'
  | 'insert_iso'
  | 'eject_iso'
  | 'delete_backup'
  | 'take_server_image';

/** A write as data: made by a kind, recorded by the state, sent by the client, never changed in between. */
export interface WriteRequest {
  readonly name: WriteName;
  /** Ids that stand in the path. */
  readonly path: Readonly<Record<string, string | number>>;
  readonly body?: Json;
  /**
   * Sends a body that is invalid twice over in place of the request's own: an unknown field, and a documented field of a
   * wrong type. No reading of the document carries such a request out; its refusal shows whether the key is in use. The
   * body follows from the operation and the number alone, so that every state sends the same one.
   *
   * @source API §4 rule 3
   */
  readonly probe?: 1 | 2;
}

/** The unknown field of a probe: a refusal that names it is one of the probe's body. */
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
  /** A refusal of the token that it went out under, where another token may be allowed the same. */
  readonly ofToken?: true;
  /** Of a 2xx. */
  readonly data?: unknown;
  readonly task?: AnsweredTask;
  /** A 2xx whose body cannot be read: what was wrong with it. */
  readonly malformed?: string;
  /** Of anything else: the stable code, or `null` where the body has none. */
  readonly code?: string | null;
  readonly title?: string;
  readonly detail?: string;
  readonly invalidParams?: readonly { readonly name: string; readonly reason: string }[];
}

/** What became of one send. Nothing is thrown: every ending has its row in the outcome table. */
export type WriteResult =
  | Conclusive
  /** Not a byte reached the API. */
  | { readonly type: 'unsent'; readonly reason: string }
  /** It may or may not have had its effect. */
  | { readonly type: 'ambiguous'; readonly reason: string; readonly status?: number };

export interface WritePort {
  /** Resolves once the write budget has room for one more send. */
  room(signal?: AbortSignal): Promise<void>;
  /**
   * Sends once, to the byte as given. Never retries and never throws. `token`: the one
   * that was seen to be the right project's; under any other the write stays unsent.
   * `mayGo` is asked right before the first byte; where it says no, the write stays unsent.
   */
  send(
    request: WriteRequest,
    idempotencyKey: string,
    token?: string,
    mayGo?: () => boolean,
  ): Promise<WriteResult>;
  /** Names the token that the next request will carry, without giving it away. */
  token(): string;
  /** Digest of what `send` would send: equal digests, the same method, path and body. Empty where it cannot be sent. */
  digest(request: WriteRequest): string;
}

/** How long a task of a sort takes, learnt from those that have ended. */
export interface TaskWatch {
  /**
   * Resolves when the task is terminal, after as few polls as its sort allows.
   * `lost`: the API knows no such task any more. @assumption A10
   * `stuck`: not terminal after `deadlineMs`.
   */
  wait(task: TaskWait, signal?: AbortSignal): Promise<TaskEnd>;
  /** The longest that a task of the sort has been seen to take, in ms; 0 where none has ended. */
  longest(sort: WriteName): Promise<number>;
}

export interface TaskWait {
  readonly id: TaskId;
  /** Tasks of one sort take about the same time. */
  readonly sort: WriteName;
  /** When the API accepted it, wall time in ms. */
  readonly acceptedAt: number;
  readonly deadlineMs: number;
}

export type TaskEnd =
  | { readonly end: 'succeeded' }
  | { readonly end: 'failed'; readonly detail: string | null }
  | { readonly end: 'lost' }
  | { readonly end: 'stuck' };
