import type { Recovered } from '../../core/claims.ts';
import type { DesiredResource } from '../../core/desired.ts';
import type { LeftBehind } from '../../core/evidence.ts';
import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { type ResourceKey, retiringKey, takeApart } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { WriteResult } from '../../core/ports.ts';
import type {
  Answer,
  Binding,
  Facts,
  Intent,
  KnownEffect,
  RecordedWrite,
  StateChange,
} from '../../core/state.ts';
import { firewallOf } from '../../core/world.ts';
import { makerOf, ownerOf, wasNamed } from '../claims/claims.ts';
import type { Run } from '../run.ts';
import { again, close, closeAndRetry, isReplay, type Progress } from './endings.ts';

interface Created {
  readonly id: string;
  readonly facts?: Facts | undefined;
  /** The key that the resource is bound to. */
  readonly under: ResourceKey;
  /** The operator named the resource. */
  readonly byOperator?: true;
}

/** The key for the remains of a failed creation. If the creation should replace a resource, that resource keeps its key. */
export function remainsOf({ key, replaces }: Pick<Intent, 'key' | 'replaces'>, id: string): ResourceKey {
  return replaces === undefined ? key : retiringKey(key, id);
}

/** The binding of the created resource, and of the resources that came with it. */
export function boundBy(
  run: Run,
  intent: Intent,
  { id, facts, under, byOperator }: Created,
): [Extract<StateChange, { readonly type: 'bind' }>, ...StateChange[]] {
  const kind = run.kindOf(intent.kind);
  const subject = run.world.subjects.get(intent.key) ?? { key: intent.key, kind: intent.kind };
  // The facts of the answer are about the resource that the answer named.
  const answer = partsOf(intent).answer;
  const known = { ...(answer?.id === undefined || answer.id === id ? answer?.facts : {}), ...facts };
  // An update does not show whose resource it is.
  const recovered =
    intent.verb === 'create' ? (isReplay(intent) ? 'found' : undefined) : run.bindings.get(under)?.recovered;
  const binding: Binding = {
    key: under,
    kind: intent.kind,
    id,
    ...(intent.parentId === undefined ? {} : { parentId: intent.parentId }),
    ...kind.bind({
      subject,
      id,
      request: intent.request,
      asked: intent.entry?.value,
      facts: known,
      mayBeOlder: byOperator ?? isReplay(intent),
      world: run.world,
    }),
    protect: (isAskedBy(intent, subject.desired) ? subject.desired : intent.entry)?.protect ?? false,
    boundAt: run.deps.clock.now(),
    ...movedFrom(intent.entry),
    ...(recovered && { recovered }),
  };
  return [
    { type: 'bind', binding },
    ...recoveredIf(recovered, companionsOf(run, intent, id, known, under)),
    ...(factsOf(kind.name).repeats ? [{ type: 'next_incarnation', key: intent.key } as const] : []),
  ];
}

/** The bindings that the changes make. */
export function bindingsIn(changes: readonly StateChange[]): readonly Binding[] {
  return changes.flatMap((change) => (change.type === 'bind' ? [change.binding] : []));
}

/** Whether the entry is the one that asked for the resource. An edited entry may protect the resource that was replaced. */
function isAskedBy(
  { basis, replaces, entry }: Intent,
  desired: DesiredResource | undefined,
): desired is DesiredResource {
  if (desired === undefined) return false;
  return replaces === undefined || entry === undefined || digestOf(desired.value) === basis;
}

/** The entry takes its resource back under the key that its `moved` names. */
export function movedFrom({ moved }: Pick<DesiredResource, 'moved'> = {}): Pick<Binding, 'formerKeys'> {
  return moved === undefined ? {} : { formerKeys: [moved] };
}

