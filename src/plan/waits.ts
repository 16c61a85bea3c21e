import { type Opening, openingFor } from '../core/calendar.ts';
import { namedAddress, type WindowVerb } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import { entryKeyOf, type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { ResourceKind, Subject, World } from '../core/kind.ts';
import { factsOf, isAddress, type KindName } from '../core/kind-facts.ts';
import { type Blocked, type Operation, operationId } from '../core/plan.ts';
import { command, edit, outside, settleFirst } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import { moment } from '../core/time.ts';
import { exposedServers } from '../core/world.ts';
import { type Draft, draftOne, type Release, releaseOf } from './draft.ts';
import type { GuardInput, Objection, PlanFacts, WaitingRename } from './objections.ts';
import { closure, endsOf, linksOf, obstacles, prerequisites, restsOn, successorsOf } from './order.ts';
import { isStep, type ReplacementTurn } from './replacements.ts';

/** The facts that decide whether an operation must wait for a key that is blocked or missing. */
interface Known {
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly world: World;
  readonly inFlight: ReadonlyMap<ResourceKey, Intent>;
  /** Keys whose binding ends without a write. */
  readonly released: ReadonlySet<ResourceKey>;
  readonly objections: ReadonlyMap<Draft, Blocked>;
  readonly turns: readonly ReplacementTurn[];
  /** Keys whose rename waits: they are not bound to the resource that the spec means. */
  readonly unnamed: ReadonlySet<ResourceKey>;
}

/**
 * The operations that are not possible because another one is not: a resource that the operation needs neither exists
 * nor is being created, or a resource that blocks the operation remains. All operations that depend on it wait too.
 *
 * If the live resource of a key is unconfirmed, every operation that depends on the key waits.
 */
export function hold(
  candidates: readonly Operation[],
  { kinds, world, inFlight, released, objections, turns, unnamed }: Known,
): { readonly operations: readonly Operation[]; readonly held: readonly Blocked[] } {
  const unsure = new Set([...identityOpen(objections), ...unnamed]);
  const present = new Map(candidates.map((each) => [each.id, each]));
  const comes = (key: ResourceKey) =>
    world.isThere(key) || present.has(operationId('create', key)) || present.has(operationId('adopt', key));
  const goes = (key: ResourceKey) =>
    released.has(key) || endsOf(key, world).some((each) => present.has(each));
  const objected = [...objections.values()].map(({ key }) => key);
  const stuck = [...inFlight.values()].flatMap(({ key, phase }) => (phase === 'blocked' ? [key] : []));
  const refused = new Set([...objected, ...stuck]);
  // A replacement that is stopped stops the ones after it.
  const stopped = new Map([...refused].filter(isStep).map((key) => [entryKeyOf(key), key]));
  const stops = new Map(
    turns.map(({ first, after }) => [first, after.flatMap((each) => stopped.get(each) ?? [])[0]]),
  );
  const lacks = ({ verb, key }: Operation) =>
    verb === 'delete'
      ? successorsOf(key, world).find((each, at) => refused.has(each) || (at === 0 && !comes(each)))
      : undefined;
  const missing = new Map(
    candidates.flatMap((operation) => {
      const key =
        restsOn(operation, kinds, world).find((each) => unsure.has(each)) ??
        prerequisites(operation, kinds, world).find((each) => !comes(each)) ??
        obstacles(operation, kinds, world).find((each) => !goes(each)) ??
        lacks(operation) ??
        stops.get(operation.id);
      return key === undefined ? [] : [[operation.id, key] as const];
    }),
  );
  const waiting = withUnusable(candidates, missing, refused, world);
  const waitsFor = (operation: Operation): ResourceKey => {
    const links = linksOf(operation).flatMap((id) => (waiting.has(id) ? (present.get(id) ?? []) : []));
    const other = links.find(({ key }) => key !== operation.key);
    const through = other !== undefined && isToRetire(other.key) ? waitsFor(other) : other?.key;
    const key = missing.get(operation.id) ?? through ?? links.map(waitsFor)[0] ?? operation.key;
    return isToRetire(key) ? entryKeyOf(key) : key;
  };
  const blockedKeys = new Set(
    [...objections.values(), ...candidates.filter(({ id }) => waiting.has(id))].map(({ key }) => key),
  );
  const stateOf = (key: ResourceKey) =>
    blockedKeys.has(key) ? 'is blocked' : world.isThere(key) ? 'stays' : 'does not exist';
  /** The replacement that waits would retire the server: no resource has the key now. */
  const isToRetire = (key: ResourceKey) => {
    const { parent = key } = takeApart(key);
    return retiredFrom(parent) !== undefined && !world.subjects.has(parent);
  };
  /** When the window opens that a key waits for, by itself or because of another key. */
  const openings = new Map<ResourceKey, string | undefined>();
  for (const { key, starts_at } of objections.values()) openings.set(key, starts_at);
  const held = candidates.filter((each) => waiting.has(each.id));
  for (let known = -1; known < openings.size; ) {
    known = openings.size;
    for (const each of held) {
      const key = waitsFor(each);
      if (openings.has(key) && !openings.has(each.key)) openings.set(each.key, openings.get(key));
    }
  }
  const isFirstHalf = ({ replacement, verb }: Operation) => replacement !== undefined && verb === 'delete';
  return {
    operations: candidates.filter(({ id }) => !waiting.has(id)),
    held: held
      .filter((each) => !isFirstHalf(each) && !isToRetire(each.key))
      .map((each) => {
        const key = waitsFor(each);
        const state = { open: inFlight.get(key), state: stateOf(key), opening: openings.get(key) };
        return dependencyBlocked(each, key, state);
      }),
  };
}

/**
 * The operations that wait, with each purchase of an address whose only users wait or are blocked: nothing is bought for
 * a server that cannot be created. `missing` gets the user that each of these purchases waits for.
 */
function withUnusable(
  candidates: readonly Operation[],
  missing: Map<Operation['id'], ResourceKey>,
  refused: ReadonlySet<ResourceKey>,
  world: World,
): ReadonlySet<Operation['id']> {
  const bought = candidates.filter(({ kind, verb, key }) => {
    return isAddress(kind) && verb === 'create' && world.subjects.get(key)?.parent === undefined;
  });
  for (;;) {
    const waiting = closure(candidates, ({ id }) => missing.has(id));
    const cannot = (key: ResourceKey) => refused.has(key) || waiting.has(operationId('create', key));
    const unusable = bought.flatMap(({ id, key }) => {
      if (waiting.has(id)) return [];
      const users = world.serverSubjects().filter(({ desired }) => namedAddress(desired?.value) === key);
      const [first] = users;
      return first !== undefined && users.every((each) => cannot(each.key)) ? [[id, first.key] as const] : [];
    });
    if (unusable.length === 0) return waiting;
    for (const [id, user] of unusable) missing.set(id, user);
  }
}

/** The rename that the entry of the key waits for. */
export function waitingRename<Held extends WaitingRename>(
  key: ResourceKey,
  waiting: readonly Held[] = [],
): Held | undefined {
  return waiting.find(({ keys }) => keys.has(entryKeyOf(key)));
}

/** A rename waits for a bound key whose resource is gone, by the same proof as for a resource without an entry. */
export function emptied(
  { blocked: { key, code } }: WaitingRename,
  { world, kinds }: Pick<GuardInput, 'world' | 'kinds'>,
): readonly Release[] {
  const subject = world.subjects.get(key);
  if (code !== 'moved_onto_bound' || subject === undefined) return [];
  const { desired: _other, ...bound } = subject;
  return releaseOf(draftOne(kinds, world, bound)).filter(({ gone }) => gone);
}

/** A replaced server would be complete on the network that the spec changes, and its data would be lost for nothing. */
export function besideChange({ subject, diff }: Draft, { kinds, world }: GuardInput): Objection | undefined {
  if (!factsOf(subject.kind).container || diff.verdict.verdict !== 'replace') return undefined;
  const used = world.childrenOf(subject.key).flatMap(({ kind, desired }) => {
    const keys = (desired && kinds.get(kind)?.entry.references?.(desired.value)) ?? [];
    return keys.flatMap(({ key }) => world.subjects.get(key) ?? []);
  });
  const isHindered = (each: Subject) => {
    const { verdict } = draftOne(kinds, world, each).diff;
    return verdict.verdict === 'replace' && verdict.obstacle !== undefined;
  };
  const other = used.find(isHindered);
  if (other === undefined) return undefined;
  return {
    reason: `waits for ${other.key}, whose change is blocked: the new server would use the unchanged resource`,
    remedies: settleFirst(other.key),
  };
}

/** Everything about an entry waits for its rename. */
export function renameWaits(draft: Draft, { waitingMoves }: GuardInput): Objection | undefined {
  const held =
    draft.diff.verdict.verdict === 'unchanged' ? undefined : waitingRename(draft.subject.key, waitingMoves);
  if (held === undefined) return undefined;
  const { code, reason, remedies } = held.blocked;
  return { code, reason, remedies };
}

/** The objections to drafts without an open write, each with the key that it actually waits for. */
export function objectedTo(
  objections: ReadonlyMap<Draft, Blocked>,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
  world: World,
): Blocked[] {
  const creations = [...objections.values()].filter(({ verb }) => verb === 'create');
  const unmade = new Set(creations.map(({ key }) => key));
  return [...objections].flatMap(([draft, objection]) =>
    inFlight.has(draft.subject.key)
      ? []
      : [waitsForAddress(draft, objection, inFlight, { unmade, world }) ?? objection],
  );
}

/** Keys whose live resource is unconfirmed: the kind reports that, or the adoption of the key is blocked. */
export function identityOpen(objections: ReadonlyMap<Draft, Blocked>): ReadonlySet<ResourceKey> {
  const open = [...objections].filter(
    ([draft, { verb, code }]) => verb === 'adopt' || code === 'moved_from_unknown' || hasIdentityOpen(draft),
  );
  return new Set(open.map(([, { key }]) => key));
}

/**
 * The keys that may not be bound to the resource that the spec means. `other`: while a rename waits, the entry means
 * another resource.
 */
export type Unsure = ReadonlyMap<ResourceKey, 'perhaps_other' | 'other'>;

export function unsureOf(
  objections: ReadonlyMap<Draft, Blocked>,
  waitingMoves: readonly WaitingRename[],
): Unsure {
  return new Map([
    ...[...identityOpen(objections)].map((key) => [key, 'perhaps_other'] as const),
    ...waitingMoves.flatMap(({ keys }) => [...keys].map((key) => [key, 'other'] as const)),
  ]);
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

/**
 * An address that blocks the operation may be the result of an open purchase, or the address that a reference of the
 * operation will be bound to. The operator must not release it, so the operation waits.
 */
function waitsForAddress(
  { subject, kind }: Draft,
  objection: Blocked,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
  { unmade, world }: { readonly unmade: ReadonlySet<ResourceKey>; readonly world: World },
): Blocked | undefined {
  if (objection.code === 'ip_in_use') {
    const holder = world.ip(world.idOf(subject.key) ?? '')?.server_id;
    const creation = [...inFlight.values()].find(
      (each) => factsOf(each.kind).container && partsOf(each).answer?.id === String(holder),
    );
    return creation && dependencyBlocked(objection, creation.key, { open: creation, state: '' });
  }
  if (objection.code !== 'address_not_the_only_free_one') return undefined;
  const open = [...inFlight.values()].find((each) => isAddress(each.kind) && each.verb === 'create');
  const { desired } = subject;
  const references = (desired && kind.entry.references?.(desired.value)) ?? [];
  const key = open?.key ?? references.find((each) => unmade.has(each.key))?.key;
  return key && dependencyBlocked(objection, key, { open, state: 'is blocked' });
}

function dependencyBlocked(
  { key, verb, replacement }: Pick<Operation, 'key' | 'verb' | 'replacement'>,
  waitsFor: ResourceKey,
  {
    open,
    state,
    opening,
  }: { readonly open: Intent | undefined; readonly state: string; readonly opening?: string | undefined },
): Blocked {
  const isOpen = open !== undefined && open.phase !== 'blocked';
  const which = isOpen
    ? 'has an open write from an earlier run'
    : opening !== undefined
      ? `waits for its window, at ${moment(opening)}`
      : open === undefined
        ? state
        : 'is blocked';
  return {
    key,
    verb: replacement === undefined ? verb : 'update',
    code: 'dependency_blocked',
    reason: `waits for ${waitsFor}, which ${which}`,
    remedies: isOpen ? [command('apply')] : opening === undefined ? settleFirst(waitsFor) : [],
    ...(isOpen || opening === undefined ? {} : { starts_at: opening }),
  };
}

/** Operations that wait for each other: a bug, which stops only them. */
export function inCircle(operations: readonly Operation[]): readonly Blocked[] {
  const ids = operations.map(({ id }) => id).join(', ');
  return operations.map(({ key, verb }) => ({
    ...{ key, verb, code: 'dependency_blocked' },
    reason: `operations wait for each other: ${ids}. This is a bug`,
    remedies: [outside('report this plan')],
  }));
}

/** A change that no open window of `settings.windows` allows waits for the next window that does, if there is one. */
export function outsideWindow(draft: Draft, input: GuardInput, facts: PlanFacts): Objection | undefined {
  if (!input.world.settings.windows?.length || endsExposed(draft, input)) return undefined;
  const verb = verbOf(draft, input);
  const opening = verb === undefined ? 'open' : facts.openingFor(verb);
  if (opening === 'open') return undefined;
  if (opening === 'never') {
    const ways = [edit('settings', { choose: { windows: [] }, when: `to allow ${verb} in a window` })];
    return { reason: `no window under settings.windows allows ${verb}`, remedies: ways };
  }
  const starts_at = new Date(opening).toISOString();
  return {
    reason: `waits for the next window that allows ${verb}, at ${moment(opening)}`,
    remedies: [],
    starts_at,
  };
}

/** By verb, computed once a plan: a plan may have thousands of drafts. */
export function openings({ world, now }: GuardInput): (verb: WindowVerb) => Opening {
  const known = new Map<WindowVerb, Opening>();
  return (verb) => {
    const opening = known.get(verb) ?? openingFor(verb, world.settings.windows ?? [], now);
    known.set(verb, opening);
    return opening;
  };
}

/** The firewall of an exposed server is repaired at all times. */
function endsExposed({ subject: { kind, parent }, diff: { verdict } }: Draft, input: GuardInput): boolean {
  if (factsOf(kind).endsExposure !== true || verdict.verdict === 'delete') return false;
  return exposedServers(input.world, { intents: input.openIntents }).some(({ key }) => key === parent);
}

/** The kind of change that a window must allow; `undefined`: no write, or a write that completes an earlier one. */
function verbOf(draft: Draft, input: GuardInput): WindowVerb | undefined {
  const { world, kinds, openIntents, begun } = input;
  const { subject, retiresAs, diff } = draft;
  const { verdict } = diff.verdict;
  const { key, parent } = subject;
  if (verdict === 'unchanged' || verdict === 'adopt' || verdict === 'release' || verdict === 'blocked')
    return undefined;
  const isOpen = openIntents.some((each) => each.key === key && each.phase !== 'blocked');
  if (isOpen || begun?.has(key) || (retiresAs ?? retiredFrom(key)) !== undefined) return undefined;
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  if (verdict !== 'create' || server === undefined) return verdict;
  const owner = draftOne(kinds, world, server);
  const isMade = owner.diff.verdict.verdict === 'create' || owner.diff.verdict.verdict === 'replace';
  return isMade ? verbOf(owner, input) : verdict;
}
