import type { Range } from './dice.ts';

/**
 * Everything the emulated service remembers, as plain JSON. A snapshot holds the world, the data file holds
 * the world, and `GET /_emulator/world` shows the world.
 * Times end in `Ms` and count emulator milliseconds since the Unix epoch.
 */
export interface World {
  format: typeof WORLD_FORMAT;
  version: 1;
  seed: string;
  dice: number;
  /** The emulator's clock showed `emulatorMs` at `callerMs` of the caller's clock, and runs `speed` times faster. */
  clock: { callerMs: number; emulatorMs: number; speed?: number };
  /** Belongs to the account, and so to all its projects. `@source API §1.3` */
  account: { sshKeys: SshKey[] };
  serverTypes: ServerType[];
  projects: Project[];
  tokens: Token[];
  buckets: Record<string, { reads: Bucket; writes: Bucket }>;
  nextId: { server: number; ip: number; network: number; iso: number; image: number };
  /** How many addresses each pool has given out: one that was released comes round again last. */
  poolCursors: Record<string, number>;
  executions: Execution[];
  late: LateRequest[];
  /** How often each rule of faults (by its place in the list) fitted and acted. */
  faultHits: Record<string, { fitted: number; acted: number }>;
}

/** Identifies a data file as a world of the emulator. */
export const WORLD_FORMAT = 'vdcsync-emulator-world';

/** The first id of each sort in a new world. The default network of each project has one. */
export const FIRST_IDS: Readonly<World['nextId']> = { server: 2001, ip: 5001, network: 31, iso: 1, image: 1 };

/** A network as a project lists it. */
export function newNetwork(
  { id, name, cidr }: Pick<Network, 'id' | 'name' | 'cidr'>,
  isDefault = false,
): Network {
  return { id, name, cidr, isDefault, deleting: false };
}

interface SshKey {
  id: number;
  name: string;
}

/** A type in the catalogue. `packages` are for `fixed` types, and `plans` for `plans` types. `@source API §2` */
export interface ServerType {
  id: number;
  name: string;
  pricingMode: 'sliders' | 'plans' | 'fixed';
  gpu: boolean;
  description: string;
  /** Which addresses serve servers of this type. */
  pool: string;
  packages: GpuPackage[];
  plans: Plan[];
  images: { id: string; name: string }[];
}

/** A size with graphics cards on sale. Prices are monthly; a `withdrawn` package is in no list. `@source API §2` */
export interface GpuPackage {
  key: string;
  name: string;
  gpuModel: string;
  gpuCount: number;
  cores: number;
  memoryGb: number;
  diskGb: number;
  price: number;
  backupPrice: number;
  /** Hosts with free graphics cards for this package. */
  capacity: number;
  withdrawn: boolean;
}

/** A size on sale, for the types whose `pricingMode` is `plans`. */
export interface Plan {
  id: number;
  name: string;
  cores: number;
  memoryMb: number;
  diskGb: number;
}

/**
 * The time in which a billed object existed with one size, as the service meters it for its invoices. No answer of the
 * API shows it: tests compare it with the bill of a client. `@assumption A74`
 */
export interface MeterReading {
  readonly kind: 'server' | 'ip';
  readonly id: number;
  /** Of a server: its type, then cores, memory in MB, disk in GB, plan and package. */
  readonly size: readonly (number | string | null)[];
  readonly fromMs: number;
  toMs: number | null;
}

/** `unpaid`: the owner has an unpaid invoice. */
export type Standing = 'active' | 'suspended' | 'unpaid';

/** A project with all its resources. `answers`: those stored under idempotency keys. `goneServers`: deleted ids. */
export interface Project {
  id: number;
  name: string;
  standing: Standing;
  /** The address pool of the project's own location. */
  pool: string;
  servers: Server[];
  ips: Ip[];
  networks: Network[];
  isos: Iso[];
  /** Backups outlive their server, and stay billed. `@source API §1.5` */
  backups: Backup[];
  images: { id: string; name: string; serverId: number }[];
  tasks: Task[];
  answers: StoredAnswer[];
  goneServers: number[];
  /** Until then an image operation is being submitted. */
  libraryBusyUntilMs: number;
  failNextTasks: number;
  /** Absent in older data files. */
  meter?: MeterReading[];
}

/** `cores`, `memoryMb`, `diskGb`: null if the package has the sizes. `nextCard`: the number of the next interface. */
export interface Server {
  id: number;
  name: string;
  typeId: number;
  image: string;
  status: 'creating' | 'active' | 'deleting' | 'error';
  power: boolean;
  cores: number | null;
  memoryMb: number | null;
  diskGb: number | null;
  planId: number | null;
  gpuPackage: string | null;
  sshKeys: number[];
  createdMs: number;
  interfaces: NetworkInterface[];
  nextInterface: number;
  firewall: Firewall;
  policy: BackupPolicy;
  isoInDrive: string | null;
}

/** `ips`: IPv4 addresses, of the public network interface. */
export interface NetworkInterface {
  id: string;
  public: boolean;
  networkId: number;
  ips: string[];
  /** Shown only once the creation task is done. `@assumption A28` */
  hidden: boolean;
}

