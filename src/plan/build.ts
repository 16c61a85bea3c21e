import { withoutSeals } from '../core/hidden-texts.ts';
import { digestOf } from '../core/json.ts';
import { nounOf, type ResourceKey } from '../core/keys.ts';
import {
  type Blocked,
  gradeIn,
  type MonthCost,
  type Operation,
  type Plan,
  type Warning,
} from '../core/plan.ts';
import { command } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';
import { exposedServers } from '../core/world.ts';
import { type Draft, operatedKey, type Release } from './draft.ts';
import { expiryWarnings, flagsChange } from './flags.ts';
import { choose, type JudgeInput, type Judgement, judgeAll, possibleOf } from './judge.ts';
import { unidentifiedWarnings } from './lost-state.ts';
import { perhapsRenamed } from './moved-from.ts';
import { blockedIntent, isBegun, openWrites, protectedOld } from './open-writes.ts';
import { isSelected } from './order.ts';
import { costOf, effortOf, mostOf, summarise } from './totals.ts';
import { objectedTo, type Unsure, unsureOf, waitingRename } from './waits.ts';
import {
  boughtUnused,
  capUnchecked,
  countedAlone,
  doubtfulWarnings,
  freeBeside,
  inFlightWarning,
  leftOut,
  movedWarnings,
  noLongerDeclared,
  notActive,
  recoveredUnconfirmed,
  type UnreachedKey,
  unmanagedWarnings,
  unreachedWarnings,
} from './warnings.ts';

export interface PlanInput extends JudgeInput {
  /** Bindings that have another key from now on. */
  readonly moves?: readonly { readonly from: ResourceKey; readonly to: ResourceKey }[];
  /** Servers that a new state could not find, and whose idempotency keys are still in force. */
  readonly unreached?: readonly UnreachedKey[];
  readonly month?: MonthCost | undefined;
  /** Of the spec. */
  readonly desiredDigest: string;
}

export interface Planned {
  readonly plan: Plan;
  readonly releases: readonly Release[];
  /** The keys of bound resources that the API still creates. */
  readonly pending: readonly ResourceKey[];
  readonly unsure: Unsure;
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
  const judged = judgeAll(input, inFlight);
  const possible = possibleOf(input, judged, inFlight);
  const { operations: chosenOnes, releases, timely } = choose(possible, selection, inFlight);
  const operations = chosenOnes.map((each) =>
    isBegun(each, inFlight) ? { ...each, open: true as const } : each,
  );
  const everythingBlocked = byKey([
    ...blockedBy(input, judged, inFlight),
    ...possible.held,
    ...judged.drafts.flatMap((draft) => (inFlight.has(draft.subject.key) ? [] : overdue(draft, input.now))),
  ]);

  const chosen = new Set(operations.map(({ key }) => key));
  const inProgress = new Set(
    [...inFlight.values()].flatMap(({ phase, key }) => (phase === 'blocked' ? [] : [key])),
  );
  const isShown = (key: ResourceKey | null) =>
    selection === undefined ||
    key === null ||
    chosen.has(key) ||
    inProgress.has(key) ||
    isSelected(selection, key);
  const waiting = new Set(waitingMoves.map(({ blocked: { key } }) => key));
  const unsure = unsureOf(judged.objections, waitingMoves);
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
      ...(draft.leftTo !== undefined && unsure.has(draft.leftTo) ? [] : (draft.diff.warnings ?? [])),
      ...doubtfulWarnings(draft),
      ...noLongerDeclared(draft, world),
    ]),
    ...consequences,
    // An open deletion says why the resource is gone.
    ...releases.flatMap(({ key, reason }): Warning[] =>
      inProgress.has(key) ? [] : [{ code: 'released', key, message: reason }],
    ),
    ...[...inFlight.values()].flatMap((intent) => inFlightWarning(intent, world)),
    ...warningsBeside(input, { drafts, operations, missing, unsure }),
    // The state records every rename, also outside the selection.
  ].filter(({ code, key }) => code === 'moved' || isShown(key));
  // A selection leaves out operations, and no danger. Outputs show only the first warnings.
  warnings.unshift(...exposedServers(world, { intents: [...inFlight.values()] }));
  const concerned = new Set([
    ...[...possible.operations, ...everythingBlocked, ...possible.releases].map(({ key }) => key),
    ...inProgress,
  ]);
  const reckon = reckoning(input, { drafts, allowed, releases });
  const plan = assemble(input, {
    ...{ drafts, reckon, operations, blocked, warnings, releases, concerned },
    inProgress: inProgress.size,
  });
  const pending = drafts.flatMap(({ subject: { key }, diff }) => (diff.pending && isShown(key) ? [key] : []));
  const most = new Map(carriedOut.map((draft) => [operatedKey(draft), mostOf(draft)]));
  return { plan, releases, pending, unsure, most, reckon };
}

