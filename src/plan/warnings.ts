import { addressObject, objectName, serverObject } from '../core/claims.ts';
import { namedAddress, wantedAddress } from '../core/desired.ts';
import { formatDiagnostic } from '../core/errors.ts';
import {
  childKey,
  comesWithServer,
  isInside,
  namesakeOf,
  nounOf,
  type ResourceKey,
  retiredFrom,
  takeApart,
} from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import { factsOf, isAddress } from '../core/kind-facts.ts';
import type { Operation, Warning } from '../core/plan.ts';
import { command, edit, outside, type Remedy } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';
import { type Draft, keeping } from './draft.ts';
import { movedFromNothing } from './moved-from.ts';
import type { GuardInput } from './objections.ts';
import { isEdited } from './open-writes.ts';
import { priceChanges } from './totals.ts';
import { confirming, foundText } from './unconfirmed.ts';
import { described, ignoring, isNone, isQuiet, notOurs, perhapsAbsent, type Register } from './unmanaged.ts';

export function inFlightWarning(intent: Intent, world: World): Warning[] {
  if (intent.phase === 'blocked') return [];
  const { key, kind, verb, detail: given = '', replaces } = intent;
  const { desired } = world.subjects.get(key) ?? {};
  const detail = given === '' ? '' : ` (${given})`;
  const known = intent.phase === 'accepted' ? 'is not finished' : 'is unconfirmed';
  const follows = isEdited(intent, world)
    ? '. The entry has changed since: the plan after that write shows the next operations'
    : replaces === undefined || desired?.protect
      ? ''
      : `. Then ${nounOf(kind)} ${replaces} is deleted, which it replaces`;
  const message = `an open write (${verb}) of an earlier run ${known}${detail}. The next apply finishes that write first, and does not carry it out twice${follows}`;
  return [{ code: 'in_flight', key, message }];
}

export function movedWarnings(
  moves: readonly Move[],
  drafts: readonly Draft[],
  input: GuardInput,
): Warning[] {
  const alone = moves.filter((move) => !movesAlong(move, moves));
  const unknown = drafts.flatMap((draft) => movedFromNothing(draft, input));
  return [...alone.flatMap((move) => movedWarning(move, input.world)), ...unknown];
}

interface Move {
  readonly from: ResourceKey;
  readonly to: ResourceKey;
}

/** So many of the probable mistakes in one entry are shown. `defaults` can put hundreds into each server. */
const mostCautions = 3;

/** The probable mistakes in an entry that the plan applies, as `vdcsync validate` shows them. */
export function doubtfulWarnings({ subject: { key, desired }, diff }: Draft): Warning[] {
  const cautions = diff.verdict.verdict === 'unchanged' ? [] : (desired?.cautions ?? []);
  const more = cautions.length - mostCautions;
  return [
    ...cautions.slice(0, mostCautions).map(formatDiagnostic),
    ...(more > 0 ? [`${more} more in this entry: \`vdcsync validate\` shows them`] : []),
  ].map((message) => ({ code: 'value_doubtful', key, message }));
}

/** The rename of its server, or of its network, already says it. */
function movesAlong({ from }: Move, moves: readonly Move[]): boolean {
  const { kind, parent, name } = takeApart(from);
  const network = namesakeOf({ kind, name });
  return parent !== undefined && moves.some((each) => each.from === parent || each.from === network);
}

function movedWarning({ from, to }: Move, world: World): Warning[] {
  const [before, after] = [retiredFrom(from), retiredFrom(to)];
  // The server that takes the key back, or the server that has the key, reports the move.
  if (after !== undefined) return [];
  const renamedFrom = before ?? from;
  const message = `renamed from ${renamedFrom}; only the state changes`;
  return [
    ...(renamedFrom === to ? [] : [{ code: 'moved', key: to, message } as const]),
    ...(before === undefined ? [] : [reverted(to, world)]),
  ];
}

function reverted(key: ResourceKey, world: World): Warning {
  const message = `server ${world.idOf(key)}, which was retiring, has the values of the spec. It takes ${key} back, so nothing is created`;
  return { code: 'replacement_reverted', key, message };
}

