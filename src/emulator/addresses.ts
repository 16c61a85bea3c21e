import type { Context } from './call.ts';
import { takeId } from './context.ts';
import { freeAddress, newIp } from './mutations.ts';
import { Refusal } from './problem.ts';
import type { Ip } from './world.ts';

/** Takes a new address from a pool; billed from here on. `@source API §1.4` */
export function allocateIp(context: Context, pool: string): Ip {
  const { world, project } = context;
  const address = freeAddress(world, pool);
  if (address === undefined) {
    throw new Refusal(409, 'no_address_available', 'No public address is free in this location.');
  }
  const ids = world.projects.flatMap((owner) => owner.ips.map((ip) => ip.id));
  const ip = newIp(takeId(context, 'ip', ids), address, pool);
  project.ips.push(ip);
  return ip;
}

/** Gives an address back; it is not billed any more. */
export function releaseIp(context: Context, id: number): void {
  context.project.ips = context.project.ips.filter((ip) => ip.id !== id);
}

/** A cidr read strictly: octets to 255, prefix to 32, host bits masked; null when impossible. `@assumption A19` */
export function parseCidr(text: string): string | null {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text)?.slice(1).map(Number);
  if (parts === undefined) return null;
  const [length = 33, ...octets] = [parts[4], ...parts.slice(0, 4)];
  if (length > 32 || octets.some((octet) => octet === undefined || octet > 255)) return null;
  const whole = octets.reduce<number>((sum, octet) => sum * 256 + (octet ?? 0), 0);
  const base = Math.floor(whole / 2 ** (32 - length)) * 2 ** (32 - length);
  return `${dotted(base)}/${length}`;
}

/** The `n`th address inside a cidr, for a network interface. */
export function addressIn(cidr: string, n: number): string {
  const [start = '10.0.0.0'] = cidr.split('/');
  const whole = start.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
  return dotted(whole + n);
}

function dotted(whole: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(whole / 2 ** shift) % 256).join('.');
}
