/**
 * The results of the API's reads, after the client has parsed them loosely.
 * Only fields that vdcsync uses; money stays text.
 *
 * @source API §2
 */
type Id<Noun extends string> = number & { readonly __noun: Noun };
export type ProjectId = Id<'project'>;
export type ServerId = Id<'server'>;
export type IpId = Id<'ip'>;
export type NetworkId = Id<'network'>;
export type ServerTypeId = Id<'server type'>;
/** `uiso-` and 1 to 10 digits. */
export type IsoId = string & { readonly __noun: 'iso' };
/** `net0`, `net1`, … unique on one server. */
export type NetworkInterfaceId = string & { readonly __noun: 'network interface' };
export type TaskId = string & { readonly __noun: 'task' };

export interface Project {
  readonly id: ProjectId;
  readonly name: string;
  /** `Active` is the one value that is shown. @assumption A20 */
  readonly status: string;
}

export interface Ip {
  readonly id: IpId;
  readonly address: string;
  /** `null`: attached to nothing, and still billed. */
  readonly server_id: ServerId | null;
  readonly primary: boolean;
}

/**
 * A server as the API shows it, where the profile says how it is read.
 * Only name and addresses are documented; sizes and drive are compared where they are shown.
 */
export interface Server {
  readonly id: ServerId;
  readonly name: string;
  readonly status: string;
  readonly cores?: number;
  readonly memory_mb?: number;
  readonly disk_gb?: number;
  readonly plan_id?: number;
  /** The ISO in its drive. @assumption A50 */
  readonly iso?: IsoId | null;
}

export interface Network {
  readonly id: NetworkId;
  readonly name: string;
  readonly cidr: string;
  readonly is_default: boolean;
  /** Attached servers; `null` where the API did not say. */
  readonly server_count: number | null;
}

export interface NetworkInterface {
  readonly id: NetworkInterfaceId;
  readonly public: boolean;
  readonly network_id: NetworkId | null;
  /** The addresses that the API shows; the list may be incomplete. @assumption A53 */
  readonly addresses: readonly string[];
}

export type FirewallRule = Readonly<Record<string, unknown>>;

export interface Firewall {
  readonly enabled: boolean;
  readonly policy_in: string;
  readonly policy_out: string | null;
  readonly rules: readonly FirewallRule[];
}

export interface Backup {
  /** The UTC moment it was taken, as text. */
  readonly id: string;
  readonly server_id: ServerId;
  readonly status: string;
  readonly size_bytes: number | null;
  /** RFC 3339. */
  readonly created_at: string;
}

export interface BackupPolicy {
  readonly enabled: boolean;
  readonly days: readonly string[];
  readonly hour: number;
  readonly minute: number;
  readonly keep: number;
  readonly next_run: string | null;
  readonly last_run: string | null;
}

/** @assumption A24 */
export interface Iso {
  readonly id: IsoId;
  readonly name: string;
  readonly download: 'pending' | 'ready' | 'failed' | 'unknown';
  readonly reason: string | null;
}

export interface Task {
  readonly id: TaskId;
  readonly status: 'pending' | 'running' | 'succeeded' | 'failed';
  readonly is_terminal: boolean;
  /** The API's text about a failure, if there is one. */
  readonly detail: string | null;
}

export interface ServerType {
  readonly id: ServerTypeId;
  readonly name: string;
  readonly pricing_mode: string;
  readonly gpu: boolean;
}

export interface GpuPackage {
  readonly key: string;
  readonly name: string;
  /** Monthly, in the account's currency; decimal text. */
  readonly price: string | null;
  readonly backup_price: string | null;
}

export interface ServerTypePricing {
  readonly gpu_packages: readonly GpuPackage[];
  /** Of a plan type, where they are shown. @assumption A54 */
  readonly plans?: readonly ServerPlan[] | undefined;
}

/** A size on sale. `disk_gb` where it is shown. @assumption A54 */
export interface ServerPlan {
  readonly id: number;
  readonly name: string;
  readonly disk_gb?: number | undefined;
}

export interface ImageEntry {
  readonly id: string;
  readonly name: string;
  readonly type: string;
}
