import { appliedServer } from '../core/applied.ts';
import { exposedServers } from '../core/exposure.ts';
import { withoutSeals } from '../core/hidden-texts.ts';
import { digestOf } from '../core/json.ts';
import { comesWithServer, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Subject } from '../core/kind.ts';
import type { Blocked, MonthCost, Operation, Plan, Selection, Warning } from '../core/plan.ts';
import { edit, run } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';
import { withCaps } from './caps.ts';
import { isSelected, select } from './closure.ts';
import { type Draft, draftAll, isRenewed, operatedKey, operationsOf } from './draft.ts';
import { expiryWarnings } from './expiry.ts';
import { flagsChange } from './flags.ts';
import { boughtUnused, freeBeside } from './free-addresses.ts';
import { objectionsTo } from './guarded.ts';
import { perhapsRenamed } from './moved-from.ts';
import type { GuardInput } from './objections.ts';
import { blockedIntent, openWrites, unconfirmedCreations } from './open-writes.ts';
import { order } from './order.ts';
import { begunIn, turnsOf } from './replacement-sequence.ts';
import { costOf, effortOf, mostOf, summarise } from './totals.ts';
import { isClaimedAlone } from './unmanaged.ts';
import { hold, identityOpen, objectedTo } from './waits.ts';
import {
  capUnchecked,
  countedAlone,
  doubtfulWarnings,
  inFlightWarning,
  leftOut,
  movedWarnings,
  noLongerDeclared,
  notActive,
  pricesOfNothing,
  recoveredUnconfirmed,
  scopeChanged,
  suspensionOver,
  unmanagedWarnings,
} from './warnings.ts';

export interface PlanInput extends GuardInput {
  /** The part that the operator selected; all resources if left out. */
  readonly selection?: Selection | undefined;
  /** Bindings that have another key from now on. */
  readonly moves?: readonly { readonly from: ResourceKey; readonly to: ResourceKey }[];
  /** Renames that are not possible yet: the keys of some resources are open, so the plan has no operations. */
  readonly waitingMoves?: readonly Blocked[];
  /** Servers whose idempotency keys belong to an earlier `project.scope`, and are still in force. */
  readonly formerScope?: readonly ResourceKey[];
  /** Servers that existed before, and do not exist now. */
  readonly recreated?: ReadonlySet<ResourceKey>;
  readonly month?: MonthCost | undefined;
  /** Of the spec. */
  readonly desiredDigest: string;
}

/** A binding that ends without a write. `gone`: its absence is confirmed first. */
export interface Release {
  readonly key: ResourceKey;
  readonly gone: boolean;
  readonly reason: string;
}

export interface Planned {
  readonly plan: Plan;
  readonly releases: readonly Release[];
  /** The keys of bound resources that the API still creates. */
  readonly pending: readonly ResourceKey[];
  /** The highest amount that each draft may add to the monthly bill, as decimal text. */
  readonly most: ReadonlyMap<ResourceKey, string>;
  /** The cost and the effort of some of the plan's operations. */
  readonly reckon: Reckon;
}

type Reckon = (operations: readonly Operation[]) => Pick<Plan, 'cost' | 'effort'>;

/**
 * The difference between file and project as a value: the operations in their order, and the blocked
 * operations with their reasons. Pure: the same input gives the same plan, in any order of its parts.
 */
