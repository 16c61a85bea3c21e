import { money, sumDecimals } from '../core/decimal.ts';
import { isEntry } from '../core/desired.ts';
import { digestOf } from '../core/json.ts';
import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Blocked, Cost, Effort, Operation, OperationId, Plan, Summary, Warning } from '../core/plan.ts';
import { operationId } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import { draftAll, isRenewed, operationsOf } from './draft.ts';
import { freeBeside } from './free-addresses.ts';
import { guard } from './guards.ts';
import { knownDelta, mostDelta, pricedParts, unknownPrice } from './money.ts';
import type { GuardInput } from './objections.ts';
import { blockedIntent } from './open-writes.ts';
import { obstacles, order, prerequisites, successorOf } from './order.ts';
import { isSelected, type Selection, select } from './selection.ts';
import { isLeftAlone } from './strangers.ts';
import {
  inFlightWarning,
  leftOut,
  movedWarnings,
  noLongerDeclared,
  notActive,
  unknownToUs,
} from './warnings.ts';

export interface PlanInput extends GuardInput {
  /** The part that is asked for; all of it where left out. */
  readonly selection?: Selection | undefined;
  /** Bindings that go by another key from now on. */
  readonly moves?: readonly { readonly from: ResourceKey; readonly to: ResourceKey }[];
  /** Renames that cannot be made yet: what stands under which key is open, so nothing else is planned. */
  readonly heldMoves?: readonly {
    readonly to: ResourceKey;
    readonly code: string;
    readonly reason: string;
    readonly resolve: string;
  }[];
  /** Of the spec. */
  readonly desiredDigest: string;
}

/** A binding that ends without a write. `gone`: once its absence is confirmed. */
export interface Release {
  readonly key: ResourceKey;
  readonly gone: boolean;
  readonly reason: string;
}

export interface Planned {
  readonly plan: Plan;
  readonly releases: readonly Release[];
}

/**
 * The difference between file and project as a value: what would be done, in which
 * order, what is held back and why. Pure: the same input gives the same plan, whatever
 * order its parts come in.
 */
export function buildPlan(input: PlanInput): Planned {
  const { world, kinds } = input;
  const inFlight = new Map(
    byKey(input.openIntents)
      .filter((intent) => !isOvertaken(intent, world))
      .map((intent) => [intent.key, intent]),
  );
  const stuck = new Set(
    [...inFlight.values()].filter(({ phase }) => phase === 'blocked').map(({ key }) => key),
  );
  const { heldMoves = [] } = input;
  const { drafts, objections } = judge(input, stuck);
  const allowed = drafts.filter(
    (draft) => heldMoves.length === 0 && !objections.has(draft) && !stuck.has(draft.subject.key),
  );
  const candidates = order(allowed.flatMap(operationsOf), kinds, world);
  // What is let go of with its server is so once that goes.
  const staying = new Set([...objections.keys()].map(({ subject }) => subject.key));
  const isEarly = ({ parent }: Subject) =>
    parent !== undefined && staying.has(parent) && world.isThere(parent);
  const releasable = allowed
    .filter(({ subject, diff: { verdict } }) => !('gone' in verdict && !verdict.gone && isEarly(subject)))
    .flatMap(releaseOf);
  const { operations: possible, held } = hold(
    candidates,
    new Set(releasable.map(({ key }) => key)),
    input,
    inFlight,
    new Set([...objections.values()].flatMap(({ key, verb }) => (verb === 'adopt' ? [key] : []))),
  );
  const { selection } = input;
  const operations = select(possible, selection);
  const going = new Set(operations.map(({ id }) => id));
  // What is let go of when its server goes is not, where that is held back or left out.
  const stays = new Set(
    candidates.flatMap(({ id, key, verb }) => (verb === 'delete' && !going.has(id) ? [key] : [])),
  );
  const timely = releasable.filter(({ key, gone }) => gone || !stays.has(takeApart(key).parent ?? key));
  const releases = timely.filter(({ key }) => selection === undefined || isSelected(selection, key));
  // Refused before, and made by somebody else since: also that is for a person to know.
  const taken = new Map(
    [...objections.values()].filter(({ code }) => code === 'name_exists').map((each) => [each.key, each]),
  );
  const unmade = new Set(
    [...objections.values()].flatMap(({ key, verb }) => (verb === 'create' ? [key] : [])),
  );
  const everythingBlocked = byKey([
    ...[...inFlight.values()].flatMap((intent) => blockedIntent(intent, world, taken.get(intent.key))),
    ...heldMoves.map(heldMove),
    ...(heldMoves.length > 0 ? [] : [...objections]).flatMap(([draft, objection]) =>
      inFlight.has(draft.subject.key)
        ? []
        : [inDoubt(objection, inFlight) ?? waitsForIts(draft, objection, unmade) ?? objection],
    ),
    ...held,
  ]);
  const chosen = new Set(operations.map(({ key }) => key));
  const isShown = (key: ResourceKey | null) =>
    selection === undefined || key === null || chosen.has(key) || isSelected(selection, key);
  const waiting = new Set(heldMoves.map(({ to }) => to));
  const blocked = everythingBlocked.filter(({ key }) => isShown(key) || waiting.has(key));
  const warnings = [
    ...drafts.flatMap((draft) => [...(draft.diff.warnings ?? []), ...noLongerDeclared(draft, world)]),
    ...allowed.flatMap(({ subject, diff }) => (chosen.has(subject.key) ? (diff.consequences ?? []) : [])),
    ...releases.map(({ key, reason }) => ({ code: 'released', key, message: reason })),
    ...[...inFlight.values()].flatMap(inFlightWarning),
    ...movedWarnings(input.moves ?? [], drafts, world),
    ...notActive(world),
    ...leftOut(
      possible.length -
        operations.length +
        (everythingBlocked.length - blocked.length) +
        (timely.length - releases.length),
    ),
    ...unknownToUs(world, input.strangers),
    ...freeBeside(world, operations, input.openIntents, input.strangers.vouched),
  ].filter(({ key }) => isShown(key));
  const concerned = new Set([...possible, ...everythingBlocked, ...releasable].map(({ key }) => key));
  const plan = assemble(input, { drafts, allowed, operations, blocked, warnings, releases, concerned });
  return { plan, releases };
}

