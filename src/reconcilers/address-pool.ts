import { addressObject, serverObject } from '../core/claims.ts';
import { namedAddress, wantedAddress } from '../core/desired.ts';
import { type Json, member } from '../core/json.ts';
import { childKey, entryKeyOf, type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { Diff, Subject, World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import { command, edit, outside } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import { expiredEntry } from '../core/world.ts';
import { findType } from './prices.ts';
import type { ServerEntry } from './server/entry.ts';
import { blocking, unchanged } from './verdicts.ts';

/** An entry under `ips`. */
export type IpEntry = {
  readonly server_type_id?: number | undefined;
};

/**
 * The pool of an address. No read shows it. For an address that this state took, the request
 * shows the pool, which is the binding's `applied`; for any other address, the entry at the time of the adoption
 * is believed.
 *
 * @source API §4 POST /ips
 */
export function diffPool(subject: Subject<IpEntry>, entry: IpEntry, live: Ip): Diff {
  if (unseenPool(subject).length > 0) return { ...unchanged, warnings: uncheckedPool(subject, live) };
  const pool = member(subject.binding?.applied, 'server_type_id');
  if (entry.server_type_id === undefined || pool === entry.server_type_id) return unchanged;
  const [was, restore] =
    pool === undefined
      ? (["the project's own location", edit(subject.key, { remove: ['server_type_id'] })] as const)
      : ([`server_type_id ${pool}`, edit(subject.key, { set: { server_type_id: pool } })] as const);
  const reason = `an address cannot move to another pool (this one comes from the pool of ${was})`;
  return blocking('update', 'immutable', reason, [restore, outside('add a new entry under `ips`')]);
}

/** The field is unconfirmed: no read shows whether the entry names the right pool. */
export function unseenPool({ desired, binding }: Subject<IpEntry>): readonly string[] {
  const said = desired?.value.server_type_id;
  return said !== undefined && isAdopted(binding?.applied ?? null) ? ['server_type_id'] : [];
}

/** The `applied` of an address that this state did not take. */
export function believedPool(entry: IpEntry | undefined): Json {
  const said = entry?.server_type_id;
  return said === undefined ? null : { believed: said };
}

/** Reported at the adoption, and after an edit that the operator has not confirmed by another adoption. */
export function uncheckedPool({ key, desired, binding }: Subject<IpEntry>, { id, address }: Ip): Warning[] {
  const said = desired?.value.server_type_id;
  const applied = (binding ?? desired?.held)?.applied ?? null;
  if (said === undefined || !isAdopted(applied) || member(applied, 'believed') === said) return [];
  const message = `vdcsync did not buy ${address}, and no read shows whether the address belongs to server type ${said}`;
  const remedies = [
    command('adopt', [key, id], { when: 'if the client area shows that server type' }),
    edit(key, { remove: ['server_type_id'], when: 'if the server type is another one, or not known' }),
  ];
  return [{ code: 'address_unchecked', key, message, remedies }];
}

/**
 * An address that a new server names, and that was not taken for the server's type. An address without a type
 * is assumed to serve all types except for graphics cards.
 */
export function poolCautions({ key }: Subject, entry: ServerEntry, world: World): Warning[] {
  const type = findType(entry.server_type, world.catalogue.types);
  const address = namedAddress(entry);
  if (type === undefined || address === undefined) return [];
  const { server_type_id: taken } = (world.subjects.get(address)?.desired?.value ?? {}) as IpEntry;
  if (taken === type.id || (taken === undefined && !type.gpu)) return [];
  const of = taken === undefined ? "at the project's own location" : `for server type ${taken}`;
  const message = `${address} was allocated ${of}, and the API does not show whether it can serve a server of type ${type.name}. An address with \`server_type_id: ${type.id}\` can`;
  return [{ code: 'address_pool_unchecked', key, message }];
}

/** The key of the server that the address of the key is attached to. */
export function holderOf(address: ResourceKey, world: World): ResourceKey | undefined {
  const server = world.ip(world.idOf(address) ?? '')?.server_id ?? null;
  return server === null ? undefined : world.keyOf(serverObject(server));
}

/** The server type whose pool the address comes from; `undefined`: the location of the project. */
export function poolOf({ desired, binding }: Subject): unknown {
  if (binding === undefined) return desired?.value.server_type_id;
  return member(binding.applied, 'server_type_id') ?? member(binding.applied, 'believed');
}

function isAdopted(applied: Json): boolean {
  return applied === null || member(applied, 'believed') !== undefined;
}

/**
 * As the entry of the server, or of its successor, says; where no entry asks for the address any more, also as it said
 * last.
 */
export function isKept(subject: Subject, server: Subject | undefined, world: World): boolean {
  const { desired, binding } = subject;
  if (binding?.orphaned) return binding.keep;
  const entry = world.subjects.get(entryKeyOf(subject.key))?.desired;
  const asked = member(entry?.value, 'keep_ip') === true || expiredEntry(subject, world)?.keep === true;
  const before = desired === undefined || server?.desired === undefined;
  return asked || (before && binding?.keep === true);
}

/**
 * The one address of a server whose entry has `{new: true}` belongs to that server, whether it was adopted, was not seen
 * at first, or was free before; but not if the creation of the server asked for a named address, or for none.
 */
export function ownAddress({ key, desired, binding }: Subject, world: World): Ip | undefined {
  const id = binding?.id ?? desired?.id;
  if (id === undefined || !wantedAddress(desired?.value).new) return undefined;
  const asked = member(binding?.applied, 'body');
  const address = member(asked, 'public_ipv4');
  if (asked != null && member(address, 'new') !== true && member(address, 'reuse') !== true) return undefined;
  const [own, another] = world.ipsOf(id).filter((ip) => world.isUnbound(ip) || isPredecessors(ip));
  return another === undefined ? own : undefined;

  /** The new server took the address of the one that it replaced. */
  function isPredecessors(ip: Ip): boolean {
    const { parent } = takeApart(world.keyOf(addressObject(ip.id)) as ResourceKey);
    return parent !== undefined && retiredFrom(parent) === key;
  }
}

/**
 * The address that the key's own server had, if the server is gone and the next server gets this address again: the API
 * attaches a free address, and no other one is free, unless the profile can name one.
 *
 * @source API §4 POST /servers body
 */
export function formerAddress(key: ResourceKey, world: World): Ip | undefined {
  const { desired } = world.subjects.get(key) ?? {};
  if (desired === undefined || desired.id !== undefined || world.observed.get(key)?.id !== undefined)
    return undefined;
  const own = childKey(key, 'public_ipv4');
  const { identity } = world.subjects.get(own)?.binding ?? {};
  const live = world.ip(world.idOf(own) ?? '');
  if (live === undefined || live.server_id !== null || live.address !== identity?.address) return undefined;
  const wanted = wantedAddress(desired.value);
  if (wanted.reuse) return live;
  if (!wanted.new) return undefined;
  const isOnly = world.freeIps().every(({ id }) => id === live.id);
  return isOnly || world.profile.operations.named_address !== undefined ? live : undefined;
}

/**
 * Whether the server that holds the address releases it: the server leaves the spec, or it was created with
 * this address and is replaced to get another one.
 */
export function isGivenUp({ key }: Pick<Subject, 'key'>, server: Subject | undefined): boolean {
  if (server?.desired === undefined) return true;
  const applied = server.binding?.applied;
  // A server from outside this state keeps its address if its entry asks for any address.
  const isFromOutside = member(applied, 'body') == null;
  const wanted = wantedAddress(server.desired.value);
  if (isFromOutside && (wanted.reuse || wanted.new)) return false;
  const had = member(member(applied, 'entry'), 'public_ipv4');
  return key === `ips.${member(had, 'ip')}`;
}
