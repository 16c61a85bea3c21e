import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { sliders } from '../reconcilers/support.ts';
import { load, rig } from '../support/rig.ts';

const both = `settings: {prune: true}\nservers:
  a: {${sliders}, public_ipv4: {new: true}, keep_ip: true}
  b: {${sliders}}\n`;

describe('plan: a part of it', () => {
  test('tells nothing of the rest, but that there is one', async () => {
    const { apply, engine, clock } = rig();
    await apply(both);
    const without = `settings: {prune: true}\nservers: {b: {${sliders}}}\n`;
    const part = (targets: string[]) =>
      clock.run(
        engine.plan(load(without), { selection: { targets: targets as ResourceKey[], excludes: [] } }),
      );

    const [other, whole] = [await part(['servers.b']), await part([])];

    expect(whole.cost.left_billed.join()).toContain('stays billed: keep_ip');
    expect(other.cost.left_billed).toEqual([]);
    expect(other.warnings.map(({ code }) => code)).toEqual(['left_out']);
  });
});