export function buildPlan(input: PlanInput): Planned {
  const { world, selection, waitingMoves = [] } = input;
  const inFlight = openWrites(byKey(input.openIntents), world);
  const stuck = [...stuckOf(inFlight)].map((key) => [key, undefined] as const);
  const judged = judge(input, inFlight, new Map(stuck));
  const possible = possibleOf(input, judged, inFlight);
  const { operations: chosenOnes, releases, timely } = choose(possible, selection);
  const operations = chosenOnes.map((each) => withOpen(each, inFlight));
  const everythingBlocked = byKey([...blockedBy(input, judged, inFlight), ...possible.held]);

  const chosen = new Set(operations.map(({ key }) => key));
  const isShown = (key: ResourceKey | null) =>
    selection === undefined || key === null || chosen.has(key) || isSelected(selection, key);
  const waiting = new Set(waitingMoves.map(({ key }) => key));
  const blocked = everythingBlocked.filter(({ key }) => isShown(key) || waiting.has(key));
  const { drafts } = judged;
  const { allowed } = possible;
  const missing =
    possible.operations.length -
    operations.length +
    (everythingBlocked.length - blocked.length) +
    (timely.length - releases.length);
  const carriedOut = allowed.filter((draft) => chosen.has(operatedKey(draft)));
  const consequences = carriedOut.flatMap(({ diff }) => diff.consequences ?? []);
  const warnings = [
    ...capUnchecked(world, carriedOut),
    ...drafts.flatMap((draft) => [
      ...(draft.diff.warnings ?? []),
      ...doubtfulWarnings(draft),
      ...noLongerDeclared(draft, world),
    ]),
    ...consequences,
    ...releases.map(({ key, reason }): Warning => ({ code: 'released', key, message: reason })),
    ...[...inFlight.values()].flatMap(inFlightWarning),
    ...warningsBeside(input, { drafts, operations, missing }),
  ].filter(({ key }) => isShown(key));
  // A selection leaves out operations, and no danger. Outputs show only the first warnings.
  warnings.unshift(...exposedServers(world, { intents: [...inFlight.values()] }));
  const open = [...inFlight.values()].filter(({ phase, key }) => phase !== 'blocked' && isShown(key));
  const concerned = new Set(
    [...possible.operations, ...everythingBlocked, ...possible.releases, ...open].map(({ key }) => key),
  );
  const reckon = reckoning(input, { drafts, allowed, releases });
  const plan = assemble(input, {
    ...{ drafts, reckon, operations, blocked, warnings, releases, concerned },
    inProgress: open.length,
  });
  const pending = drafts.flatMap(({ subject: { key }, diff }) => (diff.pending && isShown(key) ? [key] : []));
  const most = new Map(carriedOut.map((draft) => [operatedKey(draft), mostOf(draft)]));
  return { plan, releases, pending, most, reckon };
}

/** The warnings that concern more than one draft. `missing`: the number of changes outside the selection. */
function warningsBeside(
  { world, register, moves = [], now, formerScope = [] }: PlanInput,
  { drafts, operations, missing }: Pick<Parts, 'drafts' | 'operations'> & { readonly missing: number },
): Warning[] {
  const created = new Set(operations.flatMap(({ key, verb }) => (verb === 'create' ? [key] : [])));
  const isCreated = ({ subject }: Draft) => created.has(subject.key);
  return [
    ...movedWarnings(moves, drafts.filter(isCreated), { world, register }),
    ...perhapsRenamed(drafts),
    ...drafts.flatMap((draft) => flagsChange(draft, world)),
    ...notActive(world),
    ...suspensionOver(world, now),
    ...expiryWarnings(world, now),
    ...pricesOfNothing(world),
    ...leftOut(missing),
    ...unmanagedWarnings(world, register),
    ...recoveredUnconfirmed(world),
    ...countedAlone(register, world),
    ...scopeChanged(formerScope),
    ...boughtUnused(world, operations),
    ...freeBeside(world, operations, register),
  ];
}

function stuckOf(inFlight: ReadonlyMap<ResourceKey, Intent>): ReadonlySet<ResourceKey> {
  return new Set([...inFlight.values()].flatMap(({ phase, key }) => (phase === 'blocked' ? [key] : [])));
}

interface Judged {
  readonly drafts: readonly Draft[];
  readonly objections: ReadonlyMap<Draft, Blocked>;
}

/**
 * The drafts with their objections. A blocked server remains, and so do the resources inside it. The remaining
 * resources can then block the server in turn. A resource that a cap has blocked remains blocked.
 *
 * @param held servers that remain unchanged, with the objection to their change
 */
function judge(
  input: PlanInput,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
  held: ReadonlyMap<ResourceKey, Blocked | undefined>,
): Judged {
  const all = draftAll(input.kinds, input.world, new Set(held.keys()));
  const drafts = all.map((draft) => withoutForeign(draft, input));
  const guarded = objectionsTo(drafts, input);
  const left = drafts.filter((draft) => !guarded.has(draft));
  const capped = left.flatMap((draft) => {
    const objection = held.get(draft.subject.key);
    return objection === undefined ? [] : [[draft, objection] as const];
  });
  const unconfirmed = unconfirmedCreations(inFlight);
  const objections = withCaps(left, new Map([...guarded, ...capped]), input, (soFar, cap) => {
    const possible = possibleOf(input, { drafts, objections: soFar }, inFlight);
    const going = new Set(choose(possible, input.selection).operations.map(({ key }) => key));
    // A purchase whose outcome is open may be billed already.
    const isOpen = ({ subject: { key } }: Draft) => unconfirmed.has(key) && !going.has(key);
    return [
      ...capped.flatMap(([draft, { code }]) => (code === cap ? [draft] : [])),
      ...(cap === 'max_monthly_increase' ? drafts.filter(isOpen) : []),
      ...possible.allowed.filter((draft) => going.has(operatedKey(draft))),
    ];
  });
  const stay = drafts.filter(
    (draft) => isRenewed(draft) && objections.has(draft) && !held.has(draft.subject.key),
  );
  if (stay.length === 0) return { drafts, objections };
  const more = stay.map((draft) => [draft.subject.key, objections.get(draft)] as const);
  return judge(input, inFlight, new Map([...held, ...more]));
}

