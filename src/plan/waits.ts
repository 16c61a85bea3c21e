import type { ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Blocked, Operation, OperationId } from '../core/plan.ts';
import { operationId } from '../core/plan.ts';
import { run, settleFirst } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import { type Draft, draftOne } from './draft.ts';
import { obstacles, prerequisites, restsOn, successorOf } from './order.ts';

/** The facts that decide whether an operation must wait for a key that is blocked or missing. */
interface Known {
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly world: World;
  readonly inFlight: ReadonlyMap<ResourceKey, Intent>;
  /** Keys whose binding ends without a write. */
  readonly released: ReadonlySet<ResourceKey>;
  readonly objections: ReadonlyMap<Draft, Blocked>;
}

/**
 * The operations that are not possible because another one is not: a resource that the operation needs neither exists
 * nor is being created, or a resource that blocks the operation remains. The plan holds both halves of a replacement
 * or none, because the deleted resource must be created again. The same applies to the address that is deleted for a
 * new server.
 *
 * If the live resource of a key is unconfirmed, every operation that depends on the key waits.
 */
export function hold(
  candidates: readonly Operation[],
  { kinds, world, inFlight, released, objections }: Known,
): { readonly operations: readonly Operation[]; readonly held: readonly Blocked[] } {
  const unsure = identityOpen(objections);
  const waits = new Map<OperationId, ResourceKey>();
  for (let known = -1; known !== waits.size; ) {
    known = waits.size;
    const going = new Set<OperationId>();
    for (const operation of candidates) {
      if (waits.has(operation.id)) continue;
      const waitsFor = findMissing(operation, going);
      if (waitsFor === undefined) going.add(operation.id);
      else waits.set(operation.id, waitsFor);
    }
    for (const operation of candidates) {
      const half = operation.replacement ?? successorOf(operation);
      const other = half && waits.get(half);
      if (other !== undefined && !waits.has(operation.id)) waits.set(operation.id, other);
    }
  }

  function findMissing(operation: Operation, going: ReadonlySet<OperationId>): ResourceKey | undefined {
    const comes = (key: ResourceKey) =>
      world.isThere(key) || going.has(operationId('create', key)) || going.has(operationId('adopt', key));
    const goes = (key: ResourceKey) => released.has(key) || going.has(operationId('delete', key));
    const need = operation.needs.find((id) => !going.has(id));
    return (
      restsOn(operation, kinds, world).find((key) => unsure.has(key)) ??
      prerequisites(operation, kinds, world).find((key) => !comes(key)) ??
      obstacles(operation, kinds, world).find((key) => !goes(key)) ??
      (need && keyOf(need))
    );
  }

  return {
    operations: candidates.filter(({ id }) => !waits.has(id)),
    held: candidates.flatMap((operation) => {
      const waitsFor = waits.get(operation.id);
      const half = operation.replacement !== undefined && operation.verb === 'delete';
      return waitsFor === undefined || half
        ? []
        : [dependencyBlocked(operation, waitsFor, inFlight.get(waitsFor))];
    }),
  };
}

/** The objections to drafts without an open write, each with the key that it actually waits for. */
export function objectedTo(
  objections: ReadonlyMap<Draft, Blocked>,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
): Blocked[] {
  const unmade = keysOf(objections, 'create');
  return [...objections].flatMap(([draft, objection]) =>
    inFlight.has(draft.subject.key)
      ? []
      : [unconfirmed(objection, inFlight) ?? waitsForIts(draft, objection, unmade) ?? objection],
  );
}

function keysOf(objections: ReadonlyMap<Draft, Blocked>, verb: Blocked['verb']): ReadonlySet<ResourceKey> {
  return new Set([...objections.values()].flatMap((each) => (each.verb === verb ? [each.key] : [])));
}

/** Keys whose live resource is unconfirmed: the kind reports that, or the adoption of the key is blocked. */
export function identityOpen(objections: ReadonlyMap<Draft, Blocked>): ReadonlySet<ResourceKey> {
  const open = [...objections].filter(([draft, { verb }]) => verb === 'adopt' || hasIdentityOpen(draft));
  return new Set(open.map(([, { key }]) => key));
}

/** The key that the operation depends on, and whose live resource is unconfirmed at present. */
export function restsOnOpenIdentity(
  operation: Pick<Operation, 'key' | 'verb'>,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): ResourceKey | undefined {
  return restsOn(operation, kinds, world).find((key) => {
    const subject = world.subjects.get(key);
    return subject !== undefined && hasIdentityOpen(draftOne(kinds, world, subject));
  });
}

function hasIdentityOpen({ diff: { verdict } }: Pick<Draft, 'diff'>): boolean {
  return verdict.verdict === 'blocked' && verdict.identity === true;
}

/** An address that blocks the operation may be the result of an open purchase, which must not be released. */
function unconfirmed(objection: Blocked, inFlight: ReadonlyMap<ResourceKey, Intent>): Blocked | undefined {
  if (objection.code !== 'address_not_the_only_free_one') return undefined;
  const open = [...inFlight.values()].find(({ kind, verb }) => kind === 'ip' && verb === 'create');
  return open && dependencyBlocked(objection, open.key, open);
}

/** The address that blocks the operation may be the one that the reference of the server will be bound to. */
function waitsForIts(
  { subject, kind }: Draft,
  objection: Blocked,
  unmade: ReadonlySet<ResourceKey>,
): Blocked | undefined {
  if (objection.code !== 'address_not_the_only_free_one') return undefined;
  const its = kind.references(subject.desired?.value).find(({ key }) => unmade.has(key));
  return its && dependencyBlocked(objection, its.key, undefined);
}

function keyOf(id: OperationId): ResourceKey {
  return id.slice(id.indexOf(':') + 1) as ResourceKey;
}

function dependencyBlocked(
  { key, verb, replacement }: Pick<Operation, 'key' | 'verb' | 'replacement'>,
  waitsFor: ResourceKey,
  sent: Intent | undefined,
): Blocked {
  const underWay = sent !== undefined && sent.phase !== 'blocked';
  return {
    key,
    verb: replacement === undefined ? verb : 'update',
    code: 'dependency_blocked',
    reason: `waits for ${waitsFor}, which is ${underWay ? 'under way' : 'blocked or missing'}`,
    remedies: underWay ? [run('apply')] : settleFirst(waitsFor),
  };
}
