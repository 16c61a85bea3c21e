import { addressObject } from '../core/claims.ts';
import { namedAddress, wantedAddress } from '../core/desired.ts';
import type { Subject, World } from '../core/kind.ts';
import { isAddress } from '../core/kind-facts.ts';
import type { Operation, Warning } from '../core/plan.ts';
import { edit, type Remedy, run } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import { isQuiet, type Register } from './unmanaged.ts';

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
    const theirs = run('ignore', [ip.address], { when: 'if that address does not belong to this spec' });
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
      ? [run('adopt', [buyer.key, ip.id], { when: 'to use that address instead' })]
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
