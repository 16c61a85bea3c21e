import { appliedServer } from '../core/applied.ts';
import type { Claim } from '../core/claims.ts';
import { sumDecimals } from '../core/decimal.ts';
import { canonicalJson } from '../core/json.ts';
import { comesWithServer, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Subject } from '../core/kind.ts';
import {
  type Blocked,
  deletionsOf,
  type Operation,
  type OperationId,
  type Selection,
  type Verb,
} from '../core/plan.ts';
import { command, type Edit, edit, outside, type Remedy, type RemedyStep, setting } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import { capitalised } from '../core/text.ts';
import { once } from '../core/work.ts';
import { expiredEntry } from '../core/world.ts';
import {
  type Draft,
  draftAll,
  isDeletion,
  isRenewed,
  operatedKey,
  operationsOf,
  type Release,
  releaseOf,
} from './draft.ts';
import { guards, impactOf } from './guards.ts';
import { entriesFromUnknown } from './moved-from.ts';
import type { Coded, GuardInput, Objection, PlanFacts } from './objections.ts';
import { isBegun, unconfirmedCreations } from './open-writes.ts';
import { isSelected, linked, order, select } from './order.ts';
import { isPurchase } from './purchases.ts';
import { begunIn, turnsOf } from './replacements.ts';
import { increaseOf, mostOf } from './totals.ts';
import { isClaimedAlone, matches } from './unmanaged.ts';
import { hold, identityOpen, inCircle, openings } from './waits.ts';

/** The input of the judgement. */
export interface JudgeInput extends GuardInput {
  /** The part that the operator selected; all resources if left out. */
  readonly selection?: Selection | undefined;
}

export interface Judgement {
  readonly drafts: readonly Draft[];
  readonly objections: ReadonlyMap<Draft, Blocked>;
}

/** Servers that remain unchanged, with the objection to their change; `undefined`: an open write is the reason. */
type HeldServers = ReadonlyMap<ResourceKey, Blocked | undefined>;

/**
 * The drafts with their objections. A blocked server remains, and so do the resources inside it. The remaining
 * resources can then block another server, until no further one is blocked.
 */
export function judgeAll(input: JudgeInput, inFlight: ReadonlyMap<ResourceKey, Intent>): Judgement {
  const held = new Map<ResourceKey, Blocked | undefined>();
  for (const key of stuckOf(inFlight)) held.set(key, undefined);
  for (;;) {
    const judged = judge(input, inFlight, held);
    const { drafts, objections } = judged;
    const isBlocked = (each: Draft) => isRenewed(each) && objections.has(each) && !held.has(each.subject.key);
    const further = drafts.filter(isBlocked);
    if (further.length === 0) return judged;
    for (const draft of further) held.set(draft.subject.key, objections.get(draft));
  }
}

/** The drafts while these servers remain. A server that a cap has blocked counts for that cap again. */
function judge(input: JudgeInput, inFlight: ReadonlyMap<ResourceKey, Intent>, held: HeldServers): Judgement {
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
    const going = new Set(choose(possible, input.selection, inFlight).operations.map(({ key }) => key));
    // A purchase whose outcome is open may be billed already.
    const isOpen = ({ subject: { key } }: Draft) => unconfirmed.has(key) && !going.has(key);
    return [
      ...capped.flatMap(([draft, { code }]) => (code === cap ? [draft] : [])),
      ...(cap === 'max_monthly_increase' ? drafts.filter(isOpen) : []),
      ...possible.allowed.filter((draft) => going.has(operatedKey(draft))),
    ];
  });
  return { drafts, objections };
}

