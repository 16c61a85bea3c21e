import type { Claim, PauseScope, RefusedClass } from '../../core/claims.ts';
import { type ResourceKey, retiredFrom, takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { type Blocked, type Operation, type OperationId, operationId, type Plan } from '../../core/plan.ts';
import {
  command,
  newToken,
  outside,
  paying,
  type Remedy,
  type RemedyStep,
  settleFirst,
} from '../../core/remedy.ts';
import type { Intent, StateStore } from '../../core/state.ts';
import { moment } from '../../core/time.ts';
import type { Planned } from '../../plan/build.ts';
import { makingRoom } from '../../plan/open-writes.ts';
import { closure, linksOf, successorOf } from '../../plan/order.ts';
import { precedesDeletion } from '../../plan/replacements.ts';
import { withBlocked } from '../../plan/totals.ts';
import type { EngineDeps, Pause, Repeating } from '../deps.ts';
import type { Run } from '../run.ts';

/** No read shows the permissions of a token, so doctor shows the last accepted and refused write. */
export function tokenReport(): Remedy {
  return command('doctor', [], { when: 'to see the last accepted and refused write of this token' });
}

/**
 * The claim on a class of writes that the API refuses. The state journals it like every claim, because a deletion that
 * makes room must not be sent while the creation after it is refused.
 */
type PauseClaim = Claim & { readonly holder: { readonly is: 'paused' } & RefusedClass };

/** The fields that show whether a pause applies: of an operation to write, or of a sent intent. */
type Written = Pick<Operation, 'kind' | 'verb'> & { readonly spend: Operation['spend'] };

/**
 * Pauses the class of writes that the refusal is about, for this run and for later runs.
 *
 * @param later the class in later runs, if it is smaller
 */
export async function pauseClass(
  run: Pick<Run, 'deps' | 'facts'>,
  { kind, verb, request }: Pick<Intent, 'kind' | 'verb' | 'request'>,
  scope: PauseScope,
  refusal: { readonly code: string; readonly reason: string },
  later: PauseScope = scope,
): Promise<void> {
  const { clock, writes, store } = run.deps;
  const at = clock.now();
  run.facts.pause(scope, request, refusal);
  // The plan of another process reports the refusal too.
  const refused = { scope: later, kind, verb, ...refusal, token: writes.token(), name: request.name };
  const claim = { ...classObject(refused), identity: {}, holder: { is: 'paused', ...refused }, at } as const;
  await store.change([{ type: 'claim', claim }], at);
}

/** An accepted write shows that its class is not paused any more. */
export async function lift(deps: EngineDeps, written: Written): Promise<void> {
  const over = (await standing(deps.store)).filter(({ holder }) => speaksFor(holder, written));
  const reason = 'the API accepts these writes again';
  const changes = over.map((object) => ({ type: 'unclaim', object, reason }) as const);
  if (changes.length > 0) await deps.store.change(changes, deps.clock.now());
}

/** A class of writes that a process with many runs does not send yet. */
export interface HeldClass {
  /** `spending`, `everything`, or the name of a write. */
  readonly scope: string;
  readonly code: string;
  readonly reason: string;
  /** Wall ms of the project's clock. */
  readonly since: number;
  /** When one write of the class is sent again; unknown while the project is not Active. */
  readonly probeAt: number | null;
}

/** The values that decide how long a refused class stays paused. */
interface Holding {
  readonly token: string;
  /** Of the project. `undefined`: not read yet. */
  readonly status: string | undefined;
  readonly now: number;
  /** The time from a refusal until one write of its class is sent again, in ms of the project's clock. */
  readonly probeMs: number;
}

/**
 * The refusals that a process with many runs keeps to, from one run to the next. When one is over, the next write of the
 * class is the probe, and its refusal begins another pause.
 *
 * ```
 * free ──402──▶ held ──`probeMs`, project Active──▶ free
 *                └──project was not Active, and is now──▶ free
 * ```
 */
export function heldClasses(claims: Iterable<Claim>, holding: Holding): readonly HeldClass[] {
  const { token, status = active, now, probeMs } = holding;
  return pausesIn(claims, token).flatMap(({ at, holder }) => {
    const { code, reason, name } = holder;
    const scope = holder.scope === 'operation' ? name : holder.scope;
    const waits = holder.scope === 'spending' && status !== active;
    const isOver = !waits && (holder.unpaid === true || now - at >= probeMs);
    if (isOver || scope === undefined) return [];
    return [{ scope, code, reason, since: at, probeAt: waits ? null : at + probeMs }];
  });
}

/** Does not send the writes that an earlier run of this process, or of another one, was refused. */
export async function keepRefused(
  { deps, claims, world, state }: Pick<Run, 'deps' | 'claims' | 'world' | 'state'>,
  { probeMs }: Pick<Repeating, 'probeMs'>,
  pauses: Map<string, Pause>,
): Promise<void> {
  const { status } = world.project;
  const holding = { token: deps.writes.token(), status, now: deps.clock.now(), probeMs };
  for (const { scope, code, reason } of heldClasses(claims.values(), holding))
    pauses.set(scope, { code, reason });
  const unpaid = status === active ? [] : pausesIn(claims.values(), holding.token).filter(isSpending);
  const seen = unpaid.filter(({ holder }) => holder.unpaid === undefined);
  const marked = seen.map((each) => ({ ...each, holder: { ...each.holder, unpaid: true } }) as const);
  if (marked.length > 0) await state.change(marked.map((claim) => ({ type: 'claim', claim }) as const));
}

/**
 * An earlier refusal that still applies to a later write of a replacement. If the creation comes first, its answer shows
 * the end of a pause of all writes.
 */
export async function pausedBefore(
  deps: EngineDeps,
  second: readonly Written[],
  { key, verb }: Pick<Operation, 'key' | 'verb'>,
): Promise<Pick<Blocked, 'code' | 'reason' | 'remedies'> | undefined> {
  const pause = (await inForce(deps)).find(
    ({ holder }) =>
      (verb === 'delete' || holder.scope === 'operation') &&
      second.some((written) => speaksFor(holder, written)),
  );
  if (pause === undefined) return undefined;
  const { holder } = pause;
  return { code: holder.code, reason: since(pause), remedies: liftedBy(holder, lifting(key)) };
}

/** If no write of a replacement is sent, none could show the end of the pause. The operator must end it. */
function lifting(key: ResourceKey): readonly RemedyStep[] {
  return [command('resolve', [key, '--retry']), command('apply')];
}

/** The plan with its paused operations as blocked, together with the operations that need them. */
export async function withPauses(
  deps: EngineDeps,
  { plan, reckon }: Pick<Planned, 'plan' | 'reckon'>,
): Promise<Plan> {
  const pauses = await inForce(deps);
  const held = plan.operations.flatMap((operation): Blocked[] => {
    const pause = pauses.find(({ holder }) => operation.verb !== 'adopt' && speaksFor(holder, operation));
    if (pause === undefined) return [];
    const { id, key, verb, replacement } = operation;
    // No write of a replacement is sent before all can be. A creation that comes first shows the end of its own pause.
    const comesFirst = precedesDeletion(operation);
    const isHalf = replacement !== undefined && !comesFirst;
    // A server that retired earlier is deleted after the creation of the next replacement of its key.
    const isEarlier = plan.operations.some(
      (each) => each.key === retiredFrom(key) && each.verb === 'create' && each.replacement !== undefined,
    );
    const waits =
      isHalf ||
      isEarlier ||
      plan.operations.some((each) => successorOf(each) === id && each.replacement === undefined);
    // The first half of a replacement is not sent if an operation between the two halves is paused.
    const between = plan.operations.find((each) => each.replacement !== undefined && each.needs.includes(id));
    const makesRoom = waits ? key : (between?.key ?? replacedWith(plan, operation));
    const next = makesRoom === undefined ? [command('apply')] : lifting(retiredFrom(makesRoom) ?? makesRoom);
    const isQuota = pause.holder.scope === 'operation' && !pause.holder.code.startsWith('insufficient_');
    const remedies = [...liftedBy(pause.holder, next), ...(isQuota && comesFirst ? [makingRoom(key)] : [])];
    return [{ key, verb, code: pause.holder.code, reason: since(pause), remedies }];
  });
  if (held.length === 0) return plan;
  const keys = new Set(held.map(({ key }) => key));
  const ids = new Set(held.map(({ verb, key }) => operationId(verb, key)));
  const partsHeld = plan.operations.filter(({ id }) => ids.has(id));
  const replaced = new Map(partsHeld.map((each) => [replacedWith(plan, each), each.key]));
  const withheld = closure(plan.operations, ({ id, key }) => ids.has(id) || replaced.has(key));
  const waiting = plan.operations.filter(({ id, key }) => withheld.has(id) && !keys.has(key));
  const blocked = [
    ...plan.blocked,
    ...held,
    ...waiting.map((each) => waitsFor(each, plan, withheld, replaced.get(each.key))),
  ];
  const stays = new Set(blocked.map(({ key }) => key));
  return { ...withBlocked(plan, blocked), ...reckon(plan.operations.filter(({ key }) => !stays.has(key))) };
}

/** The replaced server that would lack this part. A backup is no part of a server: it is taken when it is due. */
function replacedWith(plan: Plan, { key, kind, verb }: Operation) {
  const { parent } = takeApart(key);
  if (verb !== 'create' || factsOf(kind).repeats === true) return undefined;
  return plan.operations.find((each) => each.replacement !== undefined && each.key === parent)?.key;
}

function waitsFor(
  operation: Operation,
  plan: Plan,
  withheld: ReadonlySet<OperationId>,
  part: ResourceKey | undefined,
): Blocked {
  const { key, verb } = operation;
  const first = linksOf(operation).find((id) => withheld.has(id));
  const other = part ?? plan.operations.find(({ id }) => id === first)?.key ?? key;
  const reason = `waits for ${other}, which is paused`;
  return { key, verb, code: 'dependency_blocked', reason, remedies: settleFirst(other) };
}

/** The refusal that pauses all spending, and its remedies, as text. */
export async function heldSpending(
  store: Pick<StateStore, 'claims'>,
): Promise<Pick<Blocked, 'reason' | 'remedies'> | undefined> {
  const pause = (await standing(store)).find(isSpending);
  return pause && { reason: since(pause), remedies: liftedBy(pause.holder, [command('apply')]) };
}

function speaksFor(pause: RefusedClass, { kind, verb, spend }: Written): boolean {
  switch (pause.scope) {
    case 'everything':
      return true;
    case 'spending':
      return spend === 'adds';
    case 'operation':
      return pause.kind === kind && (pause.verb === verb || factsOf(kind).endsExposure === true);
  }
}

function since({ at, holder }: PauseClaim): string {
  return `paused since ${moment(at)}: ${holder.reason}`;
}

function liftedBy({ scope, code }: RefusedClass, next: readonly RemedyStep[]): readonly Remedy[] {
  const way = outside(endOf(scope, code), { next });
  return code === 'insufficient_scope' ? [way, tokenReport()] : [way];
}

/** How the operator ends the cause of a refusal of this class. */
export function endOf(scope: PauseScope, code: string): string {
  if (scope === 'spending') return paying;
  if (code === 'insufficient_scope') return 'use a token that may write';
  if (scope === 'everything')
    return code === 'unauthorized' || code === 'http_401'
      ? newToken
      : 'report this error to the developers of vdcsync, with the request id';
  return code.startsWith('insufficient_')
    ? 'use a token that may do this, or change its permissions in the client area'
    : 'end the cause of the refusal in the client area, for example a quota';
}

/** The status of a project that may spend. @assumption A20 */
const active = 'Active';

function isSpending({ holder }: PauseClaim): boolean {
  return holder.scope === 'spending';
}

/** A later refusal of the same class replaces the earlier one. */
function classObject({ scope, verb, kind }: RefusedClass) {
  return {
    kind: 'project',
    id: scope === 'operation' ? `paused ${verb} ${kind}` : `paused ${scope}`,
  } as const;
}

/** Another token may have the permission that this token lacks. */
function pausesIn(claims: Iterable<Claim>, token: string): readonly PauseClaim[] {
  return [...claims].filter(isPause).filter((each) => isSpending(each) || each.holder.token === token);
}

async function inForce({ store, writes }: EngineDeps): Promise<readonly PauseClaim[]> {
  return pausesIn(await store.claims(), writes.token());
}

async function standing(store: Pick<StateStore, 'claims'>): Promise<readonly PauseClaim[]> {
  return (await store.claims()).filter(isPause);
}

function isPause(claim: Claim): claim is PauseClaim {
  return claim.holder.is === 'paused';
}
