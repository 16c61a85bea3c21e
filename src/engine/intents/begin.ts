import type { DesiredResource } from '../../core/desired.ts';
import { digestOf } from '../../core/json.ts';
import { type ResourceKey, retiredFrom } from '../../core/keys.ts';
import type { Subject, World, WriteContext } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import type { Preimage } from '../../core/preimage.ts';
import type { Intent, KeyQuestion } from '../../core/state.ts';
import { firewallOf } from '../../core/world.ts';
import { pricesNow } from '../../plan/totals.ts';
import { holdsAnother, idempotencyKey, incarnationOf, lastAttempt } from '../claims/scope.ts';
import type { Run } from '../run.ts';
import { asksKey, conflicting, sentNow } from './endings.ts';

/** The input from which a kind derives a request. */
export function contextOf(run: Run, operation: WriteContext['operation'], world: World): WriteContext {
  return {
    subject: subjectOf(world, operation.key),
    observed: world.observed.get(operation.key),
    world,
    operation,
    exhausted: run.facts.exhaustedOf(operation.key),
  };
}

function subjectOf({ subjects }: World, key: ResourceKey): Subject {
  const subject = subjects.get(key);
  if (subject === undefined) throw new Error(`Unknown resource: ${key}`);
  return subject;
}

/** The reads that evidence for the write will be compared with. */
export async function preimageOf(
  run: Run,
  operation: WriteContext['operation'],
  world: World,
): Promise<Preimage> {
  const read = run.cache.since(run.deps.clock.monotonic() - preimageFreshMs);
  return (await run.kindOf(operation.kind).writes.preimage?.(contextOf(run, operation, world), read)) ?? {};
}

/**
 * Makes the durable record of a write: the request, its idempotency key, and the reads that evidence is compared
 * with. When this resolves, the write may be sent.
 *
 * @param recovers the entry that a new state asks about
 * @param question the key is asked, as after a send that this state does not know of, and nothing is sent yet
 * @param ahead incarnations after the current one, whose key is asked
 * @param numbered the incarnation, where it is not the one that the state has counted
 * @param queuedAt wall ms, since when the write was ready
 */
export async function beginIntent(
  run: Run,
  operation: WriteContext['operation'],
  request: WriteRequest,
  {
    world,
    preimage,
    question,
    recovers,
    ahead = 0,
    numbered,
    queuedAt,
  }: {
    readonly world: World;
    readonly preimage: Preimage;
    readonly question?: KeyQuestion;
    readonly recovers?: ResourceKey | undefined;
    readonly ahead?: number;
    readonly numbered?: Pick<Intent, 'incarnation' | 'elsewhere'> | undefined;
    readonly queuedAt?: number;
  },
): Promise<Intent> {
  const { store, random, writes } = run.deps;
  const kind = run.kindOf(operation.kind);
  const subject = subjectOf(world, operation.key);
  const replaces =
    operation.verb === 'create' && operation.replacement !== undefined
      ? run.bindings.get(operation.key)?.id
      : undefined;
  const freed = freedBy(run, operation, world);
  const parts = partsIn(world, operation);
  const beside = replaces === undefined ? 0 : 1;
  const numbers = await numbersOf(run, operation, subject.parent, { ahead, beside, numbered });
  const id = randomId(random.next);
  const named = idempotencyKey(run, {
    key: operation.key,
    verb: operation.verb,
    incarnation: numbers.incarnation,
    attempt: numbers.attempt,
    ...(kind.setting || operation.verb === 'update' ? { nonce: id } : {}),
  });
  const isNew = question === undefined && operation.verb === 'create';
  const asked = isNew && (await holdsAnother(run, operation.key, named)) ? conflicting : question;
  const sent = sentNow(run);
  const now = sent.lastSentAt;
  const parentId = subject.parent && world.idOf(subject.parent);
  const intent: Intent = {
    id,
    key: operation.key,
    kind: operation.kind,
    verb: operation.verb,
    changes: operation.changes,
    ...numbers,
    idempotencyKey: named,
    request,
    sentAs: writes.digest(request),
    basis: digestOf(subject.desired?.value ?? null),
    spec: run.desired.digest,
    ...(subject.desired === undefined || operation.verb === 'delete'
      ? {}
      : { entry: entryOf(subject.desired) }),
    ...parts,
    preimage,
    ...(parentId === undefined ? {} : { parentId }),
    ...(replaces === undefined ? {} : { replaces }),
    ...(freed === undefined ? {} : { freed }),
    ...(recovers === undefined ? {} : { recovers }),
    ...(asked === undefined
      ? { phase: 'sending', sends: 1 }
      : { phase: 'unknown', unconfirmed: { why: 'lost', question: asked }, sends: 0 }),
    lost: 0,
    detail: '',
    createdAt: now,
    ...(queuedAt === undefined || now - queuedAt < shownWaitMs ? {} : { queuedAt }),
    ...{ firstSentAt: sent.lastSentAt, firstSentApiAt: sent.lastSentApiAt, ...sent },
    dueAt: now,
  };
  await store.claimProject(run.desired.projectId);
  await run.state.begin(intent);
  return intent;
}

