import { describe, expect, test } from 'vitest';
import { countedBeside } from '../../src/core/attribute.ts';
import type { Network, NetworkInterface } from '../../src/core/resources.ts';

const network = (server_count: number | null) => ({ id: 7, server_count }) as unknown as Network;
const inside = (...servers: (readonly (number | null)[])[]) =>
  new Map(
    servers.map((networks, at) => [
      String(at),
      networks.map((network_id) => ({ network_id }) as unknown as NetworkInterface),
    ]),
  );

describe('src/core/attribute.ts', () => {
  test('a server with several interfaces in the network counts once, and one in another network not at all', () => {
    expect(countedBeside(network(3), inside([7, 7], [null, 8], [8, 7]))).toBe(1);
  });

  test('a network that gives no number, or fewer servers than are known there, counts no other server', () => {
    expect(countedBeside(network(null), inside())).toBe(0);
    expect(countedBeside(network(0), inside([7]))).toBe(0);
  });
});