/**
 * A part of a server whose entry no longer declares the part. The spec does not ask for its deletion, and without an
 * entry nothing is compared. The warning of the newest backup covers older backups.
 */
export function noLongerDeclared(draft: Draft, world: World): Warning[] {
  const { subject, kind, diff } = draft;
  const { key, parent, desired, binding } = subject;
  if (desired !== undefined || binding === undefined || parent === undefined) return [];
  if (comesWithServer(subject) || diff.verdict.verdict !== 'unchanged') return [];
  if (world.subjects.get(parent)?.desired?.managed !== true) return [];
  const { repeats, field = '' } = factsOf(kind.name);
  const whole = repeats ? childKey(parent, field) : key;
  if (whole !== key && world.subjects.has(whole)) return [];
  const id = binding.id === binding.parentId ? '' : ` ${binding.id}`;
  const older = repeats ? olderThan(subject, world) : '';
  const what = `${nounOf(kind.name)}${id}${older}`;
  const billed = kind.billing.billed ? ', billed' : '';
  const message = `the entry of ${parent} no longer declares this resource: ${what} still exists${billed}, and vdcsync neither compares nor changes it`;
  const remedies = [edit(key, { entry: 'restore' }), keeping(draft, world)];
  return [{ code: 'no_longer_declared', key, message, remedies }];
}

/** The backups that are released with the newest one. */
function olderThan({ key, parent }: Subject, world: World): string {
  const others =
    parent === undefined ? [] : world.childrenOf(parent).filter((each) => isInside(each.key, key));
  const ids = others.flatMap(({ binding }) => binding?.id ?? []);
  return ids.length === 0 ? '' : ` (and the older ${ids.join(', ')})`;
}

/**
 * Unmanaged resources are billed without an entry in the spec, and may belong to this spec. A `destroy` leaves also those
 * that were found under a key of this spec and that `unmanaged: ignore` ignores.
 */
export function unmanagedWarnings(world: World, register: Register, destroy: boolean): Warning[] {
  const { claims, isNew, declaredAbsent } = register;
  const found = new Set(
    claims.flatMap((each) => (destroy && each.holder.is === 'found' ? [objectName(each)] : [])),
  );
  const isReported = (object: Parameters<typeof objectName>[0]) =>
    world.settings.unmanaged !== 'ignore' || found.has(objectName(object));
  // A bound server with another identity has a question of its own.
  const isBound = (id: number | null) => id !== null && world.keyOf(serverObject(id)) !== undefined;
  const unmanaged = {
    servers: register.unmanaged.servers.filter((id) => !isBound(id) && isReported(serverObject(id))),
    addresses: register.unmanaged.addresses.filter(
      ({ id, server_id }) =>
        !isBound(server_id) && (isReported(addressObject(id)) || isReported(serverObject(server_id ?? ''))),
    ),
  };
  if (isNone(unmanaged)) return [];
  const what = described(unmanaged);
  const message = isNew
    ? `the state is new, and the project has unmanaged resources: ${what}`
    : `the project has new unmanaged resources: ${what}`;
  const remedies = [
    command('adopt', ['KEY', 'ID'], { when: 'for each resource that belongs to this spec' }),
    { ...ignoring(unmanaged), when: notOurs(unmanaged) },
  ];
  const absent = perhapsAbsent(unmanaged, declaredAbsent);
  const text = absent === '' ? message : `${message}. ${absent}`;
  return [{ code: 'unmanaged_resources', key: null, message: text, remedies }];
}

/**
 * A server that only a network's count shows may be the result of a lost state, or of a creation that was declared
 * absent.
 */
export function countedAlone({ unlisted, isNew, declaredAbsent }: Register, { settings }: World): Warning[] {
  if (unlisted === undefined || settings.unmanaged === 'ignore') return [];
  const absent = declaredAbsent.flatMap(({ key, kind }) => (factsOf(kind).container ? [key] : []));
  const count = unlisted.servers === 1 ? '1 billed server' : `${unlisted.servers} billed servers`;
  const may = [
    ...absent.map((key) => `${key}, which was declared absent`),
    ...(isNew ? ['created with a state that is now lost'] : []),
  ];
  const message = `network "${unlisted.network}" has ${count} that the API does not list${may.length === 0 ? '' : `: possibly ${may.join(', or ')}`}`;
  return [
    { code: 'unlisted_servers', key: null, message, remedies: [command('explain', ['unlisted_servers'])] },
  ];
}

