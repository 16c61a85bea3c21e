import { serverObject } from '../core/claims.ts';
import { idInSpec } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import { digestOf } from '../core/json.ts';
import {
  comesWithServer,
  entryKeyOf,
  nounOf,
  type ResourceKey,
  retiredFrom,
  takeApart,
} from '../core/keys.ts';
import type { Subject, Verdict, World } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import { command, edit, outside, paying, type Remedy, setting, settleFirst } from '../core/remedy.ts';
import { restoring } from '../core/restoring.ts';
import type { Intent } from '../core/state.ts';
import { capitalised } from '../core/text.ts';
import { expiredEntry } from '../core/world.ts';
import { type Draft, keeping, operationsOf } from './draft.ts';
import { isProtected, lasting, whyLeft } from './flags.ts';
import {
  besideConflict,
  besideUnidentified,
  perhapsEarlier,
  takenBefore,
  unlistedServers,
} from './lost-state.ts';
import { besideRenamed, movedFromUnknown } from './moved-from.ts';
import type { Guard, GuardInput, Objection } from './objections.ts';
import { isOvertaken } from './open-writes.ts';
import { obstacles } from './order.ts';
import { besideUnresolved, earlierOpen, lineOpen, releasedAddress, unmanaged } from './purchases.ts';
import { isSecondHalf } from './replacements.ts';
import { mostOf } from './totals.ts';
import { confirming, foundText, isStated } from './unconfirmed.ts';
import { besideChange, outsideWindow, renameWaits } from './waits.ts';

/** The most fundamental first: the first guard that objects gives the reason. */
export const guards: readonly Guard[] = [
  { code: 'moved_onto_bound', check: renameWaits },
  { code: 'moved_in_flight', check: earlierOpen },
  { code: 'moved_from_unknown', check: movedFromUnknown },
  { code: undefined, check: refused },
  { code: 'suspended', check: suspended },
  { code: 'ip_in_use', check: attached },
  { code: 'protected', check: protect },
  { code: 'recovered_unconfirmed', check: recovered },
  { code: 'bound_already', check: boundElsewhere },
  { code: 'prune_disabled', check: prune },
  { code: 'replace_not_allowed', check: replacement },
  { code: 'network_in_use', check: obstructed },
  { code: 'project_not_active', check: notActive },
  { code: 'dependency_blocked', check: refusedInside },
  { code: 'dependency_blocked', check: besideChange },
  { code: 'dependency_blocked', check: besideConflict },
  { code: 'dependency_blocked', check: besideRenamed },
  { code: 'moved_in_flight', check: lineOpen },
  { code: 'unmanaged_resources', check: unmanaged },
  { code: 'unmanaged_resources', check: releasedAddress },
  { code: 'unmanaged_resources', check: perhapsEarlier },
  { code: 'unlisted_servers', check: unlistedServers },
  { code: 'unlisted_servers', check: besideUnidentified },
  { code: 'image_taken_before', check: takenBefore },
  { code: 'unresolved_create', check: besideUnresolved },
  { code: 'max_monthly_increase', check: dearerThanPlanned },
  { code: 'outside_window', check: outsideWindow },
];

/** The objection of the kind itself: the operation is not possible. */
function refused({ diff: { verdict } }: Draft): Objection | undefined {
  if (verdict.verdict !== 'blocked') return undefined;
  const { code, reason, remedies } = verdict;
  return { code, reason, remedies };
}

function obstructed({ diff: { verdict } }: Draft): Objection | undefined {
  return verdict.verdict === 'replace' ? verdict.obstacle : undefined;
}

function suspended({ diff }: Draft, { world, now }: GuardInput): Objection | undefined {
  const { suspend } = world.settings;
  const { verdict } = diff.verdict;
  if (suspend === null || verdict === 'unchanged' || verdict === 'adopt' || verdict === 'release')
    return undefined;
  if (suspend.until !== undefined && Date.parse(suspend.until) <= now) return undefined;
  return {
    reason: `settings.suspend stops all changes${suspend.until === undefined ? '' : ` until ${suspend.until}`}. Reason: ${suspend.reason}`,
    remedies: [],
    permit: edit('settings', { remove: ['suspend'] }),
  };
}

