import type { Network, NetworkInterface } from './resources.ts';

/**
 * The servers that a network counts in addition to the servers with these network interfaces. No list may show them.
 * @source API §2
 */
export function countedBeside(
  { id, server_count }: Pick<Network, 'id' | 'server_count'>,
  servers: readonly (readonly NetworkInterface[])[],
): number {
  const inside = servers.filter((interfaces) => interfaces.some(({ network_id }) => network_id === id));
  return Math.max(0, (server_count ?? 0) - inside.length);
}
