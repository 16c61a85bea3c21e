import type { z } from 'zod';
import type { AppliedValues, Catalogue, PriceSource } from './catalogue.ts';
import type { LiveObject } from './claims.ts';
import type { BlockCode } from './codes.ts';
import type { Desired, DesiredResource, EntryFields, Settings } from './desired.ts';
import type { Evidence, SentWrite } from './evidence.ts';
import type { Json } from './json.ts';
import type { ResourceKey } from './keys.ts';
import type { ChildEntry, EntryIssue, Reference, SectionTraits } from './kind-entry.ts';
import type { KindName } from './kind-facts.ts';
import type { Change, Operation, OperationId, Spend, Traffic, Verb, Warning } from './plan.ts';
import type { Conclusive, ReadPort, StaleReads, WriteName, WriteRequest } from './ports.ts';
import type { Preimage } from './preimage.ts';
import type { ApiProfile } from './profile.ts';
import type { Remedy } from './remedy.ts';
import type { Ip, Network, NetworkInterface, Project, Server } from './resources.ts';
import type { Binding, Facts } from './state.ts';

/** One resource during a reconciliation: the spec declares the resource, the state binds it, or both. */
export interface Subject<Value = EntryFields> {
  readonly key: ResourceKey;
  readonly kind: KindName;
  readonly parent?: ResourceKey;
  readonly desired?: DesiredResource<Value>;
  readonly binding?: Binding;
}

/** The observed side of a world. */
export interface Observations {
  readonly ips: readonly Ip[];
  readonly networks: readonly Network[];
  /** Every server of the project, where the profile enables a list of servers. */
  readonly servers?: readonly Server[];
  /** The observation of each kind, by key; absent where the kind had nothing to observe. */
  readonly observed: ReadonlyMap<ResourceKey, Seen>;
}

/** By write, the fields of a creation whose refused values a proof shows. @assumption A73 */
export type ProofChecks = Readonly<Partial<Record<WriteName, readonly string[]>>>;

/** The facts that a refresh collects; a world derives all other answers from them. */
export interface WorldParts extends Observations {
  readonly project: Project;
  readonly settings: Settings;
  readonly expiry?: Pick<Desired, 'expires' | 'expired'>;
  readonly profile: ApiProfile;
  readonly catalogue: Catalogue;
  readonly subjects: ReadonlyMap<ResourceKey, Subject>;
  /**
   * The fields of a creation whose refused values a proof shows, by write. A write is left out before its first proof.
   *
   * @assumption A73
   */
  readonly proofChecks?: ProofChecks;
  /** The API's clock, ms since the epoch. */
  readonly apiNow: number;
  /** Our own clock, wall ms: the clock of the moments that this state stores. */
  readonly now: number;
}

/** All facts that a diff may use in addition to its own resource. The facts are plain values: a diff does no I/O. */
export interface World extends WorldParts {
  /** The live id that a key is bound to, if there is one. The live resource may be gone. */
  idOf(key: ResourceKey): string | undefined;
  /** Whether the resource was observed and is usable: nothing can be attached to the remains of a failed write. */
  isThere(key: ResourceKey): boolean;
  /**
   * The key that is bound to a live id. Network interfaces and other resources without an id of their own are not
   * found.
   */
  keyOf(object: LiveObject): ResourceKey | undefined;
  subjectsOf(kind: KindName): readonly Subject[];
  serverSubjects(): readonly Subject[];
  /** The resources inside a server. */
  childrenOf(server: ResourceKey): readonly Subject[];
  /** Servers of this spec with a network interface in the network, by the live id of the network. */
  serversIn(network: string): readonly ResourceKey[];
  ip(id: string): Ip | undefined;
  /** No key is bound to the address. */
  isUnbound(address: Pick<Ip, 'id'>): boolean;
  /** Whether `servers` is present and contains every server of the spec that its own read shows. */
  listsServers(): boolean;
  /** Addresses attached to a server, by its live id. */
  ipsOf(server: string): readonly Ip[];
  /** The addresses that an object holds: those of a server, or an address itself. */
  addressesOf(object: LiveObject): readonly Ip[];
  /** The object as an operator knows it: an address by its value, others by their id. */
  nameOf(object: LiveObject): string;
  freeIps(): readonly Ip[];
}