/** The warnings that concern more than one draft. */
function warningsBeside(input: PlanInput, { drafts, operations, missing, unsure }: Beside): Warning[] {
  const { world, register, destroy, moves = [], now, unreached = [] } = input;
  const created = new Set(operations.flatMap(({ key, verb }) => (verb === 'create' ? [key] : [])));
  const isCreated = ({ subject }: Draft) => created.has(subject.key);
  return [
    ...movedWarnings(moves, drafts.filter(isCreated), input),
    ...perhapsRenamed(drafts),
    ...drafts.flatMap((draft) => flagsChange(draft, world, unsure)),
    ...notActive(world),
    ...expiryWarnings(world, now),
    ...leftOut(missing),
    ...unmanagedWarnings(world, register, destroy),
    ...recoveredUnconfirmed(world),
    ...countedAlone(register, world),
    ...unidentifiedWarnings(register, world),
    ...unreachedWarnings(unreached),
    ...boughtUnused(world, operations),
    ...freeBeside(world, operations, register),
  ];
}

/** The open writes that an operator must settle, and the objections to the drafts. */
function blockedBy(
  { world, register, waitingMoves = [] }: PlanInput,
  { objections }: Judgement,
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
  const open = [...inFlight.values()].flatMap((intent) => [
    ...blockedIntent(intent, { world, taken: taken.get(intent.key), isKnown }),
    ...protectedOld(intent, world),
  ]);
  const others = [...objections].filter(
    ([draft]) => waitingRename(draft.subject.key, waitingMoves) === undefined,
  );
  const renames = waitingMoves.map(({ blocked }) => blocked);
  return [...open, ...renames, ...objectedTo(new Map(others), inFlight, world)];
}

/** An adopted server that is still being created after the time that a creation may take. */
function overdue({ subject: { key, binding }, kind, diff }: Draft, now: number): Blocked[] {
  if (!diff.pending || binding === undefined || now - binding.boundAt <= kind.timing.deadlineMs) return [];
  const reason = `${nounOf(kind.name)} ${binding.id} is still being created, after the time that vdcsync allows for it`;
  return [{ key, verb: 'create', code: 'stuck', reason, remedies: [command('apply')] }];
}

/** `missing`: the number of changes outside the selection. */
interface Beside extends Pick<Parts, 'drafts' | 'operations'>, Pick<Planned, 'unsure'> {
  readonly missing: number;
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

function assemble(input: PlanInput, parts: Parts): Plan {
  const { reckon, operations, blocked, warnings } = parts;
  const { project, subjects } = input.world;
  const { selection } = input;
  const gradeOf = gradeIn(operations, input.world.profile);
  const located = <Part extends Operation | Blocked>(part: Part): Part => {
    const position = subjects.get(part.key)?.desired?.position;
    return position === undefined ? part : { ...part, position };
  };
  const buys = operations.some(
    ({ verb, open, key }) => verb === 'create' && !open && subjects.get(key)?.parent === undefined,
  );
  return {
    format_version: 1,
    project: { id: project.id, name: project.name, status: project.status },
    ...(selection === undefined ? {} : { selection }),
    observed_at: new Date(input.now).toISOString(),
    digest: digestOfPlan(input, parts),
    summary: summarise(parts, input.world),
    ...(input.register.isNew && (buys || input.destroy) ? { new_state: true } : {}),
    operations: operations.map((each) => located({ ...each, undo: gradeOf(each) })),
    blocked: blocked.map(located),
    warnings,
    ...reckon(operations),
  };
}

function reckoning(
  { world, month, freedBefore }: PlanInput,
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
    return {
      cost: costOf(world, drafts, carriedOut, { month, freedBefore }),
      effort: effortOf(operations, world),
    };
  };
}

/** In an order that the order of the fields in the spec does not change. */
function byPath(changes: Operation['changes']): Operation['changes'] {
  return [...changes].sort((one, other) => (one.path < other.path ? -1 : 1));
}

/**
 * Covers the operations and their reasons, but not the time of the observation, nor the operations that an earlier run
 * has begun: these need no approval, and may have ended when the plan is applied.
 */
function digestOfPlan({ world, desiredDigest }: PlanInput, { operations, blocked, releases }: Parts): string {
  const begun = new Set(operations.flatMap(({ id, open }) => (open ? [id] : [])));
  const left = operations.filter(({ open }) => !open);
  return digestOf({
    project: world.project.id,
    desired: desiredDigest,
    operations: left.map(({ id, changes, needs, target }) => ({
      id,
      // The digest of the spec covers the values of the environment.
      changes: byPath(withoutSeals(changes)),
      needs: needs.filter((each) => !begun.has(each)),
      target,
    })),
    blocked: blocked.map(({ key, verb, code }) => ({ key, verb, code })),
    releases: releases.map(({ key, gone }) => ({ key, gone })),
  });
}

function byKey<Each extends { readonly key: ResourceKey }>(list: readonly Each[]): Each[] {
  return [...list].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}
