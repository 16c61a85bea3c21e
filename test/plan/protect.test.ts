import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { applied } from '../support/rig.ts';

describe('src/plan/guards.ts: the deletion of protected resources', () => {
  test('an apply with --target records the end of the protection of its targets alone', async () => {
    const two = (protect: boolean) =>
      `networks:\n  a: {cidr: 10.1.0.0/24, protect: ${protect}}\n  b: {cidr: 10.2.0.0/24, protect: ${protect}}\n`;
    const played = await applied(two(true));

    await played.apply(two(false), { selection: { targets: ['networks.a' as ResourceKey], excludes: [] } });

    const kept = (await played.store.bindings()).filter(({ protect }) => protect);
    expect(kept.map(({ key }) => key)).toEqual(['networks.b']);
  });
});