/** Without rules and disabled on a new server. It filters the public network interface alone. `@source API §2` */
export interface Firewall {
  enabled: boolean;
  policyIn: string;
  policyOut: string;
  rules: Record<string, unknown>[];
}

/** `days`: `mon` to `sun`. The time of day is in UTC. `keep`: the most scheduled backups of the server. */
export interface BackupPolicy {
  enabled: boolean;
  days: string[];
  hour: number;
  minute: number;
  keep: number;
  nextRunMs: number | null;
  lastRunMs: number | null;
}

/** `serverId` null: attached to nothing, and still billed. `@source API §1.4` */
export interface Ip {
  id: number;
  address: string;
  prefix: string;
  gateway: string;
  pool: string;
  serverId: number | null;
  primary: boolean;
}

/** `deleting`: its deletion task is running. */
export interface Network {
  id: number;
  name: string;
  cidr: string;
  isDefault: boolean;
  deleting: boolean;
}

/** `failure`: the reason of a failed download. `@source API §2` */
export interface Iso {
  id: string;
  name: string;
  url: string;
  status: 'downloading' | 'available' | 'failed';
  failure: string | null;
}

/** `id`: the UTC timestamp of the backup. No read shows `sizeBytes` before the backup is available. `@source API §2` */
export interface Backup {
  id: string;
  serverId: number;
  createdMs: number;
  readyMs: number;
  status: 'creating' | 'available';
  sizeBytes: number;
  scheduled: boolean;
}

/** `outcome` and `leaves` are fixed at the start. `done`: the task has had its effect. `stuck`: the task never ends. */
export interface Task {
  id: string;
  kind: TaskKind;
  createdMs: number;
  startsMs: number;
  endsMs: number;
  outcome: 'succeeded' | 'failed';
  done: boolean;
  stuck: boolean;
  forgotten: boolean;
  leaves: Leaves;
  /** With `leaves: later`: the time from the end of the task until its effect appears. Absent in older data files. */
  appearsAfterMs?: number;
  /** Set once the task is reported as failed, and until its effect appears. `@assumption A14` */
  appearsMs?: number | null;
  effect: TaskEffect;
}

/**
 * The part that still exists after a failed task: `address` is a server's address without
 * the server; `later` shows nothing at first, and minutes later everything.
 */
export type Leaves = 'nothing' | 'everything' | 'address' | 'later';

/** The change of the world at the end of a task, with the values that a failed task needs to undo its work. */
export type TaskEffect =
  | { kind: 'create_server'; serverId: number; newIpId: number | null }
  | { kind: 'delete_server'; serverId: number }
  /** `listed`: the project's list has it already. */
  | {
      kind: 'create_network';
      networkId: number;
      name: string;
      cidr: string;
      execution: number;
      listed?: boolean;
    }
  | { kind: 'delete_network'; networkId: number }
  | { kind: 'add_card'; serverId: number; cardId: string }
  | { kind: 'remove_card'; serverId: number; cardId: string }
  | { kind: 'add_iso'; isoId: string; failure: string | null }
  | { kind: 'take_image'; imageId: string }
  /** Done at once. If the task fails, the server has the values of `before` again. */
  | { kind: 'change_server'; serverId: number; before: Partial<Server> };

type TaskKind = TaskEffect['kind'];

/** How long work takes, in emulator milliseconds: least and most. */
export type Durations = Record<TaskKind | 'backup' | 'image_submission', Range>;

/** An answer kept under an idempotency key, per project. `@source API §8` */
export interface StoredAnswer {
  key: string;
  method: string;
  path: string;
  body: string;
  sinceMs: number;
  status: number;
  headers: Record<string, string>;
  text: string;
}

/** Of one project. `expiresMs` null: no expiry. `@source API §5` */
export interface Token {
  name: string;
  projectId: number;
  level: 'read' | 'read_write';
  /** SHA-256 of the secret: the secret itself is kept nowhere. `@source API §5.2` */
  fingerprint: string;
  revoked: boolean;
  expiresMs: number | null;
  /** Operations this team member may not perform; empty for the account's owner. */
  refusedOperations: string[];
}

/** The requests in the present window of one budget. `window`: its number, counted from the epoch. `@source API §8` */
export interface Bucket {
  window: number;
  used: number;
}

/** One creation that took effect. Tests check in this list that each resource was bought once. */
export interface Execution {
  atMs: number;
  projectId: number;
  operation: string;
  idempotencyKey: string | null;
  requestId: string;
  kind: 'server' | 'ip' | 'network' | 'iso' | 'card' | 'backup' | 'image';
  /** Null while a network does not exist yet. A network interface is `server/net1`, a backup `server/timestamp`. */
  id: string | null;
}

/** A request whose client is gone and which has its effect later. */
interface LateRequest {
  atMs: number;
  projectId: number;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | null;
  /** False: it is still on its way, and the service does not know of its key yet. */
  holdsKey?: boolean;
}
