import type { Json } from './json.ts';
import { type ResourceKey, retiredFrom } from './keys.ts';
import { factsOf, type KindName } from './kind-facts.ts';
import type { Verb } from './plan.ts';
import type { TaskId } from './resources.ts';

/** Something that exists in the project: a resource, or the project as a whole. */
export interface LiveObject {
  readonly kind: KindName | 'project';
  /** The API's id, as text. */
  readonly id: string;
  /** The live id of the server that the object is inside. */
  readonly parentId?: string | undefined;
}

/** A server as a live object. @param id the live id */
export function serverObject(id: string | number) {
  return { kind: 'server', id: String(id) } as const satisfies LiveObject;
}

/** A public address as a live object, attached or free. @param id the live id, not the IPv4 text */
export function addressObject(id: string | number) {
  return { kind: 'ip', id: String(id) } as const satisfies LiveObject;
}

/** A network as a live object. @param id the live id */
export function networkObject(id: string | number) {
  return { kind: 'network', id: String(id) } as const satisfies LiveObject;
}

/** @param id the UTC timestamp of the backup @param server the live id of its server @source API §2 */
export function backupObject(id: string, server: string) {
  return { kind: 'backup', id, parentId: server } as const satisfies LiveObject;
}

/** The object of the claim on an unidentified server. */
export function unidentifiedServer(key: ResourceKey) {
  return { kind: 'project', id: key } as const satisfies LiveObject;
}

/**
 * How an entry got a resource that neither an operator nor the spec has confirmed. `found`: under an idempotency key, so that
 * another spec may manage the resource. `taken`: under a key that the resource had before, so that the entry may mean
 * another resource.
 */
export type Recovered = 'found' | 'taken';

/**
 * Who holds an object that is not bound to a key. An object has one holder at most: a binding, or one of these. An
 * object passes from one holder to the next in one transaction.
 */
export type Holder =
  /**
   * Not of this spec: the operator said so, or `unmanaged: ignore` did. `formerKeys`: the keys answered with the object.
   * `before`: the holder before, which has the object again after `ignore --undo`.
   */
  | {
      readonly is: 'ignored';
      readonly by: 'operator' | 'file';
      readonly formerKeys?: readonly ResourceKey[];
      readonly before?: Extract<Holder, { readonly is: 'found' | 'released' }>;
    }
  /**
   * Its binding to the key ended, and the object stays unchanged. If the entry of the key returns, it takes the object
   * back. `formerKeys`: the keys that were bound to the object before. `recovered`: no operator has confirmed that the
   * object belongs to this spec. `applied`: as in the binding.
   */
  | {
      readonly is: 'released';
      readonly by: 'operator' | 'file';
      readonly formerKey: ResourceKey;
      readonly formerKeys?: readonly ResourceKey[];
      readonly recovered?: Recovered;
      readonly applied?: Json;
    }
  /**
   * The idempotency key of `key` was answered with it; bound once approved. `askedFor`: the entry for which that earlier
   * key of its line was asked. `formerKeys`: other entries, whose key was answered with the same id. `taskId`: of its
   * creation. `scope`: of the spec whose key that was.
   */
  | {
      readonly is: 'found';
      readonly key: ResourceKey;
      readonly askedFor?: ResourceKey;
      readonly formerKeys?: readonly ResourceKey[];
      readonly taskId?: TaskId;
      readonly scope?: string;
    }
  /** A backup whose server is gone: no read shows the backup, and it stays billed. @source API §1.5 */
  | { readonly is: 'leftover'; readonly formerKey: ResourceKey }
  /**
   * Of the project, and its id is `key`: an earlier state used an idempotency key of `key` for a server that neither an
   * answer nor a read shows. The server may exist, also as that of another entry. `incarnation`: of the idempotency key;
   * left out if there are several. `settled`: the operator has named the server, or found none. The key is not asked again.
   */
  | {
      readonly is: 'unidentified';
      readonly key: ResourceKey;
      readonly incarnation?: string;
      readonly settled?: true;
    }
  /** Of the project: it has been seen without unmanaged objects, or they were ignored. Unmanaged objects came later. */
  | { readonly is: 'baseline' }
  /** Of the project: the plan that waits for the operator's approval. */
  | { readonly is: 'awaiting_approval'; readonly digest: string }
  /**
   * Of the project: the plan that the operator has approved. A reconciliation that makes the plan again adds its
   * operations, by content, and the digest of its spec.
   */
  | {
      readonly is: 'approved';
      readonly digest: string;
      readonly operations?: readonly string[];
      readonly desired?: string;
      /** The newest write of each of their keys, by id: the approval has covered the later writes. */
      readonly before?: readonly string[];
    }
  /** Of the project: the API refuses a class of writes, and no later answer has shown that the refusal is over. */
  | ({ readonly is: 'paused' } & RefusedClass);

