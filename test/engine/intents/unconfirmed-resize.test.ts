import { describe, expect, test } from 'vitest';
import { profiled } from '../../support/profiled.ts';
import { around, rig } from '../../support/rig.ts';

const file = (cores: number) =>
  `servers:\n  one: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, replace: allowed}\n`;

/** A server of 1 core that an unanswered resize has made larger, and whose process ended at that. */
async function resizedUnseen(larger = file(16)) {
  const stop = new AbortController();
  const stopping = around(async (request, send) => {
    if (request.url.endsWith('/resources')) stop.abort();
    return send();
  });
  const played = profiled({ wrap: stopping });
  await played.apply(file(1));
  played.fail('resize_server', { do: 'reset', effect: 'done' });
  await played.apply(larger, { halt: stop.signal });
  played.restart();
  return played;
}

describe('src/engine/intents: a resize that no read shows', () => {
  test('blocks a disk that is smaller than the size that the resize may have made', async () => {
    const disk = (size: number) => file(1).replace('disk_gb: 20', `disk_gb: ${size}`);
    const played = await resizedUnseen(disk(80));

    const { blocked } = await played.apply(disk(40).replace('allowed', 'never'));

    expect(blocked).toMatchObject([
      {
        code: 'disk_would_shrink',
        reason: expect.stringContaining('the data beyond 40 GB on its disk of 80 GB'),
      },
    ]);
  });

  test('is reported, and never replaces the server, once the profile has no resize operation', async () => {
    const played = await resizedUnseen();
    await played.apply(file(1), { approve: async ({ operations }) => operations.length === 0 });
    const { store, emulator } = played;
    const later = rig({ store, emulator: { world: emulator.snapshot() } });

    const plan = await later.plan(file(1));

    expect(plan.operations).toEqual([]);
    expect(plan.warnings).toMatchObject([
      { code: 'server_differs', message: expect.stringContaining('cores may be 16 instead of 1') },
    ]);
  });
});
