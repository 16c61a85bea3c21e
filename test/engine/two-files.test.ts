import { describe, expect, test } from 'vitest';
import { rig, sliders } from '../support/rig.ts';

describe('src/engine/run/unreached-keys.ts', () => {
  /** No request reserves a key. */
  const unstored = { emulator: { readings: { bodyCheck: 'beforeKeyUnstored' } } } as const;

  test('the plan warns for a day that the keys of young servers belong to the earlier scope', async () => {
    const played = rig(unstored);
    const file = (scope: string, entry = `web: {${sliders}}`) =>
      `version: 1\nproject: {id: 4711, scope: ${scope}}\nservers: {${entry}}\n`;
    const warned = async (scope: string, entry?: string) =>
      (await played.plan(file(scope, entry))).warnings.map(({ code, message }) => `${code} ${message}`);
    await played.apply(file('blue'));

    expect(await warned('blue')).toEqual([]);
    expect(await warned('green')).toEqual([]);
    await played.apply(file('green'));
    expect(await warned('green')).toEqual([
      expect.stringMatching(/^key_not_derived .* of servers\.web belong to the earlier scope/),
    ]);
    expect(await warned('green', `www: {${sliders}, name: web, moved: {from: servers.web}}`)).toContainEqual(
      expect.stringMatching(/^key_not_derived .* of servers\.www belong to the earlier scope/),
    );
    await played.clock.advance(24 * 3_600_000);
    expect(await warned('green')).toEqual([]);
  });
});
