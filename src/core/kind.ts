import type { z } from 'zod';
import type { DesiredResource, Settings } from './desired.ts';
import type { Json } from './json.ts';
import type { Collection, KindName, ResourceKey } from './keys.ts';
import type { BlockCode } from './operator-questions.ts';
import type { Change, Operation, OperationId, Spend, Traffic, Verb, Warning } from './plan.ts';
import type { Conclusive, ReadPort, WriteRequest } from './ports.ts';
import type { ApiProfile } from './profile.ts';
import type { Remedy } from './remedy.ts';
import type {
  ImageEntry,
  Ip,
  Network,
  NetworkInterface,
  Project,
  Server,
  ServerType,
  ServerTypePricing,
} from './resources.ts';
import type { Binding, Intent } from './state.ts';

/** One resource on its way through a pass: wanted, bound, or both. */
export interface Subject<Value = unknown> {
  readonly key: ResourceKey;
  readonly kind: KindName;
  readonly parent?: ResourceKey;
  readonly desired?: DesiredResource<Value>;
  readonly binding?: Binding;
}

/** Types, prices and images on sale; read once in a pass, as far as the spec asks. */
export interface Catalogue {
  readonly types: readonly ServerType[];
  readonly pricing: ReadonlyMap<number, ServerTypePricing>;
  readonly images: ReadonlyMap<number, readonly ImageEntry[]>;
}

/** Everything a diff may know beside its own resource. Plain values: no I/O. */
export interface World {
  readonly project: Project;
  readonly settings: Settings;
  readonly profile: ApiProfile;
  readonly catalogue: Catalogue;
  readonly ips: readonly Ip[];
  readonly networks: readonly Network[];
  /** Every server of the project, where the profile says how to list them. */
  readonly servers?: readonly Server[];
  readonly subjects: ReadonlyMap<ResourceKey, Subject>;
  /** What each kind saw, by key; absent where nothing was there to look at. */
  readonly observed: ReadonlyMap<ResourceKey, unknown>;
  /** The API's clock, ms since the epoch. */
  readonly apiNow: number;
  /** Our own clock, wall ms: what this state's own moments are reckoned by. */
  readonly now: number;
  /** The live id that a key stands for, where there is one; whether it is still there is another question. */
  idOf(key: ResourceKey): string | undefined;
  /** Whether it was seen, and is of use: nothing can be put into or onto what a failed write left. */
  isThere(key: ResourceKey): boolean;
  /** The key that stands for a live id. Cards and what else has no id of its own are not found. */
  keyOf(kind: KindName, id: string): ResourceKey | undefined;
  subjectsOf(kind: KindName): readonly Subject[];
  /** What is inside a server. */
  childrenOf(server: ResourceKey): readonly Subject[];
  /** Servers of this file with a card in the network, by its live id. */
  serversIn(network: string): readonly ResourceKey[];
  ip(id: string): Ip | undefined;
  /** No key stands for the address. */
  isNobodys(address: Pick<Ip, 'id'>): boolean;
  /** Whether `servers` is there and lacks no server of the file that its own read shows. */
  listsServers(): boolean;
  /** Addresses attached to a server, by its live id. */
  ipsOf(server: string): readonly Ip[];
  freeIps(): readonly Ip[];
}

/** What other kinds may know of a server. */
export interface SeenServer {
  readonly id: string | undefined;
  readonly cards: readonly NetworkInterface[] | undefined;
}

/** What a diff concludes about one resource. */
export type Verdict =
  | { readonly verdict: 'unchanged' }
  /** `lost`: it was there before; its absence has to be confirmed before another one is made. */
  | { readonly verdict: 'create'; readonly changes: readonly Change[]; readonly lost?: string }
  /**
   * `drift`: the live side is not as this file left it. `file`: the file asks for something else than it did.
   * `loses`: the data that the update destroys.
   */
  | {
      readonly verdict: 'update';
      readonly changes: readonly Change[];
      readonly cause: 'drift' | 'file';
      readonly loses?: string;
    }
  /** `allowed`: the spec permits it without a further word. */
  | {
      readonly verdict: 'replace';
      readonly changes: readonly Change[];
      readonly reason: string;
      readonly allowed: boolean;
    }
  /** `byFile`: the file itself says that it goes, so nothing else has to allow it. */
  | { readonly verdict: 'delete'; readonly changes: readonly Change[]; readonly byFile?: true }
  | { readonly verdict: 'adopt'; readonly target: string; readonly reason: string }
  /** Nothing to send: the binding alone ends. */
  | { readonly verdict: 'release'; readonly reason: string; readonly gone: boolean }
  /** `identity`: whether the live resource is the key's own is in question, so nothing that depends on the key goes on. */
  | {
      readonly verdict: 'blocked';
      readonly verb: Verb;
      readonly code: BlockCode;
      readonly reason: string;
      readonly remedies: readonly Remedy[];
      readonly identity?: true;
    };

