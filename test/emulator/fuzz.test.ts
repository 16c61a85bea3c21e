import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FaultAction, faultRule } from '../../src/emulator/faults.ts';
import { KNOWN_OPERATIONS } from '../../src/emulator/profile.ts';
import { share } from '../support/drawn.ts';
import { type Answer, anyReadings, caller, imageOf, stage } from './support.ts';

const actions: FaultAction[] = [
  { do: 'answer', status: 503 },
  { do: 'answer', status: 500, effect: 'done' },
  { do: 'answer', status: 422, code: 'odd', effect: 'done' },
  { do: 'reset' },
  { do: 'reset', effect: 'done', stored: false },
  { do: 'refuse' },
  { do: 'truncate' },
  { do: 'malformed' },
  { do: 'html', effect: 'done' },
  { do: 'redirect' },
  { do: 'slow', ms: 700 },
  { do: 'late', ms: 30_000 },
  { do: 'task', outcome: 'fail', leaves: 'partial' },
  { do: 'task', outcome: 'stuck' },
  { do: 'task', outcome: 'forgotten', leaves: 'everything' },
  { do: 'omit_task' },
  { do: 'no_gpu_capacity' },
  { do: 'decorate', fields: { colour: 1 }, status: 'odd', taskStatus: 'odd' },
  { do: 'stale', ms: 30_000 },
  { do: 'truncate_list', keep: 0 },
  { do: 'stored_429' },
  { do: 'standing', standing: 'unpaid' },
];

const requests = fc.record({
  // The creations come first in the list, and should come often.
  what: fc.oneof(fc.nat(5), fc.nat(19)),
  pick: fc.nat(2),
  key: fc.option(fc.constantFrom('key-00001', 'key-00002'), { freq: 1 }),
  afterMs: fc.constantFrom(0, 1, 900, 9000, 61_000),
});

describe('src/emulator: fuzz', () => {
  test('with any readings and faults: no internal error, plain JSON, and nothing billed without an execution', async () => {
    let executions = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(requests, { minLength: 20, maxLength: 40, size: 'max' }),
        anyReadings,
        fc.array(fc.record({ action: fc.constantFrom(...actions), nth: fc.integer({ min: 1, max: 8 }) }), {
          maxLength: 4,
        }),
        async (sent, given, broken) => {
          const faults = broken.map(({ action, nth }) => faultRule({ nth, times: 2 }, action));
          const profile = {
            limits: { windowMs: 60_000, reads: 60, writes: 20 },
            operations: KNOWN_OPERATIONS,
          };
          const { clock, emulator } = stage({ readings: given, faults, profile });
          const image = await imageOf(stage().call, 3);
          const gpuImage = await imageOf(stage().call, 8);
          const call = caller(emulator);
          const open: Promise<void>[] = [];
          for (const { what, pick, key, afterMs } of sent) {
            const [method, path, body] = requestOf(what, pick, image, gpuImage);
            open.push(call(method, path, body, key === null ? {} : { key }).then(checkId, checkLoss));
            await clock.advance(afterMs);
          }
          await clock.advance(200_000);
          await Promise.all(open);
          const { world } = emulator;
          expect(JSON.parse(JSON.stringify(world))).toEqual(world);
          executions += world.executions.length;
          const bought = new Set(world.executions.map(({ kind, id }) => `${kind} ${id}`));
          for (const { kind, id } of emulator.billed()) {
            if (kind === 'server') expect(bought).toContain(`server ${id}`);
          }
          const attached = world.projects.flatMap((project) =>
            project.ips.flatMap(({ serverId }) => serverId ?? []),
          );
          const servers = new Set(world.projects.flatMap((project) => project.servers.map(({ id }) => id)));
          for (const id of attached) expect(servers).toContain(id);
        },
      ),
      { numRuns: share(150), seed: 1 },
    );
    // A canary: requests that are all refused would prove nothing.
    expect(executions).toBeGreaterThan(share(500));
  });
});

function checkId({ headers }: Answer): void {
  if (headers['content-type'] !== 'text/html') expect(headers['x-request-id']).toMatch(/^req_/);
}

/** The fault broke the exchange. Any other error is a mistake of the emulator. */
function checkLoss(error: Error): void {
  expect(error.message).toMatch(/^(truncated|reset|refused)$/);
}

function requestOf(what: number, pick: number, image: string, gpuImage: string): [string, string, unknown?] {
  const server = 2001 + pick;
  const sizes = { cores: 1, memory_mb: 1024, disk_gb: 20 };
  const plain = { name: 's', server_type_id: 3, image, ...sizes };
  const forms: [string, string, unknown?][] = [
    ['POST', '/ips', {}],
    ['DELETE', `/ips/${5001 + pick}`],
    ['POST', '/servers', { ...plain, public_ipv4: { new: true } }],
    ['POST', '/servers', { ...plain, public_ipv4: { reuse: true } }],
    ['POST', '/servers', { ...plain, public_ipv4: { ip_id: 5001 + pick } }],
    [
      'POST',
      '/servers',
      { name: 'g', server_type_id: 8, image: gpuImage, gpu_package: 'h100-1', public_ipv4: { new: true } },
    ],
    ['DELETE', `/servers/${server}`],
    ['POST', '/networks', { name: `n${pick}`, cidr: `10.${pick}.0.0/24` }],
    ['DELETE', `/networks/${31 + pick}`],
    ['POST', `/servers/${server}/network-interfaces`, { network_id: 31 + pick }],
    ['DELETE', `/servers/${server}/network-interfaces/net${pick}`],
    ['PUT', `/servers/${server}/firewall`, { enabled: true, policy_in: 'drop', rules: [] }],
    ['POST', `/servers/${server}/backups`],
    ['POST', '/isos', { url: 'https://example.com/a.iso' }],
    ['DELETE', `/isos/uiso-${1 + pick}`],
    [
      'PUT',
      `/servers/${server}/backup-policy`,
      { enabled: true, days: ['mon', 'sat'], hour: 12, minute: pick, keep: 1 },
    ],
    ['GET', '/networks'],
    ['GET', `/servers/${server}/network-interfaces`],
    ['GET', '/ips'],
    ['GET', '/servers'],
  ];
  return forms[what] ?? ['GET', '/project'];
}