function protect(draft: Draft, { world, destroy }: GuardInput): Objection | undefined {
  const { subject, diff } = draft;
  const { verdict } = diff;
  if (verdict.verdict !== 'delete' && verdict.verdict !== 'replace') return undefined;
  if (!isProtected(subject, world)) return undefined;
  const server = subject.parent && world.subjects.get(subject.parent)?.desired;
  if (server !== undefined && subject.desired === undefined) {
    return {
      reason: `${server.key} is protected, and so is every resource inside it`,
      remedies: [edit(server.key, { set: { protect: false } })],
    };
  }
  if (verdict.verdict === 'replace') {
    return {
      reason: `${verdict.reason}, and ${subject.key} is protected. In a replacement, ${impactOf(draft, world)}`,
      remedies: [reverting(draft, verdict, world)],
      permit: permitting(subject, verdict, { protect: false }),
    };
  }
  if (subject.binding?.orphaned) {
    return {
      reason: `${subject.key} came with a server that is gone, and its last entry had \`protect: true\`. ${capitalised(impactOf(draft, world))}`,
      remedies: [
        keeping(draft, world),
        outside('release it in the client area', { when: 'to have it deleted' }),
      ],
    };
  }
  if (destroy) {
    return {
      reason: `${subject.key} is protected, and destroy does not delete protected resources. ${capitalised(impactOf(draft, world))}`,
      remedies: [unprotecting(draft, world, destroy)],
    };
  }
  const successor = retiredFrom(subject.key);
  const why =
    successor === undefined
      ? `${whyLeft(subject, world)}, and its last entry had`
      : `retires, and the entry of ${successor} had`;
  return {
    reason: `${subject.key} ${why} \`protect: true\`. ${capitalised(impactOf(draft, world))}`,
    remedies: [...restored(draft, world), keeping(draft, world)],
    permit: unprotecting(draft, world, destroy),
  };
}

/**
 * The resource may belong to another spec, or to another entry: it is neither deleted nor replaced before an operator has
 * confirmed it, and loses no data. A `destroy` deletes the resource of each entry, so it does not matter whose it is.
 */
function recovered(draft: Draft, { world, destroy }: GuardInput): Objection | undefined {
  const { subject, diff } = draft;
  const { verdict } = diff;
  const loses = verdict.verdict === 'update' && verdict.loses !== undefined;
  if (verdict.verdict !== 'delete' && verdict.verdict !== 'replace' && !loses) return undefined;
  const server = subject.parent === undefined ? undefined : world.subjects.get(subject.parent);
  // A resource that was taken over with its server is confirmed with it.
  const isTaken = [server, subject].some((each) => each?.binding?.recovered === 'taken');
  const owner = isTaken && server?.binding ? server : subject;
  const { binding } = owner;
  if (!binding?.recovered) return undefined;
  if (binding.recovered === 'taken' && (destroy || isStated(owner))) return undefined;
  return {
    reason: `${foundText(binding, world)}. ${capitalised(impactOf(draft, world))}`,
    remedies: [
      ...(draft.diff.verdict.verdict === 'replace' ? [reverting(draft, draft.diff.verdict, world)] : []),
      keeping(draft, world, destroy),
    ],
    permit: confirming(binding),
  };
}

/**
 * The safe way to delete a protected resource. The state keeps the protection until an apply has recorded its end.
 * With `--target` that apply does nothing else: an apply without a target creates again the resources that a destroy
 * has deleted.
 */
function unprotecting(draft: Draft, world: World, destroy: boolean): Remedy {
  const { settings, subjects } = world;
  const own = entryKeyOf(draft.subject.key);
  const owner = expiredEntry({ key: own }, world)?.key ?? own;
  const set = { protect: false };
  const record = command('apply', ['--target', owner]);
  const isInFile =
    subjects.get(owner)?.desired !== undefined || expiredEntry({ key: owner }, world) !== undefined;
  if (isInFile && !destroy) return edit(owner, { set, next: [command('apply')], when: 'to have it deleted' });
  if (destroy) return edit(owner, { set, next: [record, command('destroy')] });
  const prune = settings.prune ? [] : [edit('settings', { set: { prune: true } })];
  const next = [record, edit(owner, { entry: 'remove' }), ...prune, command('apply')];
  return edit(owner, { entry: 'restore', set, next, when: 'to have it deleted' });
}

/**
 * The entry as it was: the resource stays managed. A retiring server has no entry, and the address of a server that is
 * gone has its entry still.
 */
function restored({ subject }: Draft, world: World): readonly Remedy[] {
  const { key, parent } = subject;
  if (retiredFrom(key) !== undefined || world.subjects.get(parent ?? key)?.desired !== undefined) return [];
  const expired = expiredEntry(subject, world);
  if (expired !== undefined) return [lasting(expired, 'to keep it managed')];
  return [edit(parent ?? key, { entry: 'restore', when: 'to keep it managed' })];
}

/** The edit that asks for the existing resource again. */
function reverting(
  { subject: { key } }: Draft,
  { changes }: Verdict & { readonly verdict: 'replace' },
  { subjects }: World,
): Remedy {
  return { ...restoring(changes, key, subjects), when: 'to keep it unchanged' };
}

