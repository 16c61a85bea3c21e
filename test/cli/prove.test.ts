import { describe, expect, test } from 'vitest';
import { Scene } from './edits-scene.ts';

const size = { server_type: 'sliders-1', image: 'ubuntu-24.04', memory_mb: 1024, disk_gb: 20 };
const servers = (cores: number, names: readonly string[], more: object) => ({
  settings: { max_deletions: 9 },
  servers: Object.fromEntries(names.map((name) => [name, { ...size, cores, ...more }])),
});
/** More than the emulator can host. */
const tooLarge = 64;
const strict = { sizeBounds: 'on', besideUnknownField: 'everything' } as const;

describe('src/engine/run/plan.ts: `plan --prove`', () => {
  test('`plan --prove` names the line of a refused value, creates nothing, and changes no plan', async () => {
    const { scene, operator } = await Scene.start(strict);
    operator.declare({ ips: { web: {} }, ...servers(tooLarge, ['web'], {}) });
    const { digest } = await operator.json('plan');

    const proved = await operator.json('plan --prove');

    expect(proved.blocked).toMatchObject([
      {
        key: 'servers.web',
        code: 'invalid_request',
        resolve: expect.stringMatching(/`cores` at .*:\d+:\d+/),
      },
    ]);
    expect(proved.proofs).toMatchObject({
      writes: 4,
      results: expect.arrayContaining([
        { key: 'ips.web', outcome: 'accepted', unproven: [] },
        { key: 'servers.web', outcome: 'refused', unproven: [] },
      ]),
    });
    expect(scene.live).toMatchObject({ servers: [], ips: [] });
    const after = await operator.json('plan');
    expect([after.digest, after.blocked]).toEqual([digest, []]);
    const { stdout } = await operator.run('history');
    expect(stdout).toContain('proof of servers.web: creates nothing');
  });

  test('`plan --prove` with a read-only token is an error', async () => {
    const { operator } = await Scene.start(strict, 'readEnv');
    operator.declare(servers(1, ['web'], {}));

    const { code, stderr } = await operator.run('plan --prove');

    expect(code).toBe(1);
    expect(stderr).toContain('needs a token that may write');
  });
});
