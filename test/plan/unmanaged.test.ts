import { describe, expect, test } from 'vitest';
import type { Unmanaged } from '../../src/core/attribute.ts';
import type { ServerId } from '../../src/core/resources.ts';
import { described } from '../../src/plan/unmanaged.ts';

const address = (last: number, server: number | null = null) =>
  ({
    id: last,
    address: `203.0.113.${last}`,
    server_id: server,
  }) as unknown as Unmanaged['addresses'][number];
const unmanaged = (servers: readonly number[], addresses: Unmanaged['addresses'] = []): Unmanaged => ({
  servers: servers as readonly ServerId[],
  addresses,
});

describe('src/plan/unmanaged.ts: unmanaged objects in a message', () => {
  test.each([
    [unmanaged([2001]), 'server 2001'],
    [
      unmanaged([2001], [address(10, 2001), address(11)]),
      'server 2001 (203.0.113.10) and address 203.0.113.11',
    ],
    [
      unmanaged([2001, 2002, 2003], [address(10, 2002), address(11), address(12)]),
      'servers 2001, 2002 (203.0.113.10) and 2003, and addresses 203.0.113.11 and 203.0.113.12',
    ],
  ])('each noun is said once', (found, text) => {
    expect(described(found)).toBe(text);
  });
});