/** No key is bound to the server of the address, or a list is out of date: in both cases the address is in use. */
function attached(draft: Draft, { world }: GuardInput): Objection | undefined {
  const { subject, diff } = draft;
  const { binding } = subject;
  if (!comesWithServer(subject) || diff.verdict.verdict !== 'delete') return undefined;
  const live = world.ip(binding?.id ?? '');
  const holder = live?.server_id ?? null;
  if (holder === null || world.keyOf(serverObject(holder)) !== undefined) return undefined;
  return {
    reason: `${live?.address} is still attached to server ${holder}`,
    remedies: [command('apply', [], { when: 'once the address is detached' }), keeping(draft, world)],
  };
}

/**
 * One entry cannot adopt the resource of another entry, nor replace a resource that another entry names. An address
 * that was created with a server may get its own entry.
 */
function boundElsewhere({ subject, diff: { verdict } }: Draft, input: GuardInput): Objection | undefined {
  if (verdict.verdict === 'replace') return namedElsewhere(subject, input.world);
  if (verdict.verdict !== 'adopt' || subject.parent !== undefined) return undefined;
  const { key, kind } = subject;
  const creates = ({ key: made }: Subject) =>
    input.openIntents.some((each) => each.key === made && partsOf(each).answer?.id === verdict.target);
  const idOf = ({ binding, desired }: Subject) => binding?.id ?? (desired?.held && desired.id);
  const others = input.world.subjectsOf(kind).filter((each) => each.key !== key && each.parent === undefined);
  const owner = others.find((each) => idOf(each) === verdict.target || creates(each));
  if (owner?.desired === undefined) return undefined;
  const how = owner.binding ? 'already bound to' : creates(owner) ? 'being created for' : 'taken back by';
  return {
    reason: `${nounOf(kind)} ${verdict.target} is ${how} ${owner.key}, which is in the spec too`,
    remedies: [
      edit(key, { remove: ['id'] }),
      edit(key, { set: { moved: { from: owner.key } }, next: [edit(owner.key, { entry: 'remove' })] }),
    ],
  };
}

function namedElsewhere({ key, kind, binding }: Subject, world: World): Objection | undefined {
  const names = ({ desired }: Subject) =>
    desired !== undefined && desired.held === undefined && desired.id === binding?.id;
  const other = world.subjectsOf(kind).find((each) => each.key !== key && names(each));
  if (other === undefined) return undefined;
  const noun = nounOf(kind);
  return {
    reason: `${noun} ${binding?.id} would be replaced, and ${other.key} names the same ${noun}`,
    remedies: [
      edit(key, { entry: 'remove', when: `if it is ${other.key}` }),
      edit(other.key, { remove: ['id'], when: `if it is ${key}` }),
    ],
  };
}

function prune(draft: Draft, { world, destroy }: GuardInput): Objection | undefined {
  const { subject, diff } = draft;
  if (diff.verdict.verdict !== 'delete') return undefined;
  if (world.settings.prune || destroy || diff.verdict.byFile) return undefined;
  const isLeft = isLeftByServer(draft, world);
  if (isInSpec(draft, world) && !isLeft) return undefined;
  const why = isLeft ? `came with a server that is gone` : whyLeft(subject, world);
  const { parent = subject.key } = subject;
  const again = edit(parent, {
    set: { public_ipv4: { reuse: true } },
    when: 'to let the new server use a free address',
  });
  return {
    reason: `${subject.key} ${why}, and settings.prune is false. With \`prune: true\`, ${impactOf(draft, world)}`,
    remedies: [
      ...(subject.binding?.orphaned ? [] : isLeft ? [again] : restored(draft, world)),
      keeping(draft, world),
    ],
    permit: setting('prune', true, 'to delete it, and each other resource that has left the spec'),
  };
}

/** The address of a server that no replacement has deleted. A failed creation leaves no server. */
function isLeftByServer({ subject, retiresAs = subject.key }: Draft, world: World): boolean {
  const { parent } = subject;
  if (subject.binding?.orphaned) return true;
  if (parent === undefined || !comesWithServer(subject) || retiredFrom(retiresAs) !== undefined) return false;
  const { binding } = world.subjects.get(parent) ?? {};
  return binding !== undefined && binding.tainted === undefined && !world.isThere(parent);
}

/** The resource has an entry, or retires: the spec permitted the replacement, and with it this deletion. */
function isInSpec({ subject, retiresAs = subject.key }: Draft, { subjects }: World): boolean {
  return subjects.get(retiredFrom(retiresAs) ?? subject.key)?.desired?.managed === true;
}