/** `max_monthly_increase` counts the price of the replaced resource also in a later run. */
function freedBy(
  run: Run,
  { key, kind, verb, replacement }: WriteContext['operation'],
  world: World,
): string | undefined {
  if (verb !== 'delete' || replacement === undefined || retiredFrom(key) !== undefined) return undefined;
  const price = pricesNow(world, [{ subject: subjectOf(world, key), kind: run.kindOf(kind) }]).get(key);
  return price !== undefined && 'known' in price ? price.known : undefined;
}

function entryOf({ value, protect, moved }: DesiredResource): NonNullable<Intent['entry']> {
  return { value, protect, ...(moved && { moved }) };
}

function partsIn({ subjects }: World, { key, kind, verb }: WriteContext['operation']): Pick<Intent, 'parts'> {
  if (verb !== 'create' || factsOf(kind).container !== true) return {};
  const isPart = (each: Subject) =>
    each.parent === key && each.desired !== undefined && !factsOf(each.kind).repeats;
  return { parts: [...subjects.values()].filter(isPart).map((each) => each.key) };
}

/** A shorter wait before a write is not recorded. */
const shownWaitMs = 1_000;

/** An older list makes evidence less precise, but never wrong: known resources are left out of the list. */
const preimageFreshMs = 60_000;

/** How the incarnation of a write is found. */
interface Numbering {
  readonly ahead: number;
  readonly beside: 0 | 1;
  readonly numbered: Pick<Intent, 'incarnation' | 'elsewhere'> | undefined;
}

/** The incarnation and the attempt in the idempotency key of a write. */
async function numbersOf(
  run: Run,
  operation: WriteContext['operation'],
  parent: ResourceKey | undefined,
  numbering: Numbering,
): Promise<Pick<Intent, 'incarnation' | 'attempt' | 'elsewhere'>> {
  const { key, verb } = operation;
  const { incarnation, elsewhere } =
    numbering.numbered ?? (await incarnationNow(run, operation, parent, numbering));
  const last = asksKey(run, operation)
    ? await lastAttempt(run, key, incarnation)
    : await run.deps.store.lastAttempt(key, verb, incarnation);
  return { incarnation, attempt: last + 1, ...(elsewhere ? { elsewhere } : {}) };
}

/**
 * A new server starts a new incarnation of its children. Otherwise the key of a network interface would replay the answer
 * for the old server.
 */
async function incarnationNow(
  run: Run,
  { key, kind, verb }: WriteContext['operation'],
  parent: ResourceKey | undefined,
  { ahead, beside }: Numbering,
): Promise<Pick<Intent, 'incarnation' | 'elsewhere'>> {
  const { store } = run.deps;
  const own =
    asksKey(run, { verb, kind }) && parent === undefined
      ? await incarnationOf(run, key, ahead + beside)
      : { incarnation: (await store.incarnation(key)) + ahead + beside, elsewhere: 0 };
  const before = parent === undefined ? '' : `${await store.incarnation(parent)}.`;
  // A question about a later incarnation says nothing about the resources before it.
  const { elsewhere } = ahead === 0 ? own : await incarnationOf(run, key, beside);
  return { incarnation: `${before}${own.incarnation}`, elsewhere };
}

function randomId(next: () => number): string {
  return Array.from({ length: 16 }, () => Math.floor(next() * 16).toString(16)).join('');
}

/**
 * The highest age of the observation that a write is decided on, in ms. The reads of this observation may be a minute
 * old, so that a slow turn leaves usable reads for the next turn.
 */
export const observationValidMs = 30_000;
/** The same limit up to the first byte, because the machine may be suspended between the record and the send. */
export const sendValidMs = 60_000;

/** Waits for the turn to write. The observation that the write needs is made shortly before the turn. */
export function inWriteSlot<Result>(
  run: Run,
  of: Pick<Intent, 'key' | 'kind' | 'verb'>,
  write: () => Promise<Result>,
): Promise<Result> {
  run.report(of, 'queued', 'for its turn');
  const look = () => void run.view.observe(of.key).catch(() => undefined);
  return run.gate.run(write, {
    urgency: run.kindOf(of.kind).timing.urgency,
    signal: run.signals.stop,
    getReady: look,
    exposes: of.verb === 'create' && firewallOf(run.world, of.key) !== undefined,
  });
}

/** Waits for the write budget. Then the next writes make their observations. */
export async function roomToWrite({ deps, gate, signals }: Run): Promise<void> {
  await deps.writes.room(signals.stop, gate.isWaited());
  gate.readyNext();
}

/** Uses both clocks, because a suspended machine may stop only one of them. */
export function sinceObservation({ deps: { clock } }: Run): (validMs: number) => boolean {
  const [monotonic, wall] = [clock.monotonic(), clock.now()];
  return (validMs) => clock.monotonic() - monotonic <= validMs && Math.abs(clock.now() - wall) <= validMs;
}

/** Sends under the token that passed the project fence, unless the machine is suspended in between. */
export async function sendFenced(run: Run, request: WriteRequest, key: string): Promise<WriteResult> {
  run.signals.stop.throwIfAborted();
  const { writes, store } = run.deps;
  await writes.room(run.signals.stop, run.gate.isWaited());
  const pauses = sinceObservation(run);
  const token = await run.fence.check();
  if (!pauses(observationValidMs)) return { type: 'unsent', reason: 'the project fence took too long' };
  return writes.send(request, key, token, () => pauses(sendValidMs) && store.isOwned?.() !== false);
}
