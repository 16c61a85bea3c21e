import { describe, expect, test } from 'vitest';
import { resolveOf } from '../support/resolve.ts';
import { rig } from '../support/rig.ts';
import { converges, head } from './shop.ts';

describe('src/engine: reads that fail', () => {
  test('permanently, of a write that the spec no longer asks for, are reported with remedies', async () => {
    const played = rig();
    played.fail({ path: 'read_iso', nth: 1, times: 1000 }, { do: 'answer', status: 500 });
    await played.apply(`${head}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`);

    const { outcome, blocked } = await played.apply(head);

    expect(outcome).toBe('blocked');
    expect(blocked).toMatchObject([{ key: 'isos.rescue', verb: 'create', code: 'read_failed' }]);
    expect(blocked[0]?.reason).toMatch(
      /^a read failed, so nothing is known: GET \/isos\/uiso-\d+ answered 500/,
    );
    expect(resolveOf(blocked[0])).toContain('vdcsync apply (once the cause is gone) | ');
    expect(resolveOf(blocked[0])).toContain('vdcsync resolve isos.rescue --abandon');
    played.emulator.setFaults([]);
    await converges(played, head);
  });
});
