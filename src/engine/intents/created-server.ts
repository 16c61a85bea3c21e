import { firewallOf } from '../../core/exposure.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { WriteResult } from '../../core/ports.ts';
import type { Answer, Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { again, close, closeAndRetry, type Progress } from './endings.ts';

/** The answer to the creation of a server that has not ended. No binding shows the server before that end. */
function answerOf(run: Run, key: ResourceKey): Answer | undefined {
  const open = run.intents.get(key);
  if (run.bindings.has(key) || open?.verb !== 'create' || open.phase !== 'accepted') return undefined;
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
  return run.world.idOf(parent) ?? answerOf(run, parent)?.id;
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
export function isEarly(run: Run, { kind, parentId, lastSentAt, key }: Intent): boolean {
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
  run.tell(intent, 'task', creation.taskId ?? 'of its server');
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