export interface Diff {
  readonly verdict: Verdict;
  readonly warnings?: readonly Warning[];
  /** Warnings of what the operation brings about: shown only in a plan that carries it out. */
  readonly consequences?: readonly Warning[];
  /** What a change of a firewall opens and closes. */
  readonly traffic?: Traffic;
  /** What goes on being billed once the operation is done. */
  readonly leftBilled?: readonly string[];
  /** What the new resource costs. */
  readonly price?: Price;
  /** The most that `price` may come to, where the file leaves a choice. */
  readonly dearest?: Price;
  /** What the deleted resource cost. */
  readonly freed?: Price;
  /** What comes with a new resource under a key of its own: the address of a server. */
  readonly alongside?: { readonly key: ResourceKey; readonly price: Price };
  /** Left out where the verb tells; a change in place may add to the bill as well. @source API §1.6 */
  readonly spend?: Spend;
}

/** Monthly, in the account's currency, where the catalogue tells; else why it is unknown. */
export type Price = { readonly known: string } | { readonly unknown: string };

/** Live ids of a kind that some key stands for already: none of them is what a write has just made. */
export type Known = (kind: KindName) => ReadonlySet<string>;

/** Free addresses that an answer to a failed creation named. */
export interface LeftBehind {
  readonly addresses: readonly { readonly id: number; readonly address: string }[];
}

/** What the reads say of a write whose end is not known. */
export type Evidence =
  /** It had its effect. `certain`: identified beyond doubt, not by difference of lists. `called`: how an operator knows it. */
  | {
      readonly verdict: 'done';
      readonly id: string;
      readonly certain: boolean;
      readonly called?: string;
      readonly facts?: Json;
    }
  /** Under way and not yet of use: look again later. */
  | { readonly verdict: 'pending'; readonly id: string; readonly facts?: Json }
  /** There, paid for, and of no use. */
  | { readonly verdict: 'failed'; readonly id: string; readonly detail: string; readonly facts?: Json }
  /**
   * Not seen. Absence needs this twice. `gone`: read by the id that the API gave it, which no list can hide.
   * `strays`: a failed creation may have left an address, so the operator is asked.
   * `left`: the answer of the creation named what is left, so it is ours: the facts for `companions`.
   */
  | {
      readonly verdict: 'not_done';
      readonly gone?: true;
      readonly strays?: boolean;
      readonly left?: LeftBehind;
    }
  /** No read shows such a resource, whether it is there or not. */
  | { readonly verdict: 'unseen'; readonly reason: string; readonly candidates: readonly string[] }
  /** Neither can be told. `candidates` are live ids an operator may choose from. */
  | { readonly verdict: 'unclear'; readonly reason: string; readonly candidates: readonly string[] };

/** What a kind reads off a 2xx: ids only, never statuses, as it may be a replay. */
export interface Accepted {
  readonly id?: string;
  readonly facts?: Json;
}

/** Where entries of a kind stand in the spec file. */
export type Placement =
  | { readonly in: Collection }
  /** Inside a server's entry; `public_ipv4` has no schema of its own there. */
  | { readonly of: 'servers'; readonly field: string };

/** Something in an entry that the schema alone cannot refuse. `path` is inside the entry. */
export interface EntryIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** It is the name of the field at the path that is wrong, not the value. */
  readonly named?: true;
}

/** One resource declared by a field of a server's entry. */
export interface ChildEntry {
  /** What follows the server's key: `firewall`, `network_interfaces.backend`. */
  readonly suffix: string;
  readonly value: unknown;
  /** Inside the field. */
  readonly path: readonly (string | number)[];
}

/** Another resource that an entry names. */
export interface Reference {
  readonly path: readonly (string | number)[];
  readonly key: ResourceKey;
}

export interface WriteContext<Value, Observed> {
  readonly subject: Subject<Value>;
  readonly observed: Observed | undefined;
  readonly world: World;
  readonly operation: Operation;
  /** Preferences refused so far for want of capacity, as `gpu_package` keys. */
  readonly exhausted: readonly string[];
}

/**
 * One sort of resource: everything that is particular to it, and nothing else.
 *
 * `observe` and `evidence` only read; `diff`, `write` and `accept` are pure. What is
 * sent, when, under which key and how often is the engine's business alone.
 */