/** Drafts with what is held against them. A server that is held back stays, and so does what is in it. */
function judge(input: PlanInput, held: ReadonlySet<ResourceKey>) {
  const drafts = draftAll(input.kinds, input.world, held).map((draft) => leftAlone(draft, input));
  const objections = guard(drafts, input);
  const stay = drafts.filter(
    (draft) => isRenewed(draft) && objections.has(draft) && !held.has(draft.subject.key),
  );
  if (stay.length === 0) return { drafts, objections };
  return judge(input, new Set([...held, ...stay.map(({ subject }) => subject.key)]));
}

/** An address that somebody has said is not this file's does not come with its server. */
function leftAlone(draft: Draft, { world, strangers }: PlanInput): Draft {
  const { subject, diff } = draft;
  const { verdict } = diff;
  if (verdict.verdict !== 'adopt' || subject.kind !== 'ip' || subject.parent === undefined) return draft;
  if (!isLeftAlone(world, strangers.vouched, verdict.target)) return draft;
  return { ...draft, diff: { ...diff, verdict: { verdict: 'unchanged' } } };
}

interface Parts {
  readonly drafts: readonly Draft[];
  readonly allowed: readonly Draft[];
  readonly operations: readonly Operation[];
  readonly blocked: readonly Blocked[];
  readonly warnings: readonly Warning[];
  readonly releases: readonly Release[];
  /** Keys of which something is planned or held back, also where it is left out. */
  readonly concerned: ReadonlySet<ResourceKey>;
}

function assemble(input: PlanInput, parts: Parts): Plan {
  const { drafts, allowed, operations, blocked, warnings } = parts;
  const { project } = input.world;
  const done = new Set(operations.map(({ key }) => key));
  const released = new Set(parts.releases.map(({ key }) => key));
  return {
    format_version: 1,
    project: { id: project.id, name: project.name, status: project.status },
    observed_at: new Date(input.now).toISOString(),
    digest: digestOfPlan(input, parts),
    summary: summarise(parts, input.world),
    operations,
    blocked,
    warnings,
    cost: costOf(
      input,
      drafts,
      allowed.filter(({ subject }) => done.has(subject.key) || released.has(subject.key)),
    ),
    effort: effortOf(operations, input),
  };
}

/**
 * What cannot be done because something else cannot: what it needs neither exists nor is
 * about to, or what is in its way stays. Of a replacement both halves are held or none:
 * what is deleted has to come again; so has the server that an address goes for.
 */
function hold(
  candidates: readonly Operation[],
  released: ReadonlySet<ResourceKey>,
  { kinds, world }: PlanInput,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
  /** Keys that may not stand for what was seen. */
  unadopted: ReadonlySet<ResourceKey>,
) {
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
      (world.isThere(key) && !unadopted.has(key)) ||
      going.has(operationId('create', key)) ||
      going.has(operationId('adopt', key));
    const goes = (key: ResourceKey) => released.has(key) || going.has(operationId('delete', key));
    const need = operation.needs.find((id) => !going.has(id));
    return (
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

function heldMove({ to, code, reason, resolve }: NonNullable<PlanInput['heldMoves']>[number]): Blocked {
  return { key: to, verb: 'update', code, reason, resolve };
}

/** An address that is in the way may be one whose purchase is not settled, and not one to be released. */
function inDoubt(objection: Blocked, inFlight: ReadonlyMap<ResourceKey, Intent>): Blocked | undefined {
  if (objection.code !== 'address_not_the_only_free_one') return undefined;
  const open = [...inFlight.values()].find(({ kind, verb }) => kind === 'ip' && verb === 'create');
  return open && dependencyBlocked(objection, open.key, open);
}

/** The address that is in the way may be the very one that is to stand for what the server names. */
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
    resolve: underWay ? 'vdcsync apply, which settles it first' : `settle ${waitsFor} first`,
  };
}

