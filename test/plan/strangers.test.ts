import { describe, expect, test } from 'vitest';
import type { ServerId } from '../../src/core/resources.ts';
import { described, type Strangers } from '../../src/plan/strangers.ts';

const address = (last: number, server: number | null = null) =>
  ({
    id: last,
    address: `203.0.113.${last}`,
    server_id: server,
  }) as unknown as Strangers['addresses'][number];
const strangers = (servers: readonly number[], addresses: Strangers['addresses'] = []): Strangers => ({
  servers: servers as readonly ServerId[],
  addresses,
});

describe('plan: strangers in a message', () => {
  test.each([
    [strangers([2001]), 'server 2001'],
    [
      strangers([2001], [address(10, 2001), address(11)]),
      'server 2001 (203.0.113.10) and address 203.0.113.11',
    ],
    [
      strangers([2001, 2002, 2003], [address(10, 2002), address(11), address(12)]),
      'servers 2001, 2002 (203.0.113.10) and 2003, and addresses 203.0.113.11 and 203.0.113.12',
    ],
  ])('each noun is said once', (found, text) => {
    expect(described(found)).toBe(text);
  });
});
