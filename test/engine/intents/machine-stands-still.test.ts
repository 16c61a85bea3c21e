import { describe, expect, test } from 'vitest';
import { StateError } from '../../../src/core/errors.ts';
import type { StateStore } from '../../../src/core/state.ts';
import { writing } from '../../../src/simulation/durable.ts';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { load, type Rig, rig } from '../../support/rig.ts';

const head = 'settings: {exclusive: true}\n';
const wanted = `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`;

/** A state as whoever has lost its lock sees it: once `isLost`, not a change is recorded. */
function owned(inner: StateStore, isLost: () => boolean): StateStore {
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'isOwned') return () => !isLost();
      const member = target[name as keyof StateStore] as (...given: unknown[]) => Promise<unknown>;
      if (!writing.has(String(name))) return member?.bind(target);
      return async (...given: unknown[]) => {
        if (isLost()) throw new StateError('the lock is gone');
        return member.apply(target, given);
      };
    },
  });
}

describe('src/engine/intents: an owner that stands still with a write in hand, while another takes its state over', () => {
  const web = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
  const server = `${head}servers:\n  web: {${web}, public_ipv4: {new: true}}\n`;
  const gone = 'settings: {exclusive: true, prune: true}\n';

  test.each([
    ['an address', head, `${head}ips:\n  a: {}\n`, { ip: 1 }],
    ['a server', head, server, { server: 1, ip: 1 }],
    ['a network', head, wanted, { network: 1 }],
    ['a deletion', server, gone, {}],
  ])('%s: sent late, it is what the other reckons with', async (_what, before, spec, made) => {
    const inner = memoryState({ createdAt: 1, lineage: 'test' });
    let lost = false;
    let standsStill = false;
    const played: Rig = rig({
      store: owned(inner, () => lost),
      wrap: (transport) => ({
        close: () => transport.close(),
        async send(request, options) {
          if (request.method !== 'GET' && standsStill) {
            standsStill = false;
            // Just short of what may pass between the look and the first byte.
            await played.clock.sleep(59_000);
          }
          return transport.send(request, options);
        },
      }),
    });
    await played.apply(before);
    standsStill = true;
    const { nextId } = played.emulator.world;
    const ids = { ...nextId };
    const stoodStill = played.engine.apply(load(spec), { approve: async () => true }).catch(() => undefined);
    const takesOver = played.clock.sleep(1_000).then(() => {
      lost = true;
      return played.restart(inner).apply(load(spec), { approve: async () => true });
    });

    const [, report] = await played.clock.run(Promise.all([stoodStill, takesOver]));

    expect(report.outcome).toBe('converged');
    expect((await played.plan(spec)).operations).toEqual([]);
    const since = Object.entries(nextId).map(([kind, id]) => [kind, id - ids[kind as keyof typeof ids]]);
    expect(Object.fromEntries(since.filter(([, count]) => count !== 0))).toMatchObject(made);
    expect(since.filter(([, count]) => Number(count) > 1)).toEqual([]);
  });
});
