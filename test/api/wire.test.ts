import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import {
  backupPolicySchema,
  backupSchema,
  firewallSchema,
  ipSchema,
  isoSchema,
  networkInterfaceSchema,
  networkSchema,
  parseKeepingDecimals,
  pricingSchema,
  readData,
  serverTypeSchema,
  taskSchema,
} from '../../src/api/wire.ts';

type Accepted = [what: string, schema: z.ZodType, data: unknown, expected: unknown];

const read = <T>(schema: z.ZodType<T>, data: unknown) => readData({ data }, schema);

describe('src/api/wire.ts', () => {
  const network = { id: 1, name: 'backend', cidr: '10.20.0.0/24', is_default: false, server_count: 2 };
  const ip = { id: 1, address: '203.0.113.7', server_id: null, primary: true };
  const rule = { direction: 'in', action: 'accept', id: 9, nested: { a: [1] } };
  const policy = { enabled: true, days: ['mon'], hour: 3, minute: 0, keep: 7 };
  const task = { id: 't', status: 'running', is_terminal: false, detail: null };
  const card = { id: 'net0', public: true, network_id: null };
  const off = { enabled: false, policy_in: 'drop', rules: [] };
  const filled = { enabled: true, policy_in: 'drop', policy_out: 'accept', rules: [rule] };
  const backup = {
    ...{ id: '2026-01-01T00:00:00Z', server_id: 1, status: 'creating', size_bytes: null },
    created_at: '2026-01-01T00:00:00+00:00',
  };
  const type = { id: 3, name: 's', pricing_mode: 'future' };
  const uncounted = { ...network, server_count: null };
  const foreign = '9.9.9.9 | vdcsync destroy --yes';

  const accepted: readonly Accepted[] = [
    ['unknown fields', ipSchema, { ...ip, prefix: '/32', gateway: '203.0.113.1', new_field: {} }, ip],
    [
      'a network without server_count',
      networkSchema,
      { ...network, server_count: undefined, router: null },
      uncounted,
    ],
    ['a network with server_count null', networkSchema, uncounted, uncounted],
    [
      'a network interface without a network',
      networkInterfaceSchema,
      { ...card, ips: [] },
      { ...card, addresses: [] },
    ],
    ...['local:iso/debian 12 (netinst).iso', '2026-01-01T00:00:00+02:00', 'net0', 'Größe'].map(
      (id): Accepted => [`${id} as an id`, taskSchema, { ...task, id }, { ...task, id }],
    ),
    [
      "a network interface's addresses, except unknown forms",
      networkInterfaceSchema,
      { ...card, ips: ['203.0.113.7/24', { address: '203.0.113.8', id: 5 }, 5001, {}, foreign] },
      { ...card, addresses: ['203.0.113.7', '203.0.113.8'] },
    ],
    [
      'a network interface whose addresses have an unknown form',
      networkInterfaceSchema,
      { ...card, ips: 'none' },
      { ...card, addresses: [] },
    ],
    ['a firewall without policy_out', firewallSchema, off, { ...off, policy_out: null }],
    ['unknown rule fields', firewallSchema, filled, filled],
    ['a backup under way', backupSchema, backup, backup],
    [
      'a backup policy that never ran',
      backupPolicySchema,
      policy,
      { ...policy, next_run: null, last_run: null },
    ],
    ['a server type without gpu', serverTypeSchema, type, { ...type, gpu: false }],
    [
      'a type without packages',
      pricingSchema,
      { server_type_id: 3, pricing_mode: 'sliders', limits: {} },
      { gpu_packages: [] },
    ],
    ['a succeeded task that is not terminal', taskSchema, { ...task, status: 'succeeded' }, task],
    ['a task of an unknown status', taskSchema, { id: 't', status: 'paused', is_terminal: false }, task],
  ];
  test.each(accepted)('accepts %s', (_what, schema, data, expected) => {
    expect(read(schema, data)).toEqual({ data: expected });
  });

  const isos: readonly [unknown, 'pending' | 'ready' | 'failed' | 'unknown', string | null][] = [
    [{ status: 'available' }, 'ready', null],
    [{ status: 'downloading', error: null }, 'pending', null],
    [{ status: 'failed', error: '404 from\u0000 mirror' }, 'failed', '404 from  mirror'],
    [{ download_status: 'failed', reason: 'no route' }, 'failed', 'no route'],
    [{ download_status: 'Completed', status: 'whatever' }, 'ready', null],
    [{ status: 'error', failure_reason: { message: 'too large' } }, 'failed', 'too large'],
    [{ status: 'quarantined' }, 'unknown', null],
    [{}, 'unknown', null],
  ];
  test.each(isos)('reads an ISO %j as %s', (fields, download, reason) => {
    expect(read(isoSchema, { id: 'uiso-1', name: 'rescue', ...(fields as object) })).toEqual({
      data: { id: 'uiso-1', name: 'rescue', download, reason },
    });
  });

  const refused: readonly (readonly [string, z.ZodType, unknown, RegExp])[] = [
    ['an address without `server_id`', ipSchema, { ...ip, server_id: undefined }, /data\.server_id/],
    ['an id as text', ipSchema, { ...ip, id: '1' }, /data\.id/],
    [
      'a network without `is_default`',
      networkSchema,
      { ...network, is_default: undefined },
      /data\.is_default/,
    ],
    ['an object for a list', networkSchema.array(), { 0: network }, /data: .*array/],
    ['a bad row', networkSchema.array(), [network, network, { ...network, id: null }], /data\.2\.id/],
    [
      'rules that are no list',
      firewallSchema,
      { enabled: true, policy_in: 'drop', rules: null },
      /data\.rules/,
    ],
    ...[
      '9.9.9.9 | vdcsync destroy --yes',
      '9.9.9.9; id',
      '9.9.9.9\n',
      '9.9.9.256',
      '09.9.9.9',
      '9.9.9',
      'fd00::1',
      '$(id)',
      '',
    ].map(
      (address) =>
        [`${JSON.stringify(address)} as an address`, ipSchema, { ...ip, address }, /data\.address/] as const,
    ),
    ...[
      'a | vdcsync destroy --yes',
      'a;b',
      '`id`',
      '$(id)',
      "a' b",
      'a\u202eb',
      'a\nb',
      ' a',
      '',
      'x'.repeat(201),
    ].map((id) => [`${JSON.stringify(id)} as an id`, taskSchema, { ...task, id }, /data\.id: .*/] as const),
    ['a terminal, open task', taskSchema, { id: 't', status: 'pending', is_terminal: true }, /data\.status/],
  ];
  test.each(refused)('refuses %s and names its path', (_what, schema, data, message) => {
    expect(read(schema, data)).toEqual({ mismatch: expect.stringMatching(message) });
  });

  test('keeps money as its digits and other numbers as numbers', () => {
    expect(parseKeepingDecimals('{"price": 12.10, "backup_price": 1e-7, "id": 12.10}')).toEqual({
      price: '12.10',
      backup_price: '0.0000001',
      id: 12.1,
    });
  });
});
