import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import type { OperationTemplate } from '../../../src/core/profile.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { loadProfile as loadEmulatorProfile } from '../../../src/emulator/profile.ts';
import { expectInvariants } from '../../support/invariants.ts';
import { type Rig, rig } from '../../support/rig.ts';

const minute = 60_000;
const hour = 60 * minute;
const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

/** The oldest a key was when it was sent once more, in hours. */
function oldestResend(played: Rig): number {
  const first = new Map<string | undefined, number>();
  const ages = played.writes().map(({ key, at }) => {
    if (!first.has(key)) first.set(key, at);
    return (at - (first.get(key) ?? at)) / hour;
  });
  return Math.max(...ages);
}

describe('src/engine/intents/endings.ts: the age of a key', () => {
  const busy = faultRule(
    { path: 'allocate_ip', nth: 1, times: 8 },
    { do: 'answer', status: 409, code: 'busy' },
  );
  const ip = `${head}ips:\n  one: {}\n`;

  test('is taken when its turn has come and there is room', async () => {
    const played = rig();
    played.emulator.setFaults([busy]);
    await played.apply(ip);
    await played.clock.run(played.clock.sleep(22.8 * hour - played.clock.monotonic()));
    played.restart();
    played.emulator.setFaults([
      faultRule({ path: 'create_network', nth: 1 }, { do: 'answer', status: 429, retryAfter: 3600 }),
    ]);
    const halt = new AbortController();
    const closed = played.apply(`${ip}networks:\n  n: {cidr: 10.20.0.0/24}\n`, { halt: halt.signal });
    await played.clock.run(played.clock.sleep(30_000).then(() => halt.abort(new Error('killed'))));
    await closed.catch(() => undefined);
    played.restart();

    const report = await played.apply(ip);

    expect(report.outcome).toBe('converged');
    expect(oldestResend(played)).toBeLessThan(23);
    await expectInvariants(played);
  });

  test("is the API's own where our clock was set back", async () => {
    const played = rig();
    played.emulator.setFaults([busy]);
    await played.apply(ip);
    await played.clock.run(played.clock.sleep(30 * hour));
    played.clock.jump(-10 * hour);
    played.restart();

    await played.apply(ip);

    expect(oldestResend(played)).toBeLessThan(23);
  });
});

describe('src/engine/intents/settle.ts: an API profile that changes while a write waits', () => {
  const server = (cores: number) =>
    `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

  test('no key stands for two requests', async () => {
    const text = readFileSync(new URL('../../../examples/profile.yaml', import.meta.url), 'utf8');
    const profile = loadProfile(text, 'profile.yaml');
    const operations: Record<string, OperationTemplate> = { ...profile.operations };
    const played = rig({
      profile: { ...profile, operations },
      emulator: { profile: loadEmulatorProfile(text) },
    });
    await played.apply(server(1));
    played.emulator.setFaults([
      faultRule(
        { path: '/servers/*/resources', nth: 1, times: 12 },
        { do: 'answer', status: 409, code: 'busy' },
      ),
    ]);
    await played.apply(server(2));

    operations.resize_server = {
      method: 'POST',
      path: '/servers/{server_id}/resize',
      body: { cpu: '{cores}' },
    };
    played.restart();
    await played.apply(server(2)).catch(() => undefined);

    expect(played.writes().at(-1)?.path).toBe('/servers/2001/resize');
    await expectInvariants(played);
  });
});