/**
 * An entry whose own key a lost state would use, and the scope or key under which its resource was created.
 * `used_elsewhere`: the entry's own key holds the answer to a creation of another state.
 */
export interface UnreachedKey {
  readonly key: ResourceKey;
  readonly from: 'scope' | 'elsewhere' | 'used_elsewhere' | ResourceKey;
}

/** Without the state, the idempotency keys of these resources cannot be asked any more. @source API §8.1 */
export function unreachedWarnings(unreached: readonly UnreachedKey[]): Warning[] {
  const lost = 'If the state is lost in the next 24 hours, vdcsync may create it again';
  const scoped = unreached.filter(({ from }) => from === 'scope').map(({ key }) => key);
  return [
    ...(scoped.length === 0
      ? []
      : [scopeChanged([...new Set(scoped)], lost.replace('it again', 'them again'))]),
    ...unreached.flatMap(({ key, from }): Warning[] => {
      if (from === 'scope') return [];
      if (from === 'used_elsewhere') return [usedElsewhere(key)];
      const whose =
        from === 'elsewhere'
          ? `${key} was not created under its own idempotency key`
          : `the idempotency key of ${key} belongs to its earlier key ${from}`;
      const message = `${whose}, and its own key could not be reserved. ${lost}`;
      const moved = from === 'elsewhere' ? [] : [edit(key, { set: { moved: { from } }, when: 'for a day' })];
      const named = edit(key, { choose: { id: [] }, when: 'with its id, for a day' });
      return [{ code: 'key_not_derived', key, message, remedies: [...moved, named] }];
    }),
  ];
}

function usedElsewhere(key: ResourceKey): Warning {
  const noun = nounOf(takeApart(key).kind);
  const message = `another state used the idempotency key of ${key}, but the ${noun} of ${key} was not created under it. Another ${noun} may exist, billed and unmanaged`;
  const remedies = [outside(`check the client area for another ${noun}`)];
  return { code: 'key_used_elsewhere', key, message, remedies };
}

function scopeChanged(keys: readonly ResourceKey[], lost: string): Warning {
  const message = `\`project.scope\` has changed, and the idempotency keys of ${keys.join(', ')} belong to the earlier scope. ${lost}`;
  const remedies = [
    edit('project', { choose: { scope: [] }, when: 'if the earlier spec had another scope' }),
    edit('project', { remove: ['scope'], when: 'if the earlier spec had none' }),
  ];
  return { code: 'key_not_derived', key: null, message, remedies };
}

/** Resources that a new state found, and that no operator has confirmed. */
export function recoveredUnconfirmed(world: World): Warning[] {
  return [...world.subjects.values()].flatMap(({ key, binding }): Warning[] => {
    if (binding?.recovered !== 'found') return [];
    const message = `${foundText(binding, world)}. Until you confirm it, vdcsync neither deletes nor replaces it`;
    return [{ code: 'recovered_unconfirmed', key, message, remedies: [confirming(binding)] }];
  });
}

/** The next plan without a selection shows the other changes. */
export function leftOut(count: number): Warning[] {
  if (count === 0) return [];
  const message = `${count} ${count === 1 ? 'change is' : 'changes are'} left out by --target, --exclude or --undo`;
  return [{ code: 'left_out', key: null, message }];
}

/** @source API §1.6 */
export function notActive({ project }: World): Warning[] {
  if (project.status === 'Active') return [];
  const message = `the project is ${project.status}: the API refuses new spending until the project is Active`;
  return [{ code: 'project_not_active', key: null, message }];
}