/** An address that is ignored or released separately is not adopted with its server. */
function withoutForeign(draft: Draft, { world, register }: JudgeInput): Draft {
  const { subject, diff } = draft;
  const { verdict } = diff;
  if (verdict.verdict !== 'adopt' || !comesWithServer(subject)) return draft;
  if (!isClaimedAlone(world, register, verdict.target)) return draft;
  // The entry left with the address, and is back.
  const isBack = ({ kind, id, holder }: Claim) =>
    kind === subject.kind &&
    id === verdict.target &&
    holder.is === 'released' &&
    holder.by === 'file' &&
    holder.formerKey === subject.key;
  if (register.claims.some(isBack)) return draft;
  const { key, parent = key } = subject;
  // An adopted server has the address that it came with. The entry of a created server asks for another address now.
  if (!appliedServer(world.subjects.get(parent)?.binding).isCreated)
    return { ...draft, diff: { ...diff, verdict: { verdict: 'unchanged' } } };
  const address = world.ip(verdict.target)?.address ?? verdict.target;
  const code = 'address_not_as_declared';
  const reason = `${parent} asks for an address of its own, and holds ${address}, which this spec does not manage`;
  const remedies = [
    edit(parent, { set: { public_ipv4: { reuse: true } }, when: 'to leave the address unchanged' }),
    command('adopt', [key, verdict.target], {
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
  /** The needs of each operation, without the turns of replacements: these order the operations, and require none. */
  readonly requirements: ReadonlyMap<OperationId, readonly OperationId[]>;
  readonly operations: readonly Operation[];
  readonly releases: readonly Release[];
  readonly held: readonly Blocked[];
}

/** The operations that are possible for all drafts without an objection. */
export function possibleOf(
  { world, kinds, waitingMoves = [], begun }: JudgeInput,
  { drafts, objections }: Judgement,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
): Possible {
  const stuck = stuckOf(inFlight);
  const allowed = drafts.filter((draft) => !objections.has(draft) && !stuck.has(draft.subject.key));
  const unsorted = linked(allowed.flatMap(operationsOf), kinds, world, unconfirmedCreations(inFlight));
  const turns = turnsOf(unsorted, world, begunIn(world, inFlight.values(), begun?.keys()));
  const { operations: candidates, circular } = order(unsorted, kinds, turns);
  // A resource that is released with its server keeps its binding until the server is gone.
  const staying = new Set([...objections.keys()].map(({ subject }) => subject.key));
  const isEarly = ({ parent }: Subject) =>
    parent !== undefined && staying.has(parent) && world.isThere(parent);
  const open = identityOpen(objections);
  const releases = allowed
    .filter(({ subject: { parent }, leftTo = parent }) => leftTo === undefined || !open.has(leftTo))
    .filter(({ subject, diff: { verdict } }) => !('gone' in verdict && !verdict.gone && isEarly(subject)))
    .flatMap(releaseOf);
  const released = new Set(releases.map(({ key }) => key));
  const { operations, held } = hold(candidates, {
    ...{ kinds, world, inFlight, released, objections, turns },
    unnamed: new Set(waitingMoves.flatMap(({ keys }) => [...keys])),
  });
  const requirements = new Map(unsorted.map(({ id, needs }) => [id, needs]));
  return { allowed, candidates, requirements, operations, releases, held: [...held, ...inCircle(circular)] };
}

/**
 * The selected part, with the operations that an earlier run has sent: the next apply finishes them in any case.
 * `timely`: all releases that are possible now, also outside the selection.
 */
export function choose(
  { candidates, requirements, operations, releases }: Possible,
  selection: Selection | undefined,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
) {
  const required = operations.map((each) => ({ ...each, needs: requirements.get(each.id) ?? each.needs }));
  const sent = operations.filter(
    (each) => isBegun(each, inFlight) && inFlight.get(each.key)?.phase !== 'waiting',
  );
  const going = new Set([...select(required, selection), ...sent].map(({ id }) => id));
  const chosen = operations
    .filter(({ id }) => going.has(id))
    .map((each) => ({ ...each, needs: each.needs.filter((id) => going.has(id)) }));
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

function stuckOf(inFlight: ReadonlyMap<ResourceKey, Intent>): ReadonlySet<ResourceKey> {
  return new Set([...inFlight.values()].flatMap(({ phase, key }) => (phase === 'blocked' ? [key] : [])));
}

type Objections = ReadonlyMap<Draft, Blocked>;
type Cap = 'max_deletions' | 'max_monthly_increase';
type Capped = readonly (readonly [Draft, Coded])[];

/**
 * The objections to the drafts, with the caps. A cap counts only the drafts that would be carried out without the cap.
 * `goingWith` gives these drafts for the objections so far. If a cap is exceeded, every draft that it counts is
 * blocked.
 */
function withCaps(
  left: readonly Draft[],
  objections: Objections,
  input: GuardInput,
  goingWith: (objections: Objections, cap: Cap) => readonly Draft[],
): Objections {
  const held = new Map(objections);
  const hold = (capped: Capped) => {
    for (const [draft, objection] of capped) held.set(draft, asBlocked(draft, objection));
  };
  // The order and the dependencies are computed only if a cap may be exceeded.
  if (maxDeletions(left, input).length > 0) hold(maxDeletions(goingWith(held, 'max_deletions'), input));
  if (input.world.settings.max_monthly_increase !== null)
    hold(maxIncrease(goingWith(held, 'max_monthly_increase'), input));
  return held;
}

function maxDeletions(going: readonly Draft[], { world, destroy, deletedBefore }: GuardInput): Capped {
  const limit = world.settings.max_deletions;
  const leaving = going.filter(isDeletion);
  const counted = deletionsOf({ operations: leaving.flatMap(operationsOf) });
  const deletions = counted + deletedBefore;
  if (deletions <= limit) return [];
  const expires = leaving.some(({ subject }) => expiredEntry(subject, world)) ? ', or change `expires`' : '';
  const undo = `undo the edits of the spec that delete these resources${expires}`;
  const undoing = outside(undo, { when: 'to keep them' });
  const alongside =
    leaving.length > counted ? ' (without addresses that are deleted with their servers)' : '';
  const counts = deletions === 1 ? '1 deletion' : `${deletions} deletions`;
  const verb = deletions === 1 ? 'is' : 'are';
  return leaving.map((draft) => [
    draft,
    {
      code: 'max_deletions',
      reason: `${counts} in one run${alongside} ${verb} more than settings.max_deletions (${limit}). ${capitalised(impactOf(draft, world))}`,
      remedies: destroy
        ? [command('destroy', ['--max-deletions', deletions])]
        : [undoing, setting('max_deletions', deletions, 'if all these deletions are intended')],
    },
  ]);
}

function maxIncrease(going: readonly Draft[], input: GuardInput): Capped {
  const limit = input.world.settings.max_monthly_increase;
  const increase = increaseWith(going, input);
  if (limit === null || increase <= limit) return [];
  const adding = going.filter((draft) => Number(mostOf(draft)) > 0);
  return adding.map((draft) => [
    draft,
    {
      code: 'max_monthly_increase',
      reason: `the known prices add ${increase.toFixed(2)} a month, more than settings.max_monthly_increase (${limit})`,
      remedies: [setting('max_monthly_increase', Math.ceil(increase), 'if this increase is intended')],
    },
  ]);
}

/** The highest amount that the run adds to the monthly bill with these drafts. */
function increaseWith(drafts: readonly Draft[], { increasedBefore = '0', freedBefore }: GuardInput): number {
  return Number(sumDecimals([increasedBefore, increaseOf(drafts, freedBefore)]));
}

/**
 * The objections to the drafts, except for the caps, which count the remaining drafts. The remedy that permits a draft
 * has all edits in one: those that further guards need, and the caps that all permitted drafts together need.
 */
export function objectionsTo(drafts: readonly Draft[], input: GuardInput): ReadonlyMap<Draft, Blocked> {
  const facts = guardFacts(drafts, input);
  const found = new Map(drafts.map((draft) => [draft, objectionsIn(draft, input, facts)] as const));
  const possible = drafts.filter((draft) => {
    const [first] = found.get(draft) ?? [];
    return first === undefined || first.permit !== undefined;
  });
  const caps = once(() => capsBeyond(possible, input));
  return new Map(
    [...found].flatMap(([draft, [first, ...others]]) => {
      if (first === undefined) return [];
      const { permit, ...objection } = withReasonOf(others[0], first);
      if (permit === undefined) return [[draft, asBlocked(draft, objection)] as const];
      const further = [...others.flatMap((each) => each.permit ?? []), ...(isDeletion(draft) ? caps() : [])];
      const remedies = [...objection.remedies, inOne(permit, further)];
      return [[draft, asBlocked(draft, { ...objection, remedies })] as const];
    }),
  );
}

/** An objection to all changes says nothing about the resource: the next objection does. */
function withReasonOf(next: Objection | undefined, first: Coded & Objection): Coded & Objection {
  if (next?.permit === undefined || first.remedies.length > 0) return first;
  return { ...first, reason: `${first.reason}. Also: ${next.reason}`, remedies: next.remedies };
}

/** The objections of all guards; of the first guard alone if its objection has no permit. */
function objectionsIn(draft: Draft, input: GuardInput, facts: PlanFacts): (Coded & Objection)[] {
  const found: (Coded & Objection)[] = [];
  for (const { code, check } of guards) {
    const objection = check(draft, input, facts);
    const known = objection?.code ?? code;
    if (objection !== undefined && known !== undefined) found.push({ ...objection, code: known });
    if (found[0] !== undefined && found[0].permit === undefined) break;
  }
  return found;
}

/** The verb is that of the operation that the draft asks for. A replacement is an update. */
function asBlocked({ subject: { key }, diff: { verdict } }: Draft, objection: Coded): Blocked {
  const asked = verdict.verdict === 'blocked' ? verdict.verb : verdict.verdict;
  return { key, verb: isVerb(asked) ? asked : 'update', ...objection };
}

function isVerb(verdict: string): verdict is Verb {
  return verdict === 'create' || verdict === 'delete' || verdict === 'adopt';
}

function guardFacts(drafts: readonly Draft[], input: GuardInput): PlanFacts {
  const { register, world } = input;
  const buyers = () => drafts.flatMap(({ subject, diff }) => (isPurchase(subject, diff) ? [subject] : []));
  return {
    matches: once(() => matches(buyers(), register, world)),
    movedFromUnknown: once(() => entriesFromUnknown(input)),
    openingFor: openings(input),
  };
}

/**
 * One remedy with the steps of all these remedies: after it, none of the objections remains. Edits of one place become
 * one edit. The final commands of the first remedy remain the last steps.
 */
function inOne(first: Remedy, others: readonly Remedy[]): Remedy {
  const steps = stepsIn(first);
  const isLast = (at: number) => at > 0 && steps.slice(at).every(({ type }) => type === 'run');
  const end = steps.findIndex((_, at) => isLast(at));
  const [before, after] = end === -1 ? [steps, []] : [steps.slice(0, end), steps.slice(end)];
  const all = others.flatMap(stepsIn).reduce(withStep, before);
  const further = after.filter((step) => !all.some((each) => isSame(each, step)));
  const [start = first, ...next] = [...all, ...further];
  const { when } = first;
  return { ...start, ...(when === undefined ? {} : { when }), ...(next.length === 0 ? {} : { next }) };
}

function stepsIn({ when: _when, next = [], ...step }: Remedy): readonly RemedyStep[] {
  return [step, ...next];
}

function withStep(steps: readonly RemedyStep[], step: RemedyStep): readonly RemedyStep[] {
  if (steps.some((each) => isSame(each, step))) return steps;
  const at = steps.findIndex((each) => isMergeable(each) && isMergeable(step) && each.path === step.path);
  const same = steps[at];
  if (same === undefined || !isMergeable(same) || !isMergeable(step)) return [...steps, step];
  const remove = [...new Set([...(same.remove ?? []), ...(step.remove ?? [])])];
  const merged: Edit = {
    ...same,
    ...(same.set || step.set ? { set: { ...same.set, ...step.set } } : {}),
    ...(remove.length === 0 ? {} : { remove }),
  };
  return steps.with(at, merged);
}

function isMergeable(step: RemedyStep): step is Edit {
  return (
    step.type === 'edit' && step.entry === undefined && step.choose === undefined && step.at === undefined
  );
}

function isSame(one: RemedyStep, other: RemedyStep): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

/** The settings without which a cap would block the drafts as soon as all of them are permitted. */
function capsBeyond(permitted: readonly Draft[], input: GuardInput): readonly Remedy[] {
  const { world, destroy, deletedBefore } = input;
  const { max_deletions, max_monthly_increase: limit } = world.settings;
  const deletions = deletedBefore + deletionsOf({ operations: permitted.flatMap(operationsOf) });
  const increase = Math.ceil(increaseWith(permitted, input));
  return [
    ...(deletions > max_deletions && !destroy ? [setting('max_deletions', deletions)] : []),
    ...(limit !== null && increase > limit ? [setting('max_monthly_increase', increase)] : []),
  ];
}
