import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { applied, type Rig } from '../support/rig.ts';

async function run(played: Rig, command: string, spec: string) {
  const [, verb, target] = /^vdcsync (apply|destroy)(?: --target (\S+))?$/.exec(command) ?? [];
  expect(verb).toBeDefined();
  const selection =
    target === undefined ? {} : { selection: { targets: [target as ResourceKey], excludes: [] } };
  return played.apply(spec, { destroy: verb === 'destroy', ...selection });
}

describe('src/plan/guards.ts: the deletion of protected resources', () => {
  test('an apply with --target records the end of the protection of its targets alone', async () => {
    const two = (protect: boolean) =>
      `networks:\n  a: {cidr: 10.1.0.0/24, protect: ${protect}}\n  b: {cidr: 10.2.0.0/24, protect: ${protect}}\n`;
    const played = await applied(two(true));

    await run(played, 'vdcsync apply --target networks.a', two(false));

    const kept = (await played.store.bindings()).filter(({ protect }) => protect);
    expect(kept.map(({ key }) => key)).toEqual(['networks.b']);
  });
});