/** Marks the bindings of resources that no operator has confirmed. */
export function recoveredIf(
  recovered: Recovered | undefined,
  changes: readonly StateChange[],
): readonly StateChange[] {
  if (recovered === undefined) return changes;
  return changes.map((change) =>
    change.type === 'bind' ? { ...change, binding: { ...change.binding, recovered } } : change,
  );
}

/** The fields of a creation that show which resources came with it. */
type Made = Pick<RecordedWrite, 'key' | 'kind' | 'request' | 'preimage' | 'entry'> &
  Pick<KnownEffect, 'answer'>;

/**
 * The resources that came with the created resource. A short list may suggest more resources: a resource that is
 * bound to another key, or that another key has created, did not come with this resource.
 */
export function companionsOf(
  run: Run,
  made: Made,
  id: string,
  facts: Facts,
  under = made.key,
): StateChange[] {
  const { key, kind, request, preimage, entry } = made;
  const asked = entry?.value;
  const { world } = run;
  const subject = { ...(world.subjects.get(key) ?? { kind }), key: under };
  const at = run.deps.clock.now();
  const named = wasNamed(made.answer, id);
  const came =
    run
      .kindOf(kind)
      .creation?.companions?.({ subject, id, request, asked, preimage, facts, named, world, at }) ?? [];
  // A server that is created again takes its former address.
  const isOwn = (each: Binding) => run.bindings.get(each.key)?.id === each.id;
  const isNobodys = (each: Binding) =>
    ownerOf(run, each, new Set([under])) === undefined && makerOf(run, each) === undefined;
  return came.filter((each) => isOwn(each) || isNobodys(each)).map((binding) => ({ type: 'bind', binding }));
}

/** Binds an address that the answer of a failed creation named, and the next plan releases it. */
export function leftByFailed(run: Run, intent: Intent, left: LeftBehind | undefined): readonly StateChange[] {
  const id = partsOf(intent).answer?.id;
  return left === undefined || id === undefined
    ? []
    : companionsOf(run, intent, id, left, remainsOf(intent, id));
}

/** The creation of a server that has not ended. No binding shows the server before that end. */
function creationOf({ bindings, intents }: Run, key: ResourceKey) {
  const open = bindings.has(key) ? undefined : intents.get(key);
  return open?.verb === 'create' && open.phase === 'accepted' ? open : undefined;
}

/** The answer to that creation, before its deadline. */
function answerOf(run: Run, key: ResourceKey): Answer | undefined {
  const open = creationOf(run, key);
  if (open === undefined) return undefined;
  const { deadlineMs } = run.kindOf(open.kind).timing;
  const isYoung = run.stopwatch.since(open.id, 'accepted', open.answer.at) <= deadlineMs;
  return isYoung ? open.answer : undefined;
}

/**
 * The id of a server that the API has just accepted, and whose creation has not ended. Its firewall is sent now, so that
 * the server is not exposed until its task ends.
 *
 * Only a fresh answer counts, and no server that replaces another one: its key is bound to the old server until the new
 * one is confirmed. @source API §4: the server id is given immediately
 */
export function serverInCreation(run: Run, key: ResourceKey): string | undefined {
  const { id, to, end } = answerOf(run, key) ?? {};
  return to === 'this_send' && end === 'reported' ? id : undefined;
}

/**
 * The id of that server if its firewall can be sent now. If the API refuses firewalls until the creation has ended, the
 * firewall is sent at that end, before reads confirm the server.
 */
export function coverable(run: Run, key: ResourceKey): string | undefined {
  const id = serverInCreation(run, key);
  const creation = run.intents.get(key);
  if (id === undefined || creation === undefined || run.gate.firewallAfterMs === 0) return id;
  const { stopwatch } = run;
  const isEnded =
    stopwatch.isMarked(creation.id, 'ended') && !stopwatch.isMarked(creation.id, 'refused_early');
  return isEnded ? id : undefined;
}

/** The id of the server that contains the resource: the bound one, or one whose creation has not ended. */
export function serverIdOf(run: Run, parent: ResourceKey): string | undefined {
  return run.world.idOf(parent) ?? creationOf(run, parent)?.answer.id;
}

