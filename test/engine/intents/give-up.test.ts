import { describe, expect, test } from 'vitest';
import { resolving } from '../../support/resolve.ts';
import { type Rig, rig } from '../../support/rig.ts';

const size = (cores = 1) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, replace: allowed`;
const server = (name: string, address: string, cores = 1) =>
  `  ${name}: {${size(cores)}, public_ipv4: ${address}}\n`;
const file = (ips: string, servers = '') =>
  `settings: {unmanaged: ignore, prune: true, max_deletions: 9}\nips: {${ips}}\n${servers && `servers:\n${servers}`}`;

const held = (played: Rig) =>
  Object.fromEntries(
    played.project.servers.map(({ id, name }) => [
      name,
      played.project.ips.flatMap((ip) => (ip.serverId === id ? [ip.id] : [])),
    ]),
  );
const idOf = async ({ store }: Rig, key: string) =>
  Number((await store.bindings()).find((each) => each.key === key)?.id);

/**
 * The answer to the last purchase was lost before it had an effect, and the process ended. This API stores no refusals of
 * bodies, so no probe can fence the key: it is to be sent again.
 */
async function doubted(before: string, path: string, text: string): Promise<Rig> {
  const played = rig({ emulator: { readings: { bodyCheck: 'beforeKeyUnstored' } } });
  await played.apply(before);
  await played.failing({ path }, { do: 'reset', effect: 'none' }, text, { halt: played.signalAfter(30_000) });
  played.restart();
  expect(await played.store.openIntents()).toMatchObject([{ unconfirmed: { why: 'lost' } }]);
  return played;
}

describe('src/engine/intents/endings.ts: an unconfirmed purchase, and a claim of its named address in the spec', () => {
  test('a server that would take the existing address waits for a decision', async () => {
    const any = server('z', '{reuse: true}');
    const claim = server('a', '{ip: x}');
    const played = await doubted(file('x: {}', claim), 'create_server', file('x: {}', claim + any));
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    const text = file('x: {}', claim + any);

    const report = await played.apply(text);

    const told = report.blocked.find(({ code }) => code === 'unresolved_create') ?? expect.fail();
    expect(told).toMatchObject({
      key: 'servers.a',
      remedies: resolving(expect.stringContaining('servers.z --absent (only')),
    });
    await played.resolve(text, 'servers.z', { type: 'absent' });
    expect((await played.apply(text)).outcome).toBe('converged');
    expect(held(played)).toMatchObject({ a: [await idOf(played, 'ips.x')] });
  });
});
