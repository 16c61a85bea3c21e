import type { ReadPort } from './ports.ts';
import type { Network, NetworkInterface, ServerId } from './resources.ts';

/** The network interfaces of servers by live id, so that a server that several keys name counts once. */
export type ServerInterfaces = ReadonlyMap<string, readonly NetworkInterface[]>;

/** The network interfaces of those of the servers that exist. */
export async function interfacesOf(
  ids: Iterable<string>,
  read: Pick<ReadPort, 'findNetworkInterfaces'>,
): Promise<ServerInterfaces> {
  const seen = await Promise.all(
    [...ids].map(async (id) => [id, await read.findNetworkInterfaces(Number(id) as ServerId)] as const),
  );
  return new Map(seen.flatMap(([id, each]) => (each === undefined ? [] : [[id, each] as const])));
}

/**
 * The servers that a network counts in addition to the known servers. No list may show them.
 * @source API §2
 */
export function countedBeside(
  { id, server_count }: Pick<Network, 'id' | 'server_count'>,
  known: ServerInterfaces,
): number {
  const inside = [...known.values()].filter((each) => each.some(({ network_id }) => network_id === id));
  return Math.max(0, (server_count ?? 0) - inside.length);
}