/** An address that is ignored or released separately is not adopted with its server. */
function withoutForeign(draft: Draft, { world, register }: PlanInput): Draft {
  const { subject, diff } = draft;
  const { verdict } = diff;
  if (verdict.verdict !== 'adopt' || !comesWithServer(subject)) return draft;
  if (!isClaimedAlone(world, register, verdict.target)) return draft;
  const { key, parent = key } = subject;
  // An adopted server has the address that it came with. The entry of a created server asks for another address now.
  if (!appliedServer(world.subjects.get(parent)?.binding).isCreated)
    return { ...draft, diff: { ...diff, verdict: { verdict: 'unchanged' } } };
  const address = world.ip(verdict.target)?.address ?? verdict.target;
  const code = 'address_not_as_declared';
  const reason = `${parent} asks for an address of its own, and holds ${address}, which this spec does not manage`;
  const remedies = [
    edit(parent, { set: { public_ipv4: { reuse: true } }, when: 'to leave the address unchanged' }),
    run('adopt', [key, verdict.target], {
      when: `to manage ${address}, which is then deleted with the server`,
    }),
  ];
  return { ...draft, diff: { verdict: { verdict: 'blocked', verb: 'adopt', code, reason, remedies } } };
}

interface Possible {
  /** Drafts without an objection. */
  readonly allowed: readonly Draft[];
  /** Their operations in order, with those that must wait. */
  readonly candidates: readonly Operation[];
  readonly operations: readonly Operation[];
  readonly releases: readonly Release[];
  readonly held: readonly Blocked[];
}

/** The operations that are possible for all drafts without an objection. */
function possibleOf(
  { world, kinds, waitingMoves = [], recreated }: PlanInput,
  { drafts, objections }: Judged,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
): Possible {
  const stuck = stuckOf(inFlight);
  const allowed = drafts.filter(
    (draft) => waitingMoves.length === 0 && !objections.has(draft) && !stuck.has(draft.subject.key),
  );
  const unordered = allowed.flatMap(operationsOf);
  const turns = turnsOf(unordered, world, begunIn(world, inFlight.values(), recreated));
  const candidates = order(unordered, kinds, world, unconfirmedCreations(inFlight), turns);
  // A resource that is released with its server keeps its binding until the server is gone.
  const staying = new Set([...objections.keys()].map(({ subject }) => subject.key));
  const isEarly = ({ parent }: Subject) =>
    parent !== undefined && staying.has(parent) && world.isThere(parent);
  const open = identityOpen(objections);
  const releases = allowed
    .filter(({ subject: { parent } }) => parent === undefined || !open.has(parent))
    .filter(({ subject, diff: { verdict } }) => !('gone' in verdict && !verdict.gone && isEarly(subject)))
    .flatMap(releaseOf);
  const released = new Set(releases.map(({ key }) => key));
  const { operations, held } = hold(candidates, { kinds, world, inFlight, released, objections, turns });
  return { allowed, candidates, operations, releases, held };
}

/** The selected part. `timely`: all releases that are possible now, also outside the selection. */
function choose({ candidates, operations, releases }: Possible, selection: Selection | undefined) {
  const chosen = select(operations, selection);
  const going = new Set(chosen.map(({ id }) => id));
  // A resource that is released with its server stays bound if the deletion of the server is blocked or left out.
  const stays = new Set(
    candidates.flatMap(({ id, key, verb }) => (verb === 'delete' && !going.has(id) ? [key] : [])),
  );
  const timely = releases.filter(({ key, gone }) => gone || !stays.has(takeApart(key).parent ?? key));
  return {
    operations: chosen,
    timely,
    releases: timely.filter(({ key }) => selection === undefined || isSelected(selection, key)),
  };
}