/** A refusal of what the file said then, and the file says something else now. */
export function isOvertaken(intent: Intent, world: World): boolean {
  if (intent.phase !== 'blocked' || intent.blocked?.until !== 'file') return false;
  return digestOf(world.subjects.get(intent.key)?.desired?.value ?? null) !== intent.basis;
}

function releaseOf({ subject, diff }: Draft): Release[] {
  const { verdict } = diff;
  return verdict.verdict === 'release'
    ? [{ key: subject.key, gone: verdict.gone, reason: verdict.reason }]
    : [];
}

/** Over what would be done and why, not over when it was looked at. */
function digestOfPlan({ world, desiredDigest }: PlanInput, { operations, blocked, releases }: Parts): string {
  return digestOf({
    project: world.project.id,
    desired: desiredDigest,
    operations: operations.map(({ id, changes, needs, target }) => ({ id, changes, needs, target })),
    blocked: blocked.map(({ key, verb, code }) => ({ key, verb, code })),
    releases: releases.map(({ key, gone }) => ({ key, gone })),
  });
}

function byKey<Each extends { readonly key: ResourceKey }>(list: readonly Each[]): Each[] {
  return [...list].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** The plan with this as what is blocked: a resource is counted once, so what is held back is not to be done as well. */
export function withBlocked(plan: Plan, blocked: readonly Blocked[]): Plan {
  const keys = new Set(blocked.map(({ key }) => key));
  const left = plan.operations.filter(({ key }) => !keys.has(key));
  return { ...plan, blocked, summary: { ...plan.summary, ...counts(left), blocked: keys.size } };
}

/** Both halves of a replacement are one. */
function counts(operations: readonly Operation[]) {
  const plain = (verb: string) =>
    operations.filter((each) => each.verb === verb && each.replacement === undefined).length;
  return {
    create: plain('create'),
    update: plain('update'),
    replace: operations.filter(({ verb, replacement }) => verb === 'create' && replacement !== undefined)
      .length,
    delete: plain('delete'),
    adopt: plain('adopt'),
  };
}

function summarise({ operations, blocked, drafts, concerned }: Parts, { observed }: World): Summary {
  const unseen = drafts.filter(
    ({ subject, kind }) =>
      observed.has(subject.key) && (kind.unseen?.(subject, observed.get(subject.key)) ?? []).length > 0,
  ).length;
  return {
    ...(unseen === 0 ? {} : { unseen }),
    ...counts(operations),
    blocked: new Set(blocked.map(({ key }) => key)).size,
    unchanged: drafts.filter(
      ({ subject: { key, desired } }) => desired !== undefined && isEntry(desired) && !concerned.has(key),
    ).length,
  };
}

function costOf({ world }: PlanInput, all: readonly Draft[], drafts: readonly Draft[]): Cost {
  const delta = knownDelta(drafts);
  const most = mostDelta(drafts);
  const now = all.flatMap(({ kind, subject }) => {
    const price = kind.priceNow?.(subject, world.observed.get(subject.key), world);
    return price === undefined ? [] : [{ key: subject.key, price }];
  });
  const before = sumDecimals(now.flatMap(({ price }) => ('known' in price ? [price.known] : [])));
  return {
    monthly: {
      currency: world.profile.prices?.currency ?? null,
      known_before: money(before),
      known_after: money(sumDecimals([before, delta])),
      unknown: now.flatMap(({ key, price }) => ('unknown' in price ? [key] : [])),
    },
    known_monthly_delta: money(delta),
    ...(Number(most) === Number(delta) ? {} : { known_monthly_most: money(most) }),
    unknown: drafts.flatMap(pricedParts).flatMap(({ key, diff }) => {
      const reason = unknownPrice(diff);
      return reason === undefined ? [] : [`${key}: ${reason}`];
    }),
    left_billed: drafts.flatMap(({ diff }) => diff.leftBilled ?? []),
  };
}

/**
 * What carrying the plan out takes at least: one look at everything before and one after,
 * and for each operation a poll or a check; a deletion is checked against more lists.
 */
function effortOf(operations: readonly Operation[], { world }: PlanInput): Effort {
  const { limits } = world.profile;
  const writes = operations.filter(({ verb }) => verb !== 'adopt');
  if (writes.length === 0) return { writes: 0, reads: 0, seconds_at_least: 0 };
  const servers = [...world.subjects.values()].filter(({ kind }) => kind === 'server').length;
  const deletions = writes.filter(({ verb }) => verb === 'delete').length;
  const reads =
    2 * readsOf.collections + readsOf.server * servers + writes.length + readsOf.deletion * deletions;
  const windows = Math.max(Math.ceil(writes.length / limits.writes), Math.ceil(reads / limits.reads)) - 1;
  return { writes: writes.length, reads, seconds_at_least: (windows * limits.windowMs) / 1000 };
}

const readsOf = { collections: 3, server: 2, deletion: 1 };