/** The part of an observation that parts outside its kind use. Only the kind knows all of the observation. */
export interface Seen {
  /** The live id; `undefined` where the resource does not exist. */
  readonly id: string | undefined;
  /** The network interfaces of the server; `undefined` where the server does not exist. */
  readonly interfaces?: readonly NetworkInterface[] | undefined;
  /** The live resources with the name of the entry, of a kind whose names are unique. */
  readonly sameName?: readonly { readonly id: number | string; readonly name: string }[];
  /** The ids of live resources that no key is bound to, of a kind whose list no other part of a world holds. */
  readonly unbound?: readonly string[];
  /** Whether a firewall filters now. */
  readonly inForce?: boolean;
}

/**
 * Which half of a replacement comes first. `create_first`: the old resource is deleted after the new one and its parts
 * are in place, so a refusal costs nothing. `delete_first`: the new one needs something that the old one holds.
 */
export type ReplacementOrder = 'create_first' | 'delete_first';

/** The conclusion of a diff about one resource. */
export type Verdict =
  | { readonly verdict: 'unchanged' }
  /** `lost`: the resource existed before. Its absence must be confirmed before another one is created. */
  | { readonly verdict: 'create'; readonly changes: readonly Change[]; readonly lost?: string }
  /**
   * `drift`: the live resource differs from the values that this spec applied last. `file`: the spec has other values
   * now.
   * `loses`: the data that the update destroys.
   */
  | {
      readonly verdict: 'update';
      readonly changes: readonly Change[];
      readonly cause: 'drift' | 'file';
      readonly loses?: string;
    }
  /**
   * `allowed`: the spec permits the replacement without a confirmation. `obstacle`: why the resource cannot be deleted
   * now. An operator removes it only for a replacement that nothing else blocks: a later run would put it back.
   */
  | {
      readonly verdict: 'replace';
      readonly changes: readonly Change[];
      readonly reason: string;
      readonly allowed: boolean;
      readonly order: ReplacementOrder;
      readonly obstacle?: Refusal;
    }
  /** `byFile`: the spec itself asks for the deletion, so no setting has to permit it. */
  | { readonly verdict: 'delete'; readonly changes: readonly Change[]; readonly byFile?: true }
  | { readonly verdict: 'adopt'; readonly target: string; readonly reason: string }
  /** Nothing is sent: only the binding ends. */
  | { readonly verdict: 'release'; readonly reason: string; readonly gone: boolean }
  /** `identity`: the live resource may not be the key's own, so every operation that depends on the key waits. */
  | (Refusal & { readonly verdict: 'blocked'; readonly verb: Verb; readonly identity?: true });

/** Why a kind cannot carry an operation out. */
export interface Refusal {
  readonly code: BlockCode;
  readonly reason: string;
  readonly remedies: readonly Remedy[];
}

/** The difference between a resource and its entry, with the effects of the operation that removes the difference. */
export interface Diff {
  readonly verdict: Verdict;
  /** The API still works on the creation of the bound resource. */
  readonly pending?: true;
  readonly warnings?: readonly Warning[];
  /** Warnings about the effects of the operation: shown only in a plan that carries the operation out. */
  readonly consequences?: readonly Warning[];
  /** The ports that a change of a firewall opens and closes. */
  readonly traffic?: Traffic;
  /** The resources that are still billed after the operation. */
  readonly leftBilled?: readonly string[];
  /** The price of the new resource. */
  readonly price?: Price;
  /** The highest possible `price`, where the spec leaves a choice. */
  readonly dearest?: Price;
  /** The price of the deleted resource. */
  readonly freed?: Price;
  /** A resource that is created together with a new one, under a key of its own: the address of a server. */
  readonly alongside?: { readonly key: ResourceKey; readonly price: Price };
  /** Left out where the verb decides; a change in place may add to the bill as well. @source API §1.6 */
  readonly spend?: Spend;
}

/**
 * Monthly, in the account's currency, where the catalogue has a price; else the reason why the price is unknown.
 * `assumed`: the reason why the live resource may have another price.
 */
export type Price = { readonly known: string; readonly assumed?: string } | { readonly unknown: string };

/** Live ids of a kind that are bound to a key already: none of them is the result of the write in question. */
export type Known = (kind: KindName) => ReadonlySet<string>;

/** The facts that a kind takes from a 2xx: ids only, never statuses, because the answer may be a replay. */
export interface Accepted {
  readonly id?: string;
  readonly facts?: Facts;
}