/**
 * The world with the id of the server. No read has shown the resources inside it: they are those of a new server. Earlier
 * observations under its key are those of the server that it replaces. @source API §4
 */
export function withServer(world: World, key: ResourceKey, id: string): World {
  const inside = new Set([key, ...world.childrenOf(key).map((each) => each.key)]);
  const observed = new Map([...world.observed].filter(([each]) => !inside.has(each)));
  return { ...world, observed, idOf: (each) => (each === key ? id : world.idOf(each)) };
}

/** The write of a firewall was sent before the creation of its server ended. */
function isEarly(run: Run, { kind, parentId, lastSentAt, key }: Intent): boolean {
  if (factsOf(kind).endsExposure !== true || parentId === undefined) return false;
  const parent = run.world.subjects.get(key)?.parent;
  const server = parent === undefined ? undefined : run.bindings.get(parent);
  return server === undefined || (server.id === parentId && server.boundAt > lastSentAt);
}

/**
 * The API refuses the firewall of a server that it is still creating: the firewall follows when the creation has ended.
 * The refusal had no effect. @source API §3.4 @assumption A28 @assumption A43
 */
export async function refusedEarly(
  run: Run,
  intent: Intent,
  result: WriteResult,
): Promise<Progress | undefined> {
  if (result.type !== 'answer' || result.replayed || !(result.status === 409 || result.status === 404))
    return undefined;
  if (!isEarly(run, intent)) return undefined;
  await sendAfterCreation(run);
  const creation = run.intents.get(takeApart(intent.key).parent ?? intent.key);
  if (creation !== undefined) run.stopwatch.mark(creation.id, 'refused_early');
  const text = `the server is still being created: ${result.detail ?? result.code ?? result.status}`;
  return close(run, intent, { outcome: 'refused', text }, { retryAfterMs: 0 });
}

/** The API does not keep the firewall of a server that it is still creating. */
export async function sendAfterCreation({ gate, deps }: Run): Promise<void> {
  gate.firewallAfterMs = Math.max(1, await deps.tasks.earliest('create_server'));
}

/** The firewall of the server waits for the end of its creation, because of the API or of a server that it replaces. */
export function isExposedUntilEnd({ gate, intents, bindings, world }: Run, { key, verb }: Intent): boolean {
  const waits = verb === 'create' && (gate.firewallAfterMs > 0 || bindings.has(key));
  const firewall = waits ? firewallOf(world, key) : undefined;
  return firewall !== undefined && !intents.has(firewall.key);
}

/** How often a firewall checks whether the creation of its server has ended, in ms. */
const serverGapMs = 5_000;

/** The end of the creation of its server may still change the firewall, so it is read after that end. */
export function awaitServer(run: Run, intent: Intent): Progress | undefined {
  const { parent } = takeApart(intent.key);
  if (!isEarly(run, intent) || parent === undefined) return undefined;
  const creation = answerOf(run, parent);
  if (creation === undefined) return undefined;
  run.report(intent, 'task', creation.taskId ?? 'of its server');
  return again(serverGapMs);
}

/** A firewall that the end of the creation of its server has reset is sent again. */
export async function sendIfReset(run: Run, intent: Intent): Promise<Progress | undefined> {
  if (!isEarly(run, intent)) return undefined;
  await sendAfterCreation(run);
  const text = 'the firewall was reset when the creation of its server ended';
  return closeAndRetry(run, intent, { outcome: 'absent', text, code: 'not_there', most: 1 });
}

/** A created server whose firewall the API has not accepted yet. */
export function needsFirewall({ intents, world }: Run, { key, verb }: Intent): boolean {
  const firewall = verb === 'create' ? firewallOf(world, key) : undefined;
  return firewall !== undefined && intents.get(firewall.key)?.phase !== 'accepted';
}
