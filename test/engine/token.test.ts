import { describe, expect, test } from 'vitest';
import { moments } from '../support/drawn.ts';
import { type Rig, rig } from '../support/rig.ts';
import { converges, shop } from './shop.ts';

describe('src/engine: the token', () => {
  test('of another project, exchanged at any request: nothing is written there, and the run ends', async () => {
    const projects = [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ];
    const count = rig({ emulator: { projects } });
    await count.apply(shop);
    for (const at of moments(2, count.sent.length)) {
      let asked = 0;
      let swapped = true;
      const played: Rig = rig({
        emulator: { projects },
        token: () => played.emulator.tokens(swapped && played.sent.length >= at ? 4712 : 4711).readWrite,
      });
      asked = played.sent.length;
      await played.apply(shop).catch((error: Error) => expect(error.name).toBe('FenceError'));

      const foreign = played.emulator.requests.filter(
        ({ project, method }) => project === 4712 && method !== 'GET',
      );
      expect({ at, foreign }).toEqual({ at, foreign: [] });
      expect(played.sent.length).toBeGreaterThan(asked);
      swapped = false;
      played.restart();
      await converges(played, shop);
    }
  });
});