/** The facts from which a kind makes a request. `observed`: `undefined` where the kind had nothing to observe. */
export interface WriteContext<Value = EntryFields, Observed = Seen> {
  readonly subject: Subject<Value>;
  readonly observed: Observed | undefined;
  readonly world: World;
  readonly operation: Pick<Operation, 'key' | 'kind' | 'verb' | 'changes' | 'target' | 'replacement'>;
  /** The preferences that the API has refused so far for want of capacity, as `gpu_package` keys. */
  readonly exhausted: readonly string[];
}

/**
 * One kind of resource, with everything that is particular to the kind. Plain facts about a kind that other parts need
 * are in `kind-facts.ts`.
 *
 * `observe` and `evidence` only read; all other functions are pure. The engine alone decides
 * which writes are sent, when, how often, and under which idempotency key.
 */
export interface ResourceKind<Value = EntryFields, Observed = Seen, Before extends Preimage = Preimage> {
  readonly name: KindName;
  readonly entry: EntryTraits<Value>;
  readonly billing: BillingTraits<Value, Observed>;
  readonly timing: TimingTraits;
  /**
   * Every server has the resource, and its id is the id of the server: a firewall. A write replaces all of it, so each
   * send has a new idempotency key: a replay would report success without applying. A resource that is only compared is
   * bound nevertheless, so that a plan can report that the entry left the spec.
   */
  readonly setting?: true;

  /** Reads the live side of the given subjects. Subjects without a live side are left out. */
  observe(
    read: ReadPort,
    subjects: readonly Subject<Value>[],
    idOf: (key: ResourceKey) => string | undefined,
  ): Promise<ReadonlyMap<ResourceKey, Observed>>;

  /** @param replaced the resource of the same key in the server that is replaced: the new server does not have it yet */
  diff(
    subject: Subject<Value>,
    observed: Observed | undefined,
    world: World,
    replaced?: Observed | undefined,
  ): Diff;

  readonly writes: WriteTraits<Value, Observed, Before>;

  /** The binding for a resource that exists now. */
  bind(context: BindContext<Value>): Pick<Binding, 'identity' | 'applied' | 'keep'>;

  /** Of a kind whose creation concerns other resources as well. */
  readonly creation?: CreationTraits<Value, Before>;
  /** Of a kind whose operations wait for operations that are neither of its parent nor of its references. */
  readonly order?: OrderTraits<Value>;
  /** Of a kind with fields that no read shows. */
  readonly unseen?: UnseenTraits<Value, Observed>;
  /** Of a kind whose entry may list preferences for want of capacity. */
  readonly preferences?: PreferenceTraits<Value>;
}

/** The entry of the spec. */
export interface EntryTraits<Value = EntryFields> {
  /** One YAML entry. */
  readonly schema: z.ZodType;
  /** Only of a kind that has a top-level map. */
  readonly section?: SectionTraits;
  /** Fields that an entry may leave out only with `id:` or `managed: false`. */
  readonly neededToCreate?: readonly string[];
  /**
   * For a kind inside a server: the resources that a field's value declares. Left out where the value is the entry of
   * one resource.
   */
  children?(field: unknown): readonly ChildEntry[];
  /** Rules across the fields of one entry. */
  check?(entry: Value): readonly EntryIssue[];
  /** Probable mistakes that may be intended: vdcsync warns about them, and sends them. */
  cautions?(entry: Value): readonly EntryIssue[];
  references?(entry: Value): readonly Reference[];
  /**
   * The content that entries with different keys have in common, of an entry or of a binding without one; empty if nothing
   * distinguishes the resources.
   */
  likeness?(subject: Subject<Value>): string | undefined;
}

/** The costs of a resource. */
export interface BillingTraits<Value = EntryFields, Observed = Seen> {
  /**
   * Creating a resource is new spending, and deleting it ends the spending. A kind that the document calls neither
   * billed nor free counts as spending, but no output calls it billed. @source API §1.6 @assumption A44
   */
  readonly billed: boolean | 'perhaps';
  /** The monthly price of a resource by its binding alone, also of one that is gone. @param server its server */
  recordedPrice?(bound: AppliedValues, prices: PriceSource, server: AppliedValues | undefined): Price;
  /** The present monthly price; `undefined` where the resource does not exist, or is free. */
  priceNow?(subject: Subject<Value>, observed: Observed | undefined, world: World): Price | undefined;
}

/** The duration and the precedence of writes. */
export interface TimingTraits {
  /** How long an accepted write may take before it counts as stuck, in ms. */
  readonly deadlineMs: number;
  /**
   * The longest time in ms until a created resource shows in reads; left out where it shows at once. Until
   * then, a creation that no read shows is not absent. @source API §3 rule 5
   */
  readonly showsWithinMs?: number;
  /**
   * Writes that are ready take turns in proportion to their urgency, after the firewalls. Writes that others wait for
   * have most turns. The interfaces have some, because all of them at the end would exceed the read budget.
   */
  readonly urgency: number;
}

