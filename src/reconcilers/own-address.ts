import { member } from '../core/json.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Ip } from '../core/resources.ts';

/** As the server's entry says; where that asks for no address of its own any more, also as it said last. */
export function isKept({ desired, binding }: Subject, server: Subject | undefined): boolean {
  const asked = member(server?.desired?.value, 'keep_ip') === true;
  const before = desired === undefined || server?.desired === undefined;
  return asked || (before && binding?.keep === true);
}

/**
 * The one address of a server whose entry has `{new: true}` belongs to that server, whether it was adopted, was not seen
 * at first, or was free before; but not if the creation of the server asked for a named address, or for none.
 */
export function ownAddress({ desired, binding }: Subject, world: World): Ip | undefined {
  const id = binding?.id ?? desired?.id;
  const wanted = member(desired?.value, 'public_ipv4');
  if (id === undefined || member(wanted, 'new') !== true) return undefined;
  const asked = member(binding?.applied, 'body');
  const address = member(asked, 'public_ipv4');
  if (asked != null && member(address, 'new') !== true && member(address, 'reuse') !== true) return undefined;
  const [own, another] = world.ipsOf(id).filter(world.isUnbound);
  return another === undefined ? own : undefined;
}
