import { describe, expect, test } from 'vitest';
import { type Rig, rig } from '../../support/rig.ts';

describe('src/engine/intents/transfer.ts: an id that is given out again', () => {
  test('a released address is gone, though another has its id at once', async () => {
    const played: Rig = rig({
      emulator: { readings: { reuseIds: true } },
      wrap: (inner) => ({
        close: () => inner.close(),
        async send(request, options) {
          const answer = await inner.send(request, options);
          if (request.method !== 'DELETE') return answer;
          const { authorization = '' } = request.headers;
          const headers = { authorization, 'content-type': 'application/json' };
          const url = request.url.replace(/\/\d+$/, '');
          await inner.send({ method: 'POST', url, headers, body: '{}' }, options);
          return answer;
        },
      }),
    });
    const prune = 'settings: {prune: true}\n';
    await played.apply(`${prune}ips:\n  fix: {}\n`);

    const report = await played.apply(prune);

    expect(played.emulator.world.projects[0]?.ips.map(({ id }) => id)).toEqual([5001]);
    expect(report.outcome).toBe('converged');
  });
});
