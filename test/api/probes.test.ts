import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildWrite } from '../../src/api/writes.ts';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import type { WriteRequest } from '../../src/core/ports.ts';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { loadProfile as loadEmulatorProfile } from '../../src/emulator/profile.ts';
import { documented } from '../support/documented.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { problem, rig } from './support.ts';

const example = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');
const profile = loadProfile(example, 'profile.yaml');

/** Every creation: where its probe goes, and the documented field of a wrong type. */
const creations: readonly (readonly [WriteRequest, string, string | undefined])[] = [
  [{ name: 'allocate_ip', path: {}, body: { server_type_id: 3 } }, '/ips', 'server_type_id'],
  [{ name: 'allocate_ip', path: {} }, '/ips', 'server_type_id'],
  [
    { name: 'create_network', path: {}, body: { name: 'backend', cidr: '10.20.0.0/24' } },
    '/networks',
    'cidr',
  ],
  [
    { name: 'create_server', path: {}, body: { name: 'web', server_type_id: 3 } },
    '/servers',
    'server_type_id',
  ],
  [
    { name: 'add_iso', path: {}, body: { name: 'r', url: 'https://mirror.example.com/r.iso' } },
    '/isos',
    'url',
  ],
  [
    { name: 'add_network_interface', path: { server_id: 2001 }, body: { network_id: 31 } },
    '/servers/2001/network-interfaces',
    'network_id',
  ],
  [{ name: 'take_backup', path: { server_id: 2001 } }, '/servers/2001/backups', undefined],
  [
    { name: 'take_server_image', path: {}, body: { server_id: 2001, name: 'golden' } },
    '/server-images',
    'server_id',
  ],
];

describe.each(creations)('src/api/writes.ts: the probe of %j', (request, path, field) => {
  test('has the path of the creation, two invalid values, and nothing of the body of the creation', () => {
    for (const probe of [1, 2] as const) {
      const built = buildWrite({ ...request, probe }, profile);

      expect(built).toMatchObject({ method: 'POST', path });
      expect(JSON.parse(built.body ?? '')).toEqual({
        ...(field === undefined ? {} : { [field]: { probe } }),
        vdcsync_probe: probe,
      });
    }
    const other: WriteRequest = { ...request, body: { ...(request.body as object), name: 'other' } };
    expect(buildWrite({ ...other, probe: 1 }, profile).body).toBe(
      buildWrite({ ...request, probe: 1 }, profile).body,
    );
  });

  test('is sent as JSON with the same key', async () => {
    const { client, clock, sent } = rig(() => problem(422, 'invalid_request'), { profile });
    await clock.run(client.writes.send({ ...request, probe: 1 }, 'vdcsync-0123456789'));
    expect(sent[0]?.headers).toMatchObject({
      'content-type': expect.stringContaining('json'),
      'idempotency-key': 'vdcsync-0123456789',
    });
  });

  test('is refused for both invalid values and has no effect', async () => {
    const clock = virtualClock();
    const emulator = createEmulator({ clock, seed: 1, profile: loadEmulatorProfile(example) });
    emulator.mutate({ do: 'add_server', name: 'web', public: true });
    const [server] = emulator.world.projects[0]?.servers ?? [];
    const { method, body, path: below } = buildWrite({ ...request, probe: 1 }, profile);
    const before = emulator.billed().length;

    const answer = await clock.run(
      documented(emulator).send(
        {
          method,
          url: `http://127.0.0.1/v1${below.replace('2001', String(server?.id))}`,
          headers: {
            authorization: `Bearer ${emulator.tokens().readWrite}`,
            'content-type': 'application/json',
            'idempotency-key': 'vdcsync-0123456789',
          },
          ...(body === undefined ? {} : { body }),
        },
        { timeoutMs: 30_000 },
      ),
    );

    expect(answer.status).toBe(422);
    const { invalid_params: named } = JSON.parse(answer.body) as { invalid_params: { name: string }[] };
    const names = named.map(({ name }) => name);
    expect(names).toContain('vdcsync_probe');
    if (field !== undefined) expect(names.length).toBeGreaterThan(1);
    expect(emulator.billed()).toHaveLength(before);
  });
});