/** All edits that permit a replacement, in one step. */
function permitting(
  { key, parent, desired }: Subject,
  { allowed }: Verdict & { readonly verdict: 'replace' },
  set: Readonly<Record<string, unknown>> = {},
): Remedy {
  return edit(parent ?? key, {
    set: { ...set, ...(allowed ? {} : { replace: 'allowed' }) },
    ...(idInSpec(desired) === undefined ? {} : { remove: ['id'] }),
    when: 'to replace it',
  });
}

function replacement(draft: Draft, { world }: GuardInput): Objection | undefined {
  const { subject, diff } = draft;
  const { verdict } = diff;
  if (verdict.verdict !== 'replace') return undefined;
  const id = idInSpec(subject.desired);
  if (verdict.allowed && id === undefined) return undefined;
  return {
    reason: `${verdict.reason}. In a replacement, ${impactOf(draft, world)}${id === undefined ? '' : `. vdcsync does not create an entry with \`id:\``}`,
    remedies: [reverting(draft, verdict, world)],
    permit: permitting(subject, verdict),
  };
}

/** The API would not create the deleted resource again. @source API §1.6 */
function notActive(draft: Draft, { world, kinds }: GuardInput): Objection | undefined {
  const { status } = world.project;
  if (status === 'Active') return undefined;
  const creation = operationsOf(draft).find(({ verb }) => verb === 'create');
  if (creation?.spend !== 'adds') return undefined;
  const { key } = creation;
  const { verdict } = draft.diff;
  const isDeleted = verdict.verdict === 'replace' && verdict.order === 'delete_first';
  const [goes] = isDeleted ? [key] : obstacles(creation, kinds, world);
  if (goes === undefined) return undefined;
  return {
    reason: `the project is ${status}: ${goes} would be deleted, and the API would refuse to create it again`,
    remedies: [],
    permit: outside(paying, { next: [command('apply')] }),
  };
}

/**
 * The cap has counted the price of the plan. A free address that the plan counted on may be taken before the write, and
 * the creation would buy one.
 */
function dearerThanPlanned(draft: Draft, input: GuardInput): Objection | undefined {
  const { max_monthly_increase: limit } = input.world.settings;
  const { key } = draft.subject;
  const planned = input.plannedMost?.(key);
  // The plan has counted a replacement as a whole, with the price of the deleted resource.
  if (limit === null || planned === undefined || isSecondHalf(input, key)) return undefined;
  if (Number(mostOf(draft)) <= Number(planned)) return undefined;
  const reason = `the price is higher than in the plan that settings.max_monthly_increase (${limit}) was checked for`;
  return { reason, remedies: [command('apply')] };
}

/** The impact of a deletion, so that the operator knows it before permitting it. @source API §1.4, §1.5 */
export function impactOf({ subject, diff }: Draft, world: World): string {
  const { kind, binding } = subject;
  const id = binding?.id ?? '';
  const { container, lost } = factsOf(kind);
  const held = container ? world.ipsOf(id).map(({ address }) => address) : [];
  const name = world.nameOf({ kind, id });
  const what = `${nounOf(kind)} ${name}${held.length === 0 ? '' : ` (${held.join(', ')})`}`;
  const data = lost === undefined ? '' : ` with ${lost}`;
  const stays = (diff.leftBilled ?? []).map((text) => `. ${capitalised(text)}`).join('');
  return `${what} would be deleted${data}${stays}`;
}

type Input = Pick<GuardInput, 'world' | 'kinds' | 'openIntents'>;

/** The new server would lack the part that the API refuses, such as its firewall. */
function refusedInside({ subject, diff }: Draft, input: Input): Objection | undefined {
  const { verdict } = diff.verdict;
  if (!factsOf(subject.kind).container || (verdict !== 'replace' && verdict !== 'create')) return undefined;
  const refusal = refusalInside(subject.key, input);
  if (refusal === undefined) return undefined;
  return {
    reason: `waits for ${refusal.key}: the API refuses its values, so the new server would lack it`,
    remedies: settleFirst(refusal.key),
  };
}

/**
 * The refusal that a part of the server would get again: of that part, or of a part of another server with the same
 * entry.
 */
function refusalInside(server: ResourceKey, { world, kinds, openIntents }: Input): Intent | undefined {
  const refusals = openIntents.filter(
    (each) => partsOf(each).blocked?.until === 'file' && factsOf(each.kind).repeats !== true,
  );
  // A refusal depends on the entry alone only if the entry names no other resource.
  const parts = world.childrenOf(server).flatMap(({ desired }) => {
    if (desired === undefined) return [];
    return kinds.get(desired.kind)?.entry.references?.(desired.value).length ? [] : [desired];
  });
  return refusals.find((refusal) => {
    if (takeApart(refusal.key).parent === server) return !isOvertaken(refusal, world);
    return parts.some(({ kind, value }) => kind === refusal.kind && digestOf(value) === refusal.basis);
  });
}
