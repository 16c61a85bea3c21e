import { namesIn } from './json.ts';
import type { UndocumentedOperation } from './profile.ts';

/**
 * The facts about a kind that every part of vdcsync needs, as plain values. The schema, the reads and the writes of a
 * kind are in `reconcilers`.
 */
export interface KindFacts {
  /** The kind as an operator calls it; the name of the kind where left out. */
  readonly noun?: string;
  /** The top-level map of the spec that holds the entries of the kind. */
  readonly collection?: string;
  /** The field of a server's entry that declares the resources of the kind inside the server. */
  readonly field?: string;
  /** The map whose entry gives the last name in the key of a resource inside a server: a network interface. */
  readonly namedAfter?: string;
  /** Resources of other kinds are inside it: a server. */
  readonly container?: true;
  /** The field of the identity by which an operator knows the resource, in place of its id. */
  readonly knownBy?: 'address';
  /**
   * The lists of the project show its unmanaged objects, and an unmanaged object may be the result of a creation. So a
   * creation waits while the project has unmanaged objects.
   */
  readonly bought?: true;
  /** Billed one by one, as a binding of the state. */
  readonly counted?: true;
  /**
   * Inside a server it is an object of the project nevertheless: the id is unique in the project, and the resource is
   * created with its server, but not deleted with it.
   */
  readonly independent?: true;
  /**
   * No documented read shows resources of the kind. An answer may lack the id too: the name is then the id, and several
   * resources may have that name. @assumption A51
   */
  readonly unlisted?: true;
  /** A public server is exposed until this resource is created and enabled. */
  readonly endsExposure?: true;
  /** The form of its ids, and an example of an id. @source API §2: integers are identifiers unless stated otherwise */
  readonly ids?: { readonly form: RegExp; readonly example: string };
  /** Stays billed after the deletion of its server, and no read shows it then. @source API §1.5 */
  readonly staysBilled?: true;
  /** A deletion counts for `settings.max_deletions`; in a replacement only if it counts `always`. */
  readonly deletion?: 'always' | 'alone';
  /**
   * Created again after some time. Each one is another resource and another incarnation, and a new one is no sign of a
   * change outside vdcsync: a backup. One that is not the newest of its server has its id as the last name in its key.
   */
  readonly repeats?: true;
  /** The data that is deleted with the resource. */
  readonly lost?: string;
  /** The effect of a replacement, where no data is lost. */
  readonly impact?: string;
  /** The state of the resource that its deletion waits for. */
  readonly awaits?: string;
  /**
   * How far its operations can be undone, where not wholly. `removedBy`: the operation of a profile that can delete the
   * created resource. `grown`: fields that a change in place can make larger, and smaller only with a loss of data.
   */
  readonly undo?: {
    readonly created?: 'stays';
    readonly removedBy?: UndocumentedOperation;
    readonly deleted?: 'another_address' | 'data_lost';
    readonly grown?: readonly string[];
  };
}

const integer = /^\d+$/;

const table = {
  network: {
    collection: 'networks',
    ids: { form: integer, example: '32' },
    impact: 'the network gets another id, and its servers lose it meanwhile',
    awaits: 'empty',
  },
  ip: {
    noun: 'address',
    collection: 'ips',
    field: 'public_ipv4',
    knownBy: 'address',
    bought: true,
    independent: true,
    ids: { form: integer, example: '5001, or an address such as 203.0.113.10' },
    awaits: 'detached',
    undo: { deleted: 'another_address' },
  },
  iso: { collection: 'isos', ids: { form: /^uiso-\d{1,10}$/, example: 'uiso-12' } },
  server: {
    collection: 'servers',
    container: true,
    bought: true,
    counted: true,
    ids: { form: integer, example: '2001' },
    lost: 'all data on its disks',
    undo: { deleted: 'data_lost', grown: ['disk_gb', 'plan_id'] },
  },
  network_interface: {
    field: 'network_interfaces',
    namedAfter: 'networks',
    deletion: 'alone',
    undo: { created: 'stays', removedBy: 'remove_network_interface', deleted: 'another_address' },
  },
  firewall: { field: 'firewall', endsExposure: true },
  backup: {
    field: 'backup',
    counted: true,
    staysBilled: true,
    deletion: 'always',
    repeats: true,
    undo: { created: 'stays', deleted: 'data_lost' },
  },
  backup_policy: { field: 'backup_policy' },
  drive: { field: 'iso' },
  server_image: {
    collection: 'server_images',
    counted: true,
    unlisted: true,
    undo: { created: 'stays' },
  },
} as const satisfies Record<string, KindFacts>;

/** A sort of resource, by the API's own noun. */
export type KindName = keyof typeof table;

type CollectionOf<Facts> = Facts extends { readonly collection: infer Name } ? Name : never;

/** A top-level map of the spec that holds resources. */
export type Collection = CollectionOf<(typeof table)[KindName]>;

/** Every kind, in the order of the table. */
export const kindNames: readonly KindName[] = namesIn(table);

/** The facts of a kind of the table, whose maps are maps of the spec. */
interface FactsOfKind extends KindFacts {
  readonly collection?: Collection;
  readonly namedAfter?: Collection;
}

/** `project` has no facts: only claims are on the project as a whole. */
export function factsOf(kind: KindName | 'project'): FactsOfKind {
  return kind === 'project' ? {} : table[kind];
}

/** Whether an operator knows the resource by its address. */
export function isAddress(kind: KindName | 'project'): boolean {
  return factsOf(kind).knownBy === 'address';
}

/** The kinds that have a fact. */
export function kindsWith(fact: keyof KindFacts): readonly [KindName, ...KindName[]] {
  return kindNames.filter((kind) => factsOf(kind)[fact] !== undefined) as [KindName, ...KindName[]];
}

/** The top-level maps of the spec, in the order of the kinds. */
export const collections = kindNames.flatMap((kind) => factsOf(kind).collection ?? []);