/** One write, from the request to the evidence of its effect. */
export interface WriteTraits<Value = EntryFields, Observed = Seen, Before extends Preimage = Preimage> {
  /** The request that carries the operation out. */
  request(context: WriteContext<Value, Observed>): WriteRequest;
  /** The answers that a sent request makes untrue. */
  stale(request: WriteRequest): StaleReads;
  /** The reads that evidence is compared with later; left out where evidence needs none. */
  preimage?(context: WriteContext<Value, Observed>, read: ReadPort): Promise<Before>;
  accept(answer: Conclusive, request: WriteRequest, preimage: Before): Accepted;
  evidence(sent: SentWrite<Before>, read: ReadPort, known: Known): Promise<Evidence>;
}

/** The other resources that a creation concerns. */
export interface CreationTraits<Value = EntryFields, Before extends Preimage = Preimage> {
  /** Whether the created resource takes the former resource of this child key again, which remained without its parent. */
  takesAgain?(subject: Subject<Value>, child: ResourceKey, world: World): boolean;
  /**
   * Whether the creation takes any free address. It could then take an address that another creation made
   * and that no read shows yet. `shown`: reads show the address to take, so this creation goes before creations that
   * wait for a resend.
   */
  takesFree?(subject: Subject<Value>, world: World): 'shown' | 'any' | undefined;
  /** Of a kind with a list: the resources of the kind that this spec does not manage. */
  unmanaged?(subject: Subject<Value>, world: World): readonly UnmanagedResource[];
  /** Further resources that were created together with the resource, such as a server's address. */
  companions?(context: CompanionContext<Value, Before>): readonly Binding[];
}

interface UnmanagedResource {
  readonly id: string;
  /** An earlier state may have created it for the entry, under another name. */
  readonly alike?: boolean;
}

/** The order of operations, in addition to parents and references. */
export interface OrderTraits<Value = EntryFields> {
  /**
   * Keys that must be gone before the subject can be created or deleted: the servers in a network that is deleted, the
   * address that a new server would take.
   */
  goneBefore?(subject: Subject<Value>, verb: 'create' | 'delete', world: World): readonly ResourceKey[];
  /**
   * Further dependencies among a plan's operations, some of which are of this kind.
   *
   * @param unconfirmed keys whose creation is unconfirmed: operations that show in the same list wait for them
   */
  sequence?(
    operations: readonly Operation[],
    world: World,
    unconfirmed: ReadonlySet<ResourceKey>,
  ): ReadonlyMap<OperationId, readonly OperationId[]>;
}

/** The fields that no read shows. */
export interface UnseenTraits<Value = EntryFields, Observed = Seen> {
  /** The declared ones, of a resource that this state did not create: vdcsync believes the spec. */
  fields(subject: Subject<Value>, observed: Observed | undefined): readonly string[];
  /** The binding's next `applied`, once an operator has confirmed that the values of these fields match the spec. */
  believe(subject: Subject<Value>, fields: readonly string[]): Json;
  /** The binding's next `applied`, once an operator has given up an update whose outcome is unknown. */
  doubt?(binding: Binding, request: WriteRequest): Json;
}

/** The preferences of an entry: if no host has capacity for one of them, the next one is requested. */
export interface PreferenceTraits<Value = EntryFields> {
  /** The most preferred one comes first. */
  of(entry: Value): readonly string[];
  /** The one that the request asks for. */
  sent(request: WriteRequest): string | undefined;
}

/** The facts about a resource that exists now. */
export interface BindContext<Value> {
  readonly subject: Subject<Value>;
  readonly id: string;
  readonly request?: WriteRequest;
  /** The entry that the request was made from; the spec may have another entry by now. */
  readonly asked?: Value | undefined;
  readonly facts?: Facts;
  /** An operator or the answer to an unknown send named the resource: another copy of the state may have created it. */
  readonly mayBeOlder?: boolean;
  readonly world: World;
}

/** The facts about a resource that a write of this state created. */
export interface CompanionContext<Value, Before extends Preimage = Preimage> extends BindContext<Value> {
  readonly request: WriteRequest;
  readonly preimage: Before;
  /** A fresh answer to this very request gave the id. A resource that evidence found may have parts from later. */
  readonly named: boolean;
  readonly at: number;
}
