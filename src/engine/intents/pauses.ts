import type { Json } from '../../core/json.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { moment } from '../../core/moment.ts';
import { type Blocked, type Operation, type OperationId, operationId, type Plan } from '../../core/plan.ts';
import { outside, paying, type Remedy, run, type Step, settleFirst } from '../../core/remedy.ts';
import type { Intent } from '../../core/state.ts';
import type { Planned } from '../../plan/build.ts';
import { closure, linksOf } from '../../plan/closure.ts';
import { successorOf } from '../../plan/order.ts';
import { withBlocked } from '../../plan/totals.ts';
import type { EngineDeps, Pause, PauseScope } from '../deps.ts';
import type { Run } from '../run.ts';

/** The note of the state that holds the refusals of more than one write. */
const noteName = 'pauses';

/** The remedy if the level of the token is too low. */
export const writingToken = 'use a token that may write';

/** Shows the permissions of the token. */
export const tokenReport = run('doctor', [], { when: 'to see the permissions of this token' });

/** The refusal of a class of writes, which no later answer has shown to be over. */
type StandingPause = {
  readonly scope: PauseScope;
  /** The kind of the refused write. Under `operation`, the pause is about this kind and verb only. */
  readonly kind: string;
  readonly verb: string;
  readonly code: string;
  readonly reason: string;
  /** Wall ms. */
  readonly at: number;
  /** Names the token that was refused. */
  readonly token: string;
};

/** The fields that show whether a pause applies: of an operation to write, or of a sent intent. */
type Written = Pick<Operation, 'kind' | 'verb'> & { readonly spend: Operation['spend'] };

/**
 * Pauses the class of writes that the refusal is about, for this run and for later runs.
 *
 * @param later the class in later runs, if it is smaller
 */
export async function pauseClass(
  run: Pick<Run, 'deps' | 'pause'>,
  { kind, verb, request }: Pick<Intent, 'kind' | 'verb' | 'request'>,
  scope: PauseScope,
  refusal: { readonly code: string; readonly reason: string },
  later: PauseScope = scope,
): Promise<void> {
  const { clock, writes, store } = run.deps;
  const at = clock.now();
  run.pause(scope, request, { ...refusal, at });
  // The plan of another process reports the refusal too.
  const pause = { scope: later, kind, verb, ...refusal, at, token: writes.token() };
  const others = (await standing(run.deps)).filter((each) => !sameClass(each, pause));
  await store.putNote(noteName, [...others, pause]);
}

/** An accepted write shows that its class is not paused any more. */
export async function lift(deps: EngineDeps, written: Written): Promise<void> {
  const all = await standing(deps);
  const left = all.filter((pause) => !speaksFor(pause, written));
  if (left.length < all.length) await deps.store.putNote(noteName, left);
}

/**
 * Ends the pauses in the memory of a process with many runs if the state has no record of them any more: the
 * operator, or an accepted write, has ended them.
 */
export async function dropLifted(deps: EngineDeps, pauses: Map<string, Pause>): Promise<void> {
  if (pauses.size === 0) return;
  const all = await standing(deps);
  for (const [name, { at }] of [...pauses]) {
    if (!all.some((each) => each.at === at)) pauses.delete(name);
  }
}

/** An earlier refusal that still applies to a write that the deletion of the key makes room for. */
export async function pausedBefore(
  deps: EngineDeps,
  second: readonly Written[],
  key: ResourceKey,
): Promise<Pick<Blocked, 'code' | 'reason' | 'remedies'> | undefined> {
  const pause = (await inForce(deps)).find((each) => second.some((written) => speaksFor(each, written)));
  return pause && { code: pause.code, reason: since(pause), remedies: liftedBy(pause, lifting(key)) };
}

/**
 * If a deletion makes room for the resource, no write is sent that could show the end of the pause. The operator must
 * end it.
 */
function lifting(key: ResourceKey): readonly Step[] {
  return [run('resolve', [key, '--abandon']), run('apply')];
}

/** The plan with its paused operations as blocked, together with the operations that need them. */
export async function withPauses(
  deps: EngineDeps,
  { plan, reckon }: Pick<Planned, 'plan' | 'reckon'>,
): Promise<Plan> {
  const pauses = await inForce(deps);
  const held = plan.operations.flatMap((operation): Blocked[] => {
    const pause = pauses.find((each) => operation.verb !== 'adopt' && speaksFor(each, operation));
    if (pause === undefined) return [];
    const { id, key, verb, replacement } = operation;
    const waits = replacement !== undefined || plan.operations.some((each) => successorOf(each) === id);
    // The first half of a replacement is not sent if an operation between the two halves is paused.
    const between = plan.operations.find((each) => each.replacement !== undefined && each.needs.includes(id));
    const makesRoom = waits ? key : (between?.key ?? replacedWith(plan, operation));
    const remedies = liftedBy(pause, makesRoom === undefined ? [run('apply')] : lifting(makesRoom));
    return [{ key, verb, code: pause.code, reason: since(pause), remedies }];
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
  store: Pick<EngineDeps['store'], 'note'>,
): Promise<Pick<Blocked, 'reason' | 'remedies'> | undefined> {
  const pause = (await standing({ store })).find(({ scope }) => scope === 'spending');
  return pause && { reason: since(pause), remedies: liftedBy(pause, [run('apply')]) };
}

function speaksFor(pause: StandingPause, { kind, verb, spend }: Written): boolean {
  switch (pause.scope) {
    case 'everything':
      return true;
    case 'spending':
      return spend === 'adds';
    case 'operation':
      return pause.kind === kind && (pause.verb === verb || factsOf(kind).endsExposure === true);
  }
}

function since({ at, reason }: StandingPause): string {
  return `held since ${moment(at)}: ${reason}`;
}

function liftedBy({ scope, code }: StandingPause, next: readonly Step[]): readonly Remedy[] {
  if (scope === 'spending') return [outside(paying, { next })];
  if (code === 'insufficient_scope') return [outside(writingToken, { next }), tokenReport];
  const text =
    scope === 'operation' ? 'use a token that may do this, or have it permitted' : 'use another token';
  return [outside(text, { next })];
}

function sameClass(a: StandingPause, b: StandingPause): boolean {
  return a.scope === b.scope && (a.scope !== 'operation' || (a.kind === b.kind && a.verb === b.verb));
}

/** Another token may have the permission that this token lacks. */
async function inForce(deps: EngineDeps): Promise<readonly StandingPause[]> {
  const token = deps.writes.token();
  return (await standing(deps)).filter((each) => each.scope === 'spending' || each.token === token);
}

async function standing({
  store,
}: {
  readonly store: Pick<EngineDeps['store'], 'note'>;
}): Promise<readonly StandingPause[]> {
  const note: Json | undefined = await store.note(noteName);
  return Array.isArray(note) ? (note as unknown as readonly StandingPause[]) : [];
}