export interface ResourceKind<Value = unknown, Observed = unknown> {
  readonly name: KindName;
  readonly placement: Placement;
  /** One YAML entry. */
  readonly schema: z.ZodType;
  /** Fields that an entry may leave out only with `id:` or `managed: false`. */
  readonly neededToCreate: readonly string[];
  /**
   * Creating one is new spending, and deleting one ends it. What the document calls neither
   * billed nor free counts as spending, and is not told as billed. @source API §1.6 @assumption A44
   */
  readonly billed: boolean | 'perhaps';
  /** How long an accepted write may take before it counts as stuck, in ms. */
  readonly deadlineMs: number;
  /**
   * How long a creation that was carried out may take to show in reads, in ms; left out where it shows at once. Until
   * then a creation that no read shows is not absent. @source API §3 rule 5
   */
  readonly showsWithinMs?: number;
  /** Not deleted with its server, but by an operation of its own after that; all other kinds inside a server go with it. */
  readonly outlivesParent?: true;
  /** Often only compared and never written. It is bound nevertheless, so that a plan can tell when it has left the file. */
  readonly comparedAlone?: true;
  /** No documented read shows one, so the id that an operator or the file gives is believed. */
  readonly unread?: true;
  /** Every send has a new idempotency key: a replay would report success without applying. */
  readonly freshKeys?: true;
  /** Created again and again, each time another resource and another incarnation: a backup. */
  readonly repeats?: true;
  /** The kind in whose list its creation shows, where that is not its own: a server shows by its address. */
  readonly seenAmong?: KindName;
  /**
   * Whether its creation takes whatever is free in this list, and could so take what another creation has made and no
   * read shows yet. `shown`: what it is to take is there, so it goes before creations that wait to be sent again.
   */
  takesFree?(subject: Subject<Value>, world: World): 'shown' | 'any' | undefined;
  /** Of several writes that are ready, the higher goes first: what closes a gap (firewalls), then what others wait for longest. */
  readonly urgency: number;

  /** For a kind inside a server: the resources that a field's value declares. */
  children?(field: unknown): readonly ChildEntry[];
  /** Rules across the fields of one entry. */
  check(entry: Value): readonly EntryIssue[];
  /** What is probably a slip, but may be meant: warned of, and sent. */
  doubts?(entry: Value): readonly EntryIssue[];
  references(entry: Value): readonly Reference[];

  /** Looks at the live side of the given subjects. Subjects with nothing to look at are left out. */
  observe(
    read: ReadPort,
    subjects: readonly Subject<Value>[],
    idOf: (key: ResourceKey) => string | undefined,
  ): Promise<ReadonlyMap<ResourceKey, Observed>>;

  diff(subject: Subject<Value>, observed: Observed | undefined, world: World): Diff;

  /** What the diff of a new one says beside one that goes with the server which is replaced. */
  replacing?(fresh: Diff, subject: Subject<Value>, before: Observed, world: World): Diff;

  /** What it costs a month as it is now; nothing where it is not there, or costs nothing. */
  priceNow?(subject: Subject<Value>, observed: Observed | undefined, world: World): Price | undefined;

  /** Declared fields that no read shows, of a resource that this state did not make: the file is believed there. */
  unseen?(subject: Subject<Value>, observed: Observed | undefined): readonly string[];

  /** The binding's next `applied`, once an operator has said that these fields are as the file says. */
  believe?(subject: Subject<Value>, fields: readonly string[]): Json;

  /** The binding's next `applied`, once an update was given up without anybody knowing whether it was carried out. */
  doubt?(binding: Binding, request: WriteRequest): Json;

  /** Keys that have to be deleted before the subject can be: the servers in a network. */
  heldBy?(subject: Subject<Value>, world: World): readonly ResourceKey[];

  /** Keys that have to be gone before the subject can be made. */
  inTheWay?(subject: Subject<Value>, world: World): readonly ResourceKey[];

  /**
   * Further "first this, then that" among a plan's operations, beside parents and references.
   *
   * @param inDoubt keys of which it is not known whether they were created: what shows in the same list waits for them
   */
  sequence?(
    operations: readonly Operation[],
    world: World,
    inDoubt: ReadonlySet<ResourceKey>,
  ): ReadonlyMap<OperationId, readonly OperationId[]>;

  /** The request that carries the operation out. */
  write(context: WriteContext<Value, Observed>): WriteRequest;
  /** The reads that evidence will be compared with. */
  preimage(context: WriteContext<Value, Observed>, read: ReadPort): Promise<Json>;
  accept(answer: Conclusive, request: WriteRequest, preimage: Json): Accepted;
  evidence(intent: Intent, read: ReadPort, known: Known): Promise<Evidence>;

  /** The binding for a resource that is there now. */
  bind(context: {
    readonly subject: Subject<Value>;
    readonly id: string;
    readonly request?: WriteRequest;
    /** The entry that the request was made of; the file may say otherwise by now. */
    readonly asked?: Value | undefined;
    readonly facts?: Json;
    readonly world: World;
  }): Pick<Binding, 'identity' | 'applied' | 'keep'>;
  /** Further resources that came with it, such as a server's address. */
  companions?(context: {
    readonly subject: Subject<Value>;
    readonly id: string;
    readonly request: WriteRequest;
    readonly asked?: Value | undefined;
    readonly preimage: Json;
    readonly facts?: Json;
    /** A fresh answer to this very request gave the id. Where evidence found it, it may have got some of what it holds later. */
    readonly named: boolean;
    readonly world: World;
    readonly at: number;
  }): readonly Binding[];
}
