import { addressObject, objectName } from '../../core/claims.ts';
import { type DesiredResource, idInSpec } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { partsOf } from '../../core/intent.ts';
import { nounOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { ReadPort } from '../../core/ports.ts';
import { type CommandResult, command, result } from '../../core/remedy.ts';
import type { Answer, Binding, Intent, StateChange } from '../../core/state.ts';
import { capitalised } from '../../core/text.ts';
import { cameFree, releasing, waysOut } from '../../plan/open-writes.ts';
import { identityChanged, ownerOf } from '../claims/claims.ts';
import { deleted, exchanging, releasedClaim } from '../claims/release.ts';
import { usedUp } from '../claims/scope.ts';
import { hasUnidentified, identified, settled } from '../claims/unidentified.ts';
import type { Resolution } from '../deps.ts';
import { bindingsIn, boundBy } from '../intents/bound-by.ts';
import { close, questionOf } from '../intents/endings.ts';
import { lift } from '../intents/pauses.ts';
import { record } from '../intents/record.ts';
import { isReservation } from '../intents/reserve-key.ts';
import { madeRoomFor } from '../intents/revalidate.ts';
import { serverIsGone } from '../intents/settle.ts';
import { askerOf, endQuestion, replacedBy } from '../intents/transfer.ts';
import { bindingOf } from '../run/adopt.ts';
import { knownIds, type Run } from '../run.ts';
import {
  adoptKey,
  passedFromLeft,
  refuseContradiction,
  refuseMalformed,
  remarksOn,
  takenFrom,
  unverified,
  worldWith,
} from './adopt-key.ts';
import {
  askBeforeAbsent,
  askedByKey,
  existsAlready,
  idAnswered,
  refuseOther,
  refuseTooSoon,
  refuseUnended,
  refuseUnnamed,
} from './asked-key.ts';
import { goneAndUsedAgain } from './ignore.ts';

/** Ends an intent by a decision of the operator, and checks the decision against the project if possible. */
export async function resolveIntent(
  run: Run,
  key: ResourceKey,
  resolution: Resolution,
): Promise<CommandResult> {
  await run.moves.keep();
  // A reservation sends nothing that the API could carry out, and the next apply ends it.
  const writes = new Map([...run.intents].filter(([, each]) => !isReservation(each)));
  const intent = writes.get(key);
  const bound = run.bindings.get(key);
  if (
    intent === undefined &&
    bound !== undefined &&
    resolution.type === 'absent' &&
    identityChanged(run, key)
  )
    return goneAndUsedAgain(run, bound);
  if (resolution.type === 'retry') {
    const lifted = intent === undefined || waits(intent) ? await liftPause(run, key) : undefined;
    if (lifted !== undefined) return result(lifted);
  }
  // Several entries may propose the command, and the first one has settled it.
  if (intent === undefined && resolution.type === 'absent' && hasUnidentified(run, key)) {
    await run.state.change(settled(run, new Set([key])));
    return result(`Recorded: no other server was created for ${key}.`);
  }
  if (intent === undefined && resolution.type === 'adopt' && bound?.id === resolution.id)
    return result(`${key} is bound to ${bound.id}.`);
  if (intent === undefined) {
    const others = [...run.bindings.keys()].filter((each) => identityChanged(run, each));
    const waiting = [...new Set([...writes.keys(), ...others])].sort();
    const message =
      waiting.length === 0
        ? 'No key has an open write, so there is nothing to resolve.'
        : `${key} has no open write. These keys can be resolved: ${waiting.join(', ')}.`;
    throw new ConfigError(message, true);
  }
  switch (resolution.type) {
    case 'adopt':
      return adoptOutcome(run, intent, resolution.id);
    case 'absent':
      return absentOutcome(run, intent);
    case 'retry':
      return retriedOutcome(run, intent);
    case 'abandon':
      if (intent.verb === 'create') refuseTooSoon(run, intent);
      return abandonedOutcome(run, intent);
  }
}

/** A deletion that waits, for example for the end of a pause. */
function waits({ verb, phase }: Intent): boolean {
  return verb === 'delete' && phase !== 'blocked';
}

/** The next apply plans the write again. It had no effect: the API refused it, or the operator says so of an update. */
function retriedOutcome(run: Run, intent: Intent): Promise<CommandResult> {
  const { key, verb } = intent;
  if (verb === 'update' || partsOf(intent).blocked?.until === 'file')
    return absentOutcome(run, intent, `The next run sends the write (${verb}) of ${key} again.`);
  throw new ConfigError(
    `The write (${verb}) of ${key} may have had an effect, so it is not sent again.`,
    true,
    waysOut(intent, run),
  );
}

/** Gives up a write. A creation that its key shows is recorded, so that its resource stays in sight. */
async function abandonedOutcome(run: Run, open: Intent): Promise<CommandResult> {
  const { key, verb } = open;
  refuseTaken(run, open);
  const keyAnswer = await askedByKey(run, open);
  if (typeof keyAnswer === 'object') await record(run, run.intents.get(key) ?? open, keyAnswer.answer);
  const intent = run.intents.get(key) ?? open;
  // The key named a resource, so the next resource has the next incarnation, as any state expects.
  const isUsed = verb === 'create' && partsOf(intent).answer?.id !== undefined;
  const changes: StateChange[] = [...leftToItself(run, intent), ...(isUsed ? await usedUp(run, intent) : [])];
  await close(run, intent, { outcome: 'abandoned', text: 'the operator gave up the write' }, { changes });
  return result(`The write (${verb}) of ${key} is given up. ${leftBehind(run, intent)}`);
}

/** The resource for which the key was used exists. Without an answer, the next apply would buy the resource of the entry again. */
function refuseTaken(run: Run, intent: Intent): void {
  const { key } = intent;
  if (run.world.subjects.get(key)?.desired === undefined || questionOf(intent).conflict !== true) return;
  throw new ConfigError(
    `The idempotency key of ${key} was used, so its resource may exist: without an answer, the next apply would create another one.`,
    true,
    waysOut(intent, run),
  );
}

/** Claims the resource that a creation was answered with, if no list shows it: it would be billed unseen. */
function leftToItself(run: Run, intent: Intent, adopted?: string): StateChange[] {
  const { key, kind, verb } = intent;
  const id = madeBy(intent);
  if (verb !== 'create' || id === undefined || id === adopted) return [];
  const { container, unlisted } = factsOf(kind);
  if (!(unlisted || (container && run.world.ipsOf(id).length === 0))) return [];
  if (run.claims.has(objectName({ kind, id })) || ownerOf(run, { ...intent, id }) !== undefined) return [];
  return releasedClaim(run, { key, kind, id, identity: {} }, 'operator');
}

/** The resource of the write that the API has shown: no read shows the remains of a failed task of an unlisted kind. */
function madeBy(intent: Intent): string | undefined {
  const { answer } = partsOf(intent);
  return answer?.end === 'failed' && factsOf(intent.kind).unlisted ? undefined : answer?.id;
}

/**
 * An earlier refusal pauses a replacement, so no write is sent that could show the end of the refusal. The operator
 * declares the end, for every replacement that the pause holds.
 */
async function liftPause(run: Run, key: ResourceKey): Promise<string | undefined> {
  const second = madeRoomFor(run, run.world, key, 'delete');
  if (second.length === 0) return undefined;
  for (const each of second) await lift(run.deps, each);
  return `No earlier refusal pauses the replacement of ${key} any more. The next apply begins it.`;
}

/** Names the known resources of the write, because they are not bound to a key. */
function leftBehind({ world }: Run, intent: Intent): string {
  const { key, verb, kind, phase } = intent;
  const { blocked } = partsOf(intent);
  if (verb !== 'create')
    return phase === 'waiting'
      ? 'The resource is unchanged, and stays bound to the key.'
      : 'The write may have had its effect: the next plan shows the resource.';
  const noun = nounOf(kind);
  const id = madeBy(intent);
  if (id === undefined) {
    const seen = (blocked?.candidates ?? []).map((each) => world.nameOf({ kind, id: each }));
    const what =
      seen.length === 0
        ? ''
        : ` Possibly it is ${noun} ${seen.join(' or ')}, which appeared after the write.`;
    return `If the write created a resource, the resource is billed and unmanaged.${what} While the spec asks for ${key}, the next apply creates another one.`;
  }
  const isServer = factsOf(kind).container;
  const attached = isServer ? world.ipsOf(id).map(({ address }) => address) : [];
  const what = [
    `${noun} ${world.nameOf({ kind, id })}`,
    ...attached.map((address) => `address ${address}`),
  ].join(' and ');
  const unseen = isServer && attached.length === 0 ? ', which plans do not show' : '';
  return `The write created ${what}${unseen}. ${capitalised(what)} is unmanaged, and billed while it exists.`;
}

async function adoptOutcome(run: Run, intent: Intent, id: string): Promise<CommandResult> {
  refuseMalformed(intent.kind, id);
  const holder = existingBinding(run, intent, id);
  if (holder !== undefined) {
    await endQuestion(run, intent, holder);
    return result(`${holder.key} is bound to ${id}, so the write of ${intent.key} is ended.`);
  }
  const asker = askerOf(run, intent) ?? renamedEntry(run, intent);
  // The entry that names another resource asks for no more.
  const named = asker && idInSpec(run.world.subjects.get(asker.key)?.desired);
  const { key } = named === undefined || named === id ? (asker ?? intent) : intent;
  const declared = run.world.subjects.get(key)?.desired;
  const isElsewhere = key !== intent.key;
  if (isElsewhere && declared?.managed !== false) {
    const open = run.intents.get(key);
    const said = await (open === undefined ? adoptKey(run, key, id) : adoptOutcome(run, open, id));
    // A rename that waits binds the resource to the earlier key.
    const binding = run.bindings.get(key) ?? ownerOf(run, { ...intent, id, key });
    if (binding !== undefined) await endQuestion(run, intent, binding);
    return said;
  }
  if (mayBeOther(intent) && (isElsewhere || declared === undefined)) return adoptLeft(run, intent, key, id);
  if (intent.verb === 'delete') {
    throw new ConfigError(`${intent.key} is being deleted, so it cannot adopt a resource.`, true, [
      command('resolve', [intent.key, '--absent'], { when: 'once the resource is gone' }),
      command('resolve', [intent.key, '--abandon'], { when: 'to give up the deletion' }),
    ]);
  }
  if (declared?.managed === true) refuseContradiction(declared, id);
  const passed =
    mayBeOther(intent) &&
    declared?.parent === undefined &&
    declared &&
    passedFromLeft(run, { ...declared, id });
  if (passed) {
    await close(run, intent, { outcome: 'done', text: `the operator adopted ${id}` }, { changes: passed });
    return result(`${key} is bound to ${id}.`);
  }
  if (intent.replaces === id) return usedForOld(run, intent, id);
  refuseUnended(intent);
  if (intent.verb === 'create') refuseTooSoon(run, intent);
  const keyAnswer = await askedByKey(run, intent);
  if (typeof keyAnswer === 'object' && idAnswered(run, intent, keyAnswer.answer) !== id)
    return refuseOther(run, intent, keyAnswer.answer);
  const made = intent.phase === 'accepted' ? intent.answer.id : undefined;
  if (made !== undefined && made !== id) throw existsAlready(intent, made);
  const { bound, remarks } = (await madeByOther(run, intent, id)) ?? (await madeAsSent(run, intent, id));
  const bindings = bindingsIn(bound);
  const rebound = new Set(bindings.map((each) => each.key));
  const taken = bindings.flatMap((binding) => takenFrom(run, binding, rebound));
  const text = `the operator adopted ${id}`;
  // The address that an earlier server of the key has left may be on this one.
  const staying = run.bindings.has(intent.key) ? [] : exchanging(run, intent.key, 'operator', id);
  const ended = [...replacedBy(run, intent, bound), ...leftToItself(run, intent, id), ...taken];
  const changes = [...ended, ...staying, ...bound];
  await close(run, intent, { outcome: 'done', text }, { changes });
  return result(`${intent.key} is bound to ${id}.${remarks}${unverified(intent)}${notEnded(intent)}`);
}

/** A remark if the API has not reported the end of a creation that it accepted: the resource may not work yet. */
function notEnded({ phase, kind }: Intent): string {
  if (phase !== 'accepted') return '';
  return ` The API has not reported the end of its creation: check in the client area that the ${nounOf(kind)} works.`;
}

/** @throws ConfigError unless the new resource waits for word about the use of its key */
async function usedForOld(run: Run, intent: Intent, id: string): Promise<CommandResult> {
  const { key, kind } = intent;
  const old = `${nounOf(kind)} ${id}`;
  if (questionOf(intent).conflict !== true)
    throw new ConfigError(`${key} is being replaced, and ${id} is the old ${nounOf(kind)}.`, false, [
      command('apply', [], { when: 'to end the replacement' }),
    ]);
  const text = `the operator reported that its idempotency key was used for ${old}`;
  const changes = [{ type: 'next_incarnation', key } as const];
  await close(run, intent, { outcome: 'void', because: 'taken', text }, { changes });
  return result(`${capitalised(old)} is the old one: the next apply continues the replacement of ${key}.`);
}

/**
 * The binding to the resource of a creation: that of another key, if the entry of the creation has left the spec, or if its
 * `moved` takes over the binding once the write is ended; or that of its own key, for a question about an earlier write.
 */
function existingBinding(run: Run, intent: Intent, id: string): Binding | undefined {
  const { subjects } = run.world;
  const bound = run.bindings.get(intent.key);
  if (bound?.id === id && intent.recovers !== undefined) return bound;
  const holder = intent.verb === 'create' ? ownerOf(run, { ...intent, id }) : undefined;
  if (holder === undefined) return undefined;
  const [own, its] = [intent.key, holder.key].map((key) => subjects.get(key)?.desired);
  const isBound = own === undefined || (its === undefined && run.lines().of(own).has(holder.key));
  return isBound && holder.tainted === undefined && !identityChanged(run, holder.key) ? holder : undefined;
}

/** Another state may have used the key, so the resource may differ from the request of this state. */
function mayBeOther(intent: Intent): boolean {
  return intent.recovers !== undefined || partsOf(intent).blocked?.code === 'key_conflict';
}

/** The entry that has another key by now. Its `moved` waits for the end of the write. */
function renamedEntry(run: Run, intent: Intent): DesiredResource | undefined {
  const { key, recovers = key, replaces } = intent;
  if (!mayBeOther(intent) || replaces !== undefined) return undefined;
  const { resources } = run.desired;
  return resources.find((each) => [key, recovers].some((of) => run.lines().of(each).has(of)));
}

/** The resource with the values of the request. @throws ConfigError if reads do not show it */
async function madeAsSent(run: Run, intent: Intent, id: string) {
  // The decision of the operator takes precedence over the facts of an answer.
  const { at = 0, end = 'reported' } = partsOf(intent).answer ?? {};
  const answer: Answer = { at, id, facts: {}, to: 'this_send', end };
  const found = await fenced(run, (read) =>
    run.kindOf(intent.kind).writes.evidence({ ...intent, answer }, read, () => new Set()),
  );
  if (!('id' in found && found.id === id)) {
    throw new ConfigError(
      `The project has no ${nounOf(intent.kind)} ${id} with the values of ${intent.key}.`,
    );
  }
  const facts = found.verdict === 'done' ? found.facts : undefined;
  return { bound: boundBy(run, intent, { id, facts, under: intent.key, byOperator: true }), remarks: '' };
}

/** The resource as adopted: its values are not known from the request of this state. */
async function madeByOther(run: Run, intent: Intent, id: string) {
  const subject = run.world.subjects.get(intent.key);
  if (!mayBeOther(intent) || subject?.desired === undefined) return undefined;
  const world = await worldWith(run, subject, id);
  if (world === undefined) return undefined;
  const binding = bindingOf(run, subject, id, world);
  const remarks = remarksOn(run, { ...subject, binding }, world);
  const bound: readonly StateChange[] = [{ type: 'bind', binding }, ...identified(run, binding)];
  return { bound, remarks };
}

/** The entry of `key` has left the spec, or is not managed. If it returns, it takes the resource back. */
async function adoptLeft(run: Run, intent: Intent, key: ResourceKey, id: string): Promise<CommandResult> {
  const { kind } = intent;
  const { parent } = takeApart(key);
  if ((await worldWith(run, { key, kind, ...(parent && { parent }) }, id)) === undefined)
    throw new ConfigError(`The project has no ${nounOf(kind)} ${id}.`);
  const formerKeys = key === intent.key ? [] : [intent.key];
  const changes = releasedClaim(run, { key, kind, id, identity: {}, formerKeys }, 'operator');
  await close(run, intent, { outcome: 'done', text: `the operator reported it as ${id}` }, { changes });
  const isLeft = run.world.subjects.get(key)?.desired === undefined;
  return result(
    `${capitalised(nounOf(kind))} ${id} is recorded for ${key}, which ${isLeft ? 'has left the spec. If that entry returns, it' : 'is not managed. Without `managed: false`, the entry'} takes the ${nounOf(kind)} back.`,
  );
}

/** The decision of the operator counts if reads show no evidence. It does not count against evidence. */
async function absentOutcome(run: Run, intent: Intent, resent?: string): Promise<CommandResult> {
  const { key, verb, kind } = intent;
  refuseTooSoon(run, intent);
  refuseUnnamed(run, intent);
  const [found, ips] = await fenced(run, async (read) => [
    await run.kindOf(kind).writes.evidence(intent, read, (each) => knownIds(run, each, intent)),
    await read.ips(),
  ]);
  if (verb === 'delete' && found.verdict !== 'done') {
    throw new ConfigError(`${key} still exists, so vdcsync cannot record its deletion.`, false, [
      command('resolve', [key, '--abandon'], { when: 'to give up the deletion' }),
    ]);
  }
  const isSeen =
    found.verdict === 'pending' || found.verdict === 'failed' || (found.verdict === 'done' && found.certain);
  const isThere = isSeen && !serverIsGone(run, intent);
  const isWithoutOwner = isThere && ownerOf(run, { ...intent, id: found.id }) === undefined;
  // A refused entry created no resource, so the live resource is another one.
  if (verb !== 'delete' && isWithoutOwner && partsOf(intent).blocked?.until !== 'file') {
    throw new ConfigError(`${key} exists: it is ${nounOf(kind)} ${found.id}.`, false, [
      command('resolve', [key, '--adopt', found.id]),
    ]);
  }
  const remark = await askBeforeAbsent(run, intent);
  const { id: named, end } = partsOf(intent).answer ?? {};
  // The key named a resource, so the next resource has the next incarnation, as any state expects.
  const isUsed = questionOf(intent).conflict === true || (named !== undefined && end !== 'failed');
  const isNext = verb === 'create' && isUsed;
  const changes: StateChange[] = [
    ...(verb === 'delete' ? deleted(run, intent, 'the operator reported that the resource is gone') : []),
    ...(isNext ? await usedUp(run, intent) : []),
  ];
  const outcome = verb === 'delete' ? 'done' : 'absent';
  const managed = knownIds(run, addressObject(0).kind, intent);
  const left = cameFree(intent, ips, ({ id }) => managed.has(String(id)));
  const text = `the operator ${resent === undefined ? 'reported it absent' : 'ended the write, to send it again'}`;
  await close(run, intent, { outcome, because: 'reported_absent', text }, { changes });
  const said = resent ?? `${key} is recorded as absent. Run \`vdcsync plan\` to see the next step.`;
  return result(`${said}${remark}`, releasing(left));
}

/** @throws ConfigError if the token was exchanged: the reads may be about another project */
async function fenced<Result>(run: Run, work: (read: ReadPort) => Promise<Result>): Promise<Result> {
  const result = await run.fence.read(work);
  if (result === undefined)
    throw new ConfigError('The token was exchanged during the command, so nothing was recorded. Try again.');
  return result;
}