/** The open writes that an operator must settle, and the objections to the drafts. */
function blockedBy(
  { world, register, waitingMoves = [] }: PlanInput,
  { objections }: Judged,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
): Blocked[] {
  // The API refused the creation, and another user has created the resource since: the operator must know both.
  const taken = new Map(
    [...objections.values()].filter(({ code }) => code === 'name_exists').map((each) => [each.key, each]),
  );
  const isKnown = (ip: Ip) => {
    const holder = register.address(ip);
    return holder.is === 'pending' ? holder.certain : holder.is !== 'unmanaged';
  };
  const open = [...inFlight.values()].flatMap((intent) =>
    blockedIntent(intent, { world, taken: taken.get(intent.key), isKnown }),
  );
  if (waitingMoves.length > 0) return [...open, ...waitingMoves];
  return [...open, ...objectedTo(objections, inFlight)];
}

interface Parts {
  readonly drafts: readonly Draft[];
  readonly reckon: Reckon;
  readonly operations: readonly Operation[];
  readonly blocked: readonly Blocked[];
  readonly warnings: readonly Warning[];
  readonly releases: readonly Release[];
  /** Keys with a planned or blocked operation, also outside the selection. */
  readonly concerned: ReadonlySet<ResourceKey>;
  /** Keys with an open write of an earlier run. */
  readonly inProgress: number;
}

/** Marks an operation whose write an earlier run has sent. */
function withOpen(operation: Operation, inFlight: ReadonlyMap<ResourceKey, Intent>): Operation {
  const open = inFlight.get(operation.key);
  return open?.verb === operation.verb && open.phase !== 'blocked' ? { ...operation, open: true } : operation;
}

function assemble(input: PlanInput, parts: Parts): Plan {
  const { reckon, operations, blocked, warnings } = parts;
  const { project, subjects } = input.world;
  const { selection } = input;
  const located = <Part extends Operation | Blocked>(part: Part): Part => {
    const position = subjects.get(part.key)?.desired?.position;
    return position === undefined ? part : { ...part, position };
  };
  const isBoughtByNewState =
    input.register.isNew &&
    operations.some(
      ({ verb, open, key }) => verb === 'create' && !open && subjects.get(key)?.parent === undefined,
    );
  return {
    format_version: 1,
    project: { id: project.id, name: project.name, status: project.status },
    ...(selection === undefined ? {} : { selection }),
    observed_at: new Date(input.now).toISOString(),
    digest: digestOfPlan(input, parts),
    summary: summarise(parts, input.world),
    ...(isBoughtByNewState ? { new_state: true } : {}),
    operations: operations.map(located),
    blocked: blocked.map(located),
    warnings,
    ...reckon(operations),
  };
}

function reckoning(
  { world, month }: PlanInput,
  { drafts, allowed, releases }: Record<'drafts' | 'allowed', readonly Draft[]> & Pick<Planned, 'releases'>,
): Reckon {
  const released = new Set(releases.map(({ key }) => key));
  return (operations) => {
    const done = new Set(operations.map(({ key }) => key));
    const isStill = ({ diff: { verdict } }: Draft) => verdict.verdict === 'unchanged';
    const carriedOut = allowed.filter((draft) => {
      const { key, parent = key } = draft.subject;
      // The address of a replaced server stays unchanged until the new server exists.
      return done.has(operatedKey(draft)) || released.has(key) || (isStill(draft) && done.has(parent));
    });
    return { cost: costOf(world, drafts, carriedOut, month), effort: effortOf(operations, world) };
  };
}

function releaseOf({ subject, diff }: Draft): Release[] {
  const { verdict } = diff;
  return verdict.verdict === 'release'
    ? [{ key: subject.key, gone: verdict.gone, reason: verdict.reason }]
    : [];
}

/** In an order that the order of the fields in the spec does not change. */
function byPath(changes: Operation['changes']): Operation['changes'] {
  return [...changes].sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Covers the operations and their reasons, but not the time of the observation. */
function digestOfPlan({ world, desiredDigest }: PlanInput, { operations, blocked, releases }: Parts): string {
  return digestOf({
    project: world.project.id,
    desired: desiredDigest,
    operations: operations.map(({ id, changes, needs, target }) => ({
      id,
      // The digest of the spec covers the values of the environment.
      changes: byPath(withoutSeals(changes)),
      needs,
      target,
    })),
    blocked: blocked.map(({ key, verb, code }) => ({ key, verb, code })),
    releases: releases.map(({ key, gone }) => ({ key, gone })),
  });
}

function byKey<Each extends { readonly key: ResourceKey }>(list: readonly Each[]): Each[] {
  return [...list].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}
