import { flowYaml } from '../core/flow-yaml.ts';
import { topLevelKey } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Operation, Warning } from '../core/plan.ts';
import type { Ip } from '../core/resources.ts';
import { shellWord } from '../core/shell.ts';
import type { Intent } from '../core/state.ts';
import { isIgnored, underWay, type Vouched } from './strangers.ts';

/** Addresses that would be bought for nobody; `{reuse: true}` may be meant to take them. @source API §1.4 */
export function boughtForNobody(world: World, operations: readonly Operation[]): Warning[] {
  const wishes = world.subjectsOf('server').map(({ desired }) => wanted(desired?.value));
  if (wishes.some((wish) => 'reuse' in wish)) return [];
  const asked = new Set(wishes.map(({ ip = '' }) => topLevelKey('ips', ip)));
  return operations
    .filter(({ key, kind, verb }) => kind === 'ip' && verb === 'create' && !asked.has(key))
    .filter(({ key }) => world.subjects.get(key)?.parent === undefined)
    .map(({ key }) => ({
      code: 'address_for_nobody',
      key,
      message: `no server of the file asks for it: it will be billed and idle; \`public_ipv4: ${flowYaml({ ip: key.slice('ips.'.length) })}\` in a server gives it to that one`,
    }));
}

/** Addresses that are free and billed while others are bought: which could do for which. @source API §1.4 */
export function freeBeside(
  world: World,
  operations: readonly Operation[],
  openIntents: readonly Intent[],
  vouched: Vouched | undefined,
): Warning[] {
  const buyers = operations.flatMap(({ key, verb }) => {
    const subject = world.subjects.get(key);
    return verb === 'create' && subject !== undefined && buysAddress(subject) ? [subject] : [];
  });
  const isOpen = underWay(openIntents);
  const free = world
    .freeIps()
    .filter((ip) => !isOpen('ip', String(ip.id)))
    .filter((ip) => (world.isNobodys(ip) ? !isIgnored(ip, vouched) : idleEntry(ip, world) !== undefined));
  const left = [...free];
  const told = buyers.flatMap((buyer) => {
    const at = left.findIndex((ip) => instead(buyer, ip, world, free) !== undefined);
    const [ip] = at < 0 ? [] : left.splice(at, 1);
    if (ip === undefined) return [];
    const theirs = world.isNobodys(ip)
      ? `, or vdcsync ignore ${shellWord(ip.address)} if it is somebody else's`
      : '';
    const way = instead(buyer, ip, world, free);
    return [`${ip.address} is free and billed, and ${buyer.key} buys another: ${way}${theirs}`];
  });
  if (told.length === 0) return [];
  return [{ code: 'address_free', key: null, message: told.join('; ') }];
}

function buysAddress({ kind, parent, desired }: Subject): boolean {
  return kind === 'server' ? 'new' in wanted(desired?.value) : kind === 'ip' && parent === undefined;
}

/** `{ip: NAME}` can be had where it is the only free one, and `{reuse: true}` takes whichever is free. @assumption A49 */
function instead(buyer: Subject, ip: Ip, world: World, free: readonly Ip[]): string | undefined {
  const entry = idleEntry(ip, world);
  if (buyer.kind === 'ip')
    return entry === undefined ? `vdcsync adopt ${buyer.key} ${ip.id} takes it instead` : undefined;
  const isNameable = world.freeIps().length === 1 || world.profile.operations.named_address !== undefined;
  const byName = entry !== undefined && isNameable;
  if (!byName && free.length < world.freeIps().length) return undefined;
  return `write \`public_ipv4: ${flowYaml(byName ? { ip: entry } : { reuse: true })}\` in ${buyer.key} to have it instead`;
}

/** The name under `ips` of an address that no server of the file asks for. */
function idleEntry({ id }: Ip, world: World): string | undefined {
  const key = world.keyOf('ip', String(id));
  const subject = key === undefined ? undefined : world.subjects.get(key);
  if (subject?.desired?.managed !== true || subject.parent !== undefined) return undefined;
  const isAsked = world.subjectsOf('server').some(({ desired }) => {
    const { ip } = wanted(desired?.value);
    return ip !== undefined && topLevelKey('ips', ip) === key;
  });
  return isAsked ? undefined : subject.key.slice('ips.'.length);
}

function wanted(entry: unknown): { readonly ip?: string } {
  return (entry as { readonly public_ipv4?: object } | undefined)?.public_ipv4 ?? {};
}
