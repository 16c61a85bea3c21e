import { type Claim, isForeign, objectName } from '../../core/claims.ts';
import { namedAddress } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { nounOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import { type CommandStep, command, edit, giveScope, type Remedy, wayToForget } from '../../core/remedy.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Binding, Facts, InPhase, Intent, StateChange } from '../../core/state.ts';
import { attributionOf, identityChanged, isAnother, makerOf, ownerOf } from '../claims/claims.ts';
import { deleted, released, retiring } from '../claims/release.ts';
import { incarnations, incarnationsBeyond, usedUp } from '../claims/scope.ts';
import { answeredWithServer } from '../claims/unidentified.ts';
import type { Run } from '../run.ts';
import { staleMs } from '../timing.ts';
import { bindingsIn, boundBy, companionsOf, remainsOf } from './bound-by.ts';
import {
  again,
  awaitEnd,
  block,
  close,
  closeBlocked,
  isReplay,
  type Progress,
  sentPreference,
} from './endings.ts';

/** A created resource, as an answer or evidence shows it. */
export interface Created {
  readonly id: string;
  readonly facts?: Facts | undefined;
}

/**
 * The write took effect. A deleted resource is released. A created resource is bound with the resources that came with
 * it, and passes from its previous holder to the key.
 *
 * @param damage the reason why the created resource is not usable: the state must not lose it, and the operator or the
 * next run decides about it
 */
export async function settled(
  run: Run,
  intent: Intent,
  { id, facts }: Created,
  damage?: string,
): Promise<Progress> {
  const now = run.intents.get(intent.key);
  // The id was given to another key while this step read its evidence.
  if (partsOf(intent).answer?.id === id && (now === undefined || partsOf(now).answer?.id !== id))
    return again(0);
  if (intent.recovers !== undefined) return found(run, intent, id);
  if (intent.verb === 'delete')
    return close(run, intent, { outcome: 'done', text: '' }, { changes: deleted(run, intent, 'deleted') });
  // The resource that a failed creation would have replaced keeps its key.
  const under = damage === undefined ? intent.key : remainsOf(intent, id);
  const another = isReplay(intent) ? await answeredWithServer(run, intent) : [];
  const bound = boundBy(run, intent, { id, facts, under });
  const taken = intent.verb === 'create' ? await transferred(run, intent, bound) : [];
  if ('now' in taken) return taken;
  const exchange = intent.verb === 'create' ? exchangedAddresses(run, intent, facts) : [];
  const chosen = sentPreference(run, intent);
  const text = [
    ...(intent.verb === 'create' && isReplay(intent) ? ['found under its idempotency key'] : []),
    ...(chosen === undefined ? [] : [`gpu_package ${chosen}`]),
  ].join(', ');
  if (damage === undefined)
    return close(
      run,
      intent,
      { outcome: 'done', text },
      { changes: [...taken, ...exchange, ...bound, ...another] },
    );
  const changes = bound.map((change) =>
    change.type === 'bind' && change.binding.key === under
      ? { ...change, binding: { ...change.binding, tainted: damage } }
      : change,
  );
  const ended = { outcome: 'failed', text: damage } as const;
  return closeBlocked(run, intent, ended, 'tainted', {
    changes: [...taken, ...exchange, ...changes, ...another],
  });
}

/**
 * Ends the question of a new state with the resource that its key was answered with. A resource that is already bound or
 * claimed keeps its holder. A binding records the answered key as an earlier one, because it may be wrong.
 */
export async function found(
  run: Run,
  intent: Intent,
  id: string,
  { taskId, namedBy }: { readonly taskId?: TaskId | undefined; readonly namedBy?: ResourceKey } = {},
): Promise<Progress> {
  const { key, kind, recovers = key } = intent;
  const holder = {
    ...foundUnder(run, key),
    ...(recovers === key ? {} : { askedFor: recovers }),
    ...(taskId === undefined ? {} : { taskId }),
  };
  const { isFree, changes } = answeredWith(run, { kind, id, identity: {} }, holder, recovers);
  // Until that entry is bound, its `id` may leave the spec again: the resource then is the one of the key.
  if (namedBy !== undefined) {
    const text = `${namedBy} names ${id}, which was created under this key`;
    const used = await usedUp(run, intent);
    return close(
      run,
      intent,
      { outcome: 'void', because: 'taken', text },
      { changes: [...changes, ...used] },
    );
  }
  // The resource may be of a later incarnation than the state knows.
  const counted = incarnations(key, await incarnationsBeyond(run, intent));
  // The key stays in use: a creation under the key gets this answer again.
  const outcome = isFree ? 'absent' : 'void';
  const text = `found under its idempotency key: ${id}`;
  return close(
    run,
    intent,
    { outcome, because: 'found', text },
    { changes: [...changes, ...counted, ...(await answeredWithServer(run, intent))], retryAfterMs: 0 },
  );
}

/** A claim on the object that a key was answered with. If the object has a holder, the key is recorded with the holder. */
function answeredWith(
  run: Run,
  object: Pick<Binding, 'kind' | 'id' | 'parentId' | 'identity'>,
  holder: Claim['holder'],
  key: Intent['key'],
): { readonly isFree: boolean; readonly changes: StateChange[] } {
  const before = run.claims.get(objectName(object));
  // The API may have given out the id of a bound object that is gone. @assumption A17
  const owner = [...run.bindings.values()].find((each) => objectName(each) === objectName(object));
  const isGone = owner !== undefined && identityChanged(run, owner.key);
  if ((owner !== undefined && !isGone) || !isFindable(run, before, key))
    return { isFree: false, changes: answeredFor(owner ?? before, key) };
  const { kind, id, identity } = object;
  const claim = { kind, id, identity, holder, at: run.deps.clock.now() };
  const ended = isGone ? released(run, owner.key, `its id ${id} was given to ${key}`) : [];
  return { isFree: true, changes: [...ended, { type: 'claim', claim }] };
}

function foundUnder({ desired: { scope } }: Run, key: Intent['key']) {
  return { is: 'found', key, ...(scope === undefined ? {} : { scope }) } as const;
}

/** The binding or the entry whose resource a new state asks the key of the intent about. */
export function askerOf(
  { world, bindings, desired }: Run,
  { key: asked, recovers }: Intent,
): Pick<Binding, 'key' | 'formerKeys'> | undefined {
  const isLeft = (key: ResourceKey) => world.subjects.get(key)?.desired === undefined;
  const askers: Pick<Binding, 'key' | 'formerKeys'>[] = [...bindings.values(), ...desired.resources];
  return askers.find(
    ({ key, formerKeys = [] }) =>
      recovers !== undefined && [key, ...formerKeys].includes(recovers) && (!isLeft(key) || isLeft(asked)),
  );
}

/** The operator has named the resource of the line, so the run waits for no other answer. */
export function endQuestion(run: Run, intent: Intent, holder: Binding): Promise<Progress> {
  const text = `the operator adopted ${holder.id} for ${holder.key}`;
  return close(run, intent, { outcome: 'done', text }, { changes: answeredFor(holder, intent.key) });
}

/**
 * A resource that only `unmanaged: ignore` ignores counts as found once a key was answered with it: the API forgets its
 * answer after a day, and the resource may still be the one of the entry. If the keys of two entries were answered with
 * the same id, the resource of one of them is gone, and the API has given out its id again. @assumption A17
 */
function isFindable({ desired }: Run, before: Claim | undefined, key: ResourceKey): boolean {
  const { holder } = before ?? {};
  if (holder?.is !== 'found')
    return holder === undefined || (holder.is === 'ignored' && holder.by === 'file');
  const { askedFor: own = holder.key, scope } = holder;
  return own === key || scope !== desired.scope || !desired.resources.some((each) => each.key === own);
}

/** The holder of a resource records the key of another entry that was answered with the resource. */
function answeredFor(holder: Binding | Claim | undefined, key: Intent['key']): StateChange[] {
  if (holder === undefined) return [];
  if ('key' in holder) {
    const { formerKeys = [] } = holder;
    if (holder.key === key || formerKeys.includes(key)) return [];
    return [{ type: 'bind', binding: { ...holder, formerKeys: [...formerKeys, key] } }];
  }
  const { holder: by } = holder;
  if (!isForeign(by) && by.is !== 'found') return [];
  if (by.formerKeys?.includes(key) || ('formerKey' in by && by.formerKey === key)) return [];
  const formerKeys = [...(by.formerKeys ?? []), key];
  return [{ type: 'claim', claim: { ...holder, holder: { ...by, formerKeys } } }];
}

/**
 * The API attaches any free address. If the new server got the address of another key in place of the named one, the
 * two keys exchange their addresses. The plan has warned about that.
 */
function exchangedAddresses({ bindings }: Run, { entry }: Intent, facts: Facts = {}): StateChange[] {
  const named = namedAddress(entry?.value);
  const own = named && bindings.get(named);
  const held = (facts.addresses ?? []).map(({ id }) => String(id));
  if (own === undefined || held.includes(own.id)) return [];
  const other = [...bindings.values()].find(
    ({ key, kind, id }) => isAddress(kind) && takeApart(key).parent === undefined && held.includes(id),
  );
  if (other === undefined) return [];
  const as = (key: Binding, { id, identity, applied }: Binding) => ({ ...key, id, identity, applied });
  const pairs = [
    [own, other],
    [other, own],
  ] as const;
  return [
    ...pairs.map(
      ([{ key }, by]) => ({ type: 'release', key, gone: false, reason: `exchanged with ${by.key}` }) as const,
    ),
    ...pairs.map(([key, by]) => ({ type: 'bind', binding: as(key, by) }) as const),
  ];
}

/** The changes that end the previous holder of the resource, or the progress of a creation that must not bind it. */
async function transferred(
  run: Run,
  intent: Intent,
  bound: ReturnType<typeof boundBy>,
): Promise<StateChange[] | Progress> {
  const [{ binding: own }] = bound;
  const { id } = own;
  const { key } = intent;
  const { repeats } = factsOf(own.kind);
  const { setting } = run.kindOf(own.kind);
  const before = run.bindings.get(own.key);
  // An earlier state had the idempotency key for the replaced resource itself.
  if (id === intent.replaces && isReplay(intent)) {
    const changes = [{ type: 'next_incarnation', key } as const];
    const text = `its idempotency key was used for ${id} before`;
    return close(run, intent, { outcome: 'void', because: 'taken', text }, { changes, retryAfterMs: 0 });
  }
  // The resource that is bound to a key must not leave the state without a warning.
  const stays = before !== undefined && before.parentId === own.parentId && before.id !== id;
  if (stays && !repeats && !setting && before.id !== intent.replaces) {
    const reason = `the API created ${id} for ${key}, which is already bound to ${before.id}. If you adopt ${id}, ${before.id} is released`;
    return block(run, intent, 'bound_already', reason, { candidates: [id] });
  }
  const foreign = foreignHolder(run, intent, own);
  if (foreign !== undefined) return refuse(run, intent, own, foreign);
  const taken = await takeOver(run, intent, own);
  if (!('isOpen' in taken)) return [...taken, ...replacedBy(run, intent, bound)];
  if (taken.isOpen) return awaitEnd(taken.key);
  const reason = `the API answered that it created ${id} for ${key}, but ${taken.key} is bound to ${id}`;
  return block(run, intent, 'bound_already', reason);
}

/**
 * The resource that the created resource replaces retires, except for the address that the new one has got. The creation
 * was sent under the key of the next incarnation.
 */
export function replacedBy(
  run: Run,
  { key, replaces }: Intent,
  bound: readonly StateChange[],
): StateChange[] {
  const bindings = bindingsIn(bound);
  const own = bindings.find((each) => each.key === key);
  const before = run.bindings.get(key);
  if (own === undefined || before === undefined || before.id !== replaces) return [];
  // The API gave out the id again, so the resource that had the id is gone. One that retires counts by the end of its binding.
  return before.id === own.id ? [{ type: 'next_incarnation', key }] : retiring(run, before, bindings);
}

/** An answer that names a resource of another holder is not used. */
async function refuse(run: Run, intent: Intent, own: Binding, foreign: string): Promise<Progress> {
  const { key } = intent;
  const { id } = own;
  const reason = `another spec of this project, or an earlier state, used the idempotency key of ${key} before, and ${foreign}`;
  const { changes } = answeredWith(run, own, foundUnder(run, key), key);
  await close(run, intent, { outcome: 'void', because: 'found', text: reason }, { changes });
  const adopt = command('adopt', [key, id], { when: 'if the resource belongs to this spec' });
  const owner = ownerOf(run, own)?.key;
  const isDeclared = owner !== undefined && run.world.subjects.get(owner)?.desired !== undefined;
  const remedies = [giveScope(), isDeclared ? afterRelease(run, owner, command('adopt', [key, id])) : adopt];
  return { now: 'blocked', code: 'key_conflict', reason, remedies };
}

/** The command, after the entry that is bound to the resource has released it. */
function afterRelease({ desired: { settings } }: Run, key: ResourceKey, command: CommandStep): Remedy {
  const when = `if ${key} is bound to it by mistake`;
  const way = wayToForget(key, { isDeclared: true, when, prune: settings.prune });
  return { ...way, next: [...(way.next ?? []), command, edit(key, { entry: 'restore' })] };
}

/**
 * The holder because of which a creation must not bind the resource that a replayed answer named: the resource is
 * ignored, or another entry is bound to it. Another spec of the project may use the same key.
 */
function foreignHolder(run: Run, intent: Intent, own: Binding): string | undefined {
  const to = partsOf(intent).answer?.to ?? 'this_send';
  if (to === 'this_send') return undefined;
  const { kind, id } = own;
  const noun = `${nounOf(kind)} ${own.identity.address ?? id}`;
  const owner = to === 'unknown_send' ? ownerOf(run, own) : undefined;
  if (owner !== undefined && !isAnother(owner, own)) return `${noun} is bound to ${owner.key}`;
  if (!factsOf(kind).bought) return undefined;
  const claim = run.claims.get(objectName(own));
  const isSame = factsOf(kind).container
    ? attributionOf(run).server(id).is === claim?.holder.is
    : claim?.identity.address === own.identity.address;
  // The spec ignores an address together with the server that holds it, and not as the resource of this entry.
  const isAlong = isAddress(kind) && claim?.holder.is === 'ignored' && claim.holder.by === 'file';
  if (claim !== undefined && isSame && claim.holder.is !== 'found' && !isAlong) return `${noun} is ignored`;
  return to === 'unknown_send' && run.desired.settings.unmanaged === 'ignore'
    ? `\`unmanaged: ignore\` ignores ${noun}`
    : undefined;
}

/** Another key that has the resource of an intent. */
interface Rival {
  readonly key: Binding['key'];
  /** The end of its open write will show who has the resource. */
  readonly isOpen: boolean;
}

/**
 * The API gives an id again once its resource is gone, so the resource belongs to the key that was sent last: the
 * resource of the other key is gone. A fresh answer is always the last. A replayed answer shows the id that the API
 * gave out at that time: if another key got the id later, or may have, that key is the rival. An id that the request
 * named is not a new id. @assumption A17 @assumption A51
 */
export async function takeOver(
  run: Run,
  intent: Intent,
  own: Pick<Binding, 'key' | 'kind' | 'id' | 'parentId' | 'identity'>,
  isFresh = false,
): Promise<StateChange[] | Rival> {
  const { unlisted, repeats } = factsOf(intent.kind);
  const isNamed = unlisted === true && intent.entry?.value.name === own.id;
  if (isNamed || repeats === true) return [];
  const maker = makerOf(run, own);
  if (!isFresh && maker !== undefined && isLater(maker, intent))
    return { key: maker.key, isOpen: maker.phase !== 'blocked' };
  const bound = ownerOf(run, own);
  const isSame = bound !== undefined && !isAnother(bound, own);
  if (!isFresh && isSame && bound.boundAt > intent.firstSentAt) return { key: bound.key, isOpen: false };
  if (maker !== undefined) await supersede(run, maker, intent);
  if (bound === undefined) return [];
  run.facts.supersede(bound.key, intent.key);
  return released(run, bound.key, `its id ${bound.id} was given to ${intent.key}`);
}

/** The intent was sent later. If both were sent in the same millisecond, it was answered later. */
function isLater(one: Intent, other: Intent): boolean {
  if (one.firstSentAt !== other.firstSentAt) return one.firstSentAt > other.firstSentAt;
  return (partsOf(one).answer?.at ?? 0) > (partsOf(other).answer?.at ?? 0);
}

/** The work on the key of `maker` closes `maker`. That work may be waiting for the task of `maker` now. */
async function supersede(run: Run, maker: Intent, { key }: Intent): Promise<void> {
  run.facts.supersede(maker.key, key);
  const { id, facts = {} } = partsOf(maker).answer ?? {};
  run.stopwatch.mark(maker.id, 'due', staleMs);
  await run.state.update(maker, {
    stage: { phase: 'superseded', by: key, former: { ...(id === undefined ? {} : { id }), facts } },
    dueAt: run.deps.clock.now() + staleMs,
  });
}

/** The resource of a superseded creation is gone, and is created again under a new key. */
export async function endSuperseded(run: Run, intent: InPhase<'superseded'>): Promise<Progress> {
  const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
  if (wait > 0) return again(wait);
  const left = await leftBy(run, intent);
  if (left === undefined) return again(0);
  const changes = [...(await usedUp(run, intent)), ...left];
  const text = `the id of its resource was given to ${intent.by}`;
  return close(run, intent, { outcome: 'absent', because: 'gone', text }, { changes });
}

/**
 * The address that came with the resource that is gone. The address is billed, and is released like any address that
 * outlives its server, unless a server holds it now. Returns `undefined` if the token was exchanged meanwhile.
 */
async function leftBy(run: Run, intent: InPhase<'superseded'>): Promise<StateChange[] | undefined> {
  const { id: formerId, facts } = intent.former;
  if (formerId === undefined || facts.address === undefined) return [];
  const ips = await run.fence.read((read) => read.ips());
  const addresses = ips?.flatMap(({ id, address, server_id }) =>
    server_id === null && address === facts.address ? [{ id, address }] : [],
  );
  return addresses && companionsOf(run, intent, formerId, { addresses }, remainsOf(intent, formerId));
}
