/**
 * The results of the API's reads, after the client has parsed them loosely.
 * Only fields that vdcsync uses; money stays text.
 *
 * @source API §2
 */
type Id<Noun extends string> = number & { readonly __noun: Noun };
/** No path contains this id: the token decides the project, and a read of the project shows the id. @source API §1.1 */
export type ProjectId = Id<'project'>;
/** The answer to a creation shows the id at once. A later server may have the same id. @assumption A17 */
export type ServerId = Id<'server'>;
/** Of a public address. Operators know the address by its IPv4 text, so output shows the text in place of the id. */
export type IpId = Id<'ip'>;
/** The answer to a creation may lack this id: the list of networks shows it later. @source API §3 rule 5 */
export type NetworkId = Id<'network'>;
/** Of a server type. The catalogue belongs to the project: another project may lack the type. @source API §4 */
export type ServerTypeId = Id<'server type'>;
/** `uiso-` and 1 to 10 digits. */
export type IsoId = string & { readonly __noun: 'iso' };
/** `net0`, `net1`, … unique on one server. */
export type NetworkInterfaceId = string & { readonly __noun: 'network interface' };
/** The API may forget the id of an ended task. @assumption A10 */
export type TaskId = string & { readonly __noun: 'task' };

/** The one project that the token belongs to. @source API §1 */
export interface Project {
  readonly id: ProjectId;
  readonly name: string;
  /** `Active` is the one value that is shown. @assumption A20 */
  readonly status: string;
}

/** A public IPv4 address: billed from its allocation to its release, attached or not. @source API §1.4 */
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

/** A private network. Each project has one default network, which vdcsync never deletes. @assumption A26 */
export interface Network {
  readonly id: NetworkId;
  readonly name: string;
  readonly cidr: string;
  readonly is_default: boolean;
  /** Attached servers; `null` where the API did not say. */
  readonly server_count: number | null;
}

/** The attachment of a server to a network. `network_id`: `null` if the API shows none. */
export interface NetworkInterface {
  readonly id: NetworkInterfaceId;
  readonly public: boolean;
  readonly network_id: NetworkId | null;
  /** The addresses that the API shows; the list may be incomplete. @assumption A53 */
  readonly addresses: readonly string[];
}

/** The fields of a rule, with the names of the API. The document does not show all fields. @assumption A32 A46 */
export type FirewallRule = Readonly<Record<string, unknown>>;

/** Filters the public network interface of a server. `policy_out` is only read. @source API §2 @assumption A45 */
export interface Firewall {
  readonly enabled: boolean;
  readonly policy_in: string;
  readonly policy_out: string | null;
  readonly rules: readonly FirewallRule[];
}

/** Stays billed after the deletion of its server. `size_bytes`: `null` until it is available. @source API §1.5 */
export interface Backup {
  /** The UTC moment it was taken, as text. */
  readonly id: string;
  readonly server_id: ServerId;
  readonly status: string;
  readonly size_bytes: number | null;
  /** RFC 3339. */
  readonly created_at: string;
}

/**
 * The schedule of the backups of one server. `days`: `mon` to `sun`. `hour`, `minute`: the document shows no time zone.
 * `keep`: the number of backups that remain. `next_run`, `last_run`: RFC 3339. @source API §2
 */
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

/** Background work of the API. Only `is_terminal` ends the polls. @source API §4 rule 5 */
export interface Task {
  readonly id: TaskId;
  readonly status: 'pending' | 'running' | 'succeeded' | 'failed';
  readonly is_terminal: boolean;
  /** The API's text about a failure, if there is one. */
  readonly detail: string | null;
}

/** `pricing_mode`: `sliders` (sizes), `plans` (a plan), `fixed` (a GPU package), or a later value. */
export interface ServerType {
  readonly id: ServerTypeId;
  readonly name: string;
  readonly pricing_mode: string;
  readonly gpu: boolean;
}

/** A size with graphics cards on sale. The API leaves out a withdrawn package. `key`: the value of `gpu_package`. */
export interface GpuPackage {
  readonly key: string;
  readonly name: string;
  /** Monthly, in the account's currency; decimal text. */
  readonly price: string | null;
  readonly backup_price: string | null;
}

/** The catalogue of one server type. Slider and plan types have no documented prices. @assumption A39 */
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

/** `type`: `os`, or `useriso` for an ISO of the project, from which no server can be created. @source API §2 */
export interface ImageEntry {
  readonly id: string;
  readonly name: string;
  readonly type: string;
}