/** The cap counts known prices only, so the operator must know the purchases without a price. */
export function capUnchecked(
  { settings: { max_monthly_increase: cap } }: World,
  carriedOut: readonly Draft[],
): Warning[] {
  const unknown = carriedOut
    .flatMap(priceChanges)
    .flatMap(({ key, isUnknownPurchase }) => (isUnknownPurchase ? [key] : []));
  if (cap === null || unknown.length === 0) return [];
  const named = unknown.slice(0, 3).join(', ');
  const others = unknown.length > 3 ? ` and ${unknown.length - 3} more` : '';
  const message = `settings.max_monthly_increase (${cap}) cannot be checked for ${named}${others}: no known price, so this limit does not block the purchase. Add prices with \`--prices FILE\``;
  return [{ code: 'cap_unchecked', key: null, message }];
}

/**
 * Addresses that would be bought although no server uses them; `{reuse: true}` may be meant to take them. @source API
 * §1.4
 */
export function boughtUnused(world: World, operations: readonly Operation[]): Warning[] {
  const wishes = world.serverSubjects().map(({ desired }) => wantedAddress(desired?.value));
  if (wishes.some((wish) => 'reuse' in wish)) return [];
  const asked = new Set(world.serverSubjects().map(({ desired }) => namedAddress(desired?.value)));
  return operations
    .filter(({ key, kind, verb }) => isAddress(kind) && verb === 'create' && !asked.has(key))
    .filter(({ key }) => world.subjects.get(key)?.parent === undefined)
    .map(({ key }) => ({
      code: 'unused_address',
      key,
      message:
        'not used by any server of the spec, but billed. To use an address, write `public_ipv4: {ip: NAME}` in a server',
    }));
}

/**
 * Addresses that are free and billed while others are bought, and the purchase that each could replace. @source API
 * §1.4
 */
export function freeBeside(world: World, operations: readonly Operation[], register: Register): Warning[] {
  const buyers = operations.flatMap(({ key, verb }) => {
    const subject = world.subjects.get(key);
    return verb === 'create' && subject !== undefined && buysAddress(subject) ? [subject] : [];
  });
  const free = world.freeIps().filter((ip) => {
    const holder = register.address(ip);
    if (holder.is === 'managed') return idleEntry(ip, world) !== undefined;
    return holder.is !== 'pending' && !isQuiet(holder);
  });
  const left = [...free];
  return buyers.flatMap((buyer): Warning[] => {
    const at = left.findIndex((ip) => instead(buyer, ip, world, free) !== undefined);
    const [ip] = at < 0 ? [] : left.splice(at, 1);
    if (ip === undefined) return [];
    const theirs = command('ignore', [ip.address], { when: 'if that address does not belong to this spec' });
    return [
      {
        code: 'address_free',
        key: buyer.key,
        message: `the plan buys an address here, although ${ip.address} is free and billed`,
        remedies: [...(instead(buyer, ip, world, free) ?? []), ...(world.isUnbound(ip) ? [theirs] : [])],
      },
    ];
  });
}

function buysAddress({ kind, parent, desired }: Subject): boolean {
  return isAddress(kind) ? parent === undefined : 'new' in wantedAddress(desired?.value);
}

/**
 * `{ip: NAME}` is possible if it is the only free address, and `{reuse: true}` takes any free address. @assumption A49
 */
function instead(buyer: Subject, ip: Ip, world: World, free: readonly Ip[]): readonly Remedy[] | undefined {
  const entry = idleEntry(ip, world);
  if (isAddress(buyer.kind))
    return entry === undefined
      ? [command('adopt', [buyer.key, ip.id], { when: 'to use that address instead' })]
      : undefined;
  const isNameable = world.freeIps().length === 1 || world.profile.operations.named_address !== undefined;
  const byName = entry !== undefined && isNameable;
  if (!byName && free.length < world.freeIps().length) return undefined;
  const set = { public_ipv4: byName ? { ip: entry } : { reuse: true } };
  return [edit(buyer.key, { set, when: 'to use that address instead' })];
}

/** The name under `ips` of an address that no server of the spec asks for. */
function idleEntry({ id }: Ip, world: World): string | undefined {
  const key = world.keyOf(addressObject(id));
  const subject = key === undefined ? undefined : world.subjects.get(key);
  if (subject?.desired?.managed !== true || subject.parent !== undefined) return undefined;
  const isAsked = world.serverSubjects().some(({ desired }) => {
    return key !== undefined && namedAddress(desired?.value) === key;
  });
  return isAsked ? undefined : subject.key.slice('ips.'.length);
}