/** The writes that a refusal is about, in addition to its own write. */
export type PauseScope =
  /** 402: all writes that add spending. */
  | 'spending'
  /** 403: writes of the same name. */
  | 'operation'
  /** 401, 405, 415, and a token that may only read: every write. */
  | 'everything';

/** The refusal of a class of writes. */
export interface RefusedClass {
  readonly scope: PauseScope;
  /** The kind and the verb of the refused write. Under `operation`, the class has no other writes. */
  readonly kind: KindName;
  readonly verb: Verb;
  readonly code: string;
  readonly reason: string;
  /** Names the token that was refused. */
  readonly token: string;
  /** The name of the refused write. */
  readonly name?: string;
  /** The project was seen in another status than Active since. */
  readonly unpaid?: true;
}

/** Whether the holder keeps the object outside this spec: no key is bound to the object, and it stays unchanged. */
export function isForeign<Any extends { readonly is: string }>(
  holder: Any,
): holder is Extract<Any, { readonly is: 'ignored' | 'released' }> {
  return holder.is === 'ignored' || holder.is === 'released';
}

/** The claim on an object of the line of an entry, which takes the object back in place of a purchase. */
export type HeldClaim = Claim & { readonly holder: Extract<Holder, { readonly is: 'found' | 'released' }> };

/** The keys of a held object, the last one first. A retiring server counts for its entry. */
export function heldKeysOf({ holder, kind }: HeldClaim): readonly [ResourceKey, ...ResourceKey[]] {
  if (holder.is === 'found') return [holder.key, ...(holder.askedFor === undefined ? [] : [holder.askedFor])];
  const { formerKey, formerKeys = [] } = holder;
  const entry = factsOf(kind).container ? retiredFrom(formerKey) : undefined;
  return [entry ?? formerKey, ...formerKeys];
}

/** Whether an entry may take the claimed object back, or adopt it, in place of a purchase. */
export function isHeldClaim(claim: Claim): claim is HeldClaim {
  return claim.holder.is === 'found' || claim.holder.is === 'released';
}

/** The operator has neither named the server nor said that there is none. */
export function isUnidentified(
  claim: Claim,
): claim is Claim & { readonly holder: Extract<Holder, { readonly is: 'unidentified' }> } {
  return claim.holder.is === 'unidentified' && claim.holder.settled !== true;
}

/** The claims on servers and addresses outside this spec. */
export function foreignClaims(claims: Iterable<Claim>): readonly Claim[] {
  return [...claims].filter(({ kind, holder }) => factsOf(kind).bought && isForeign(holder));
}

/** A server that was found under its idempotency key. It is unmanaged unless an entry adopts it. */
export function isFoundServer({ kind, holder }: Claim): boolean {
  return factsOf(kind).container === true && holder.is === 'found';
}

/** A holder other than a binding: durable, journaled, and never two for one object. */
export interface Claim extends LiveObject {
  /** Distinguishes the object from a later one with the same id. @assumption A17 */
  readonly identity: Readonly<Record<string, string>>;
  readonly holder: Holder;
  /** Wall time in ms. */
  readonly at: number;
  /** When a list first lacked the object, wall time in ms. */
  readonly firstMissingAt?: number;
}

/**
 * The name of an object, by which all claims and bindings are unique. An address has an id of its own, wherever it is; a
 * server image that was answered without an id goes by the name that it was asked for with, and others may have that.
 *
 * @assumption A51
 */
export function objectName(object: Named): string {
  const { kind, id, parentId, key, identity } = object;
  const { unlisted, independent } = factsOf(kind);
  if (unlisted && identity?.name === id) return `${kind} ${id} of ${key}`;
  return parentId === undefined || independent ? `${kind} ${id}` : `${kind} ${parentId}/${id}`;
}

/** Of a binding, the key and the identity count too. */
type Named = LiveObject & {
  readonly key?: ResourceKey;
  readonly identity?: Readonly<Record<string, string>>;
};
