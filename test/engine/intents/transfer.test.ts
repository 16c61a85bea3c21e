import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { memoryState } from '../../../src/state/memory.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { head } from '../shop.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const web = `settings: {exclusive: true}\nservers:\n  web: {${size}, public_ipv4: {new: true}}\n`;

describe('src/engine/intents/transfer.ts: an id that is given out again', () => {
  test('no address ever has two keys, whatever it came with', async () => {
    /** What the state holds each time that it has changed. */
    const doubled: string[] = [];
    let gone = false;
    const played: Rig = rig({
      emulator: { readings: { reuseIds: true } },
      wrap: (inner) => ({
        close: () => inner.close(),
        async send(request, options) {
          if (request.method === 'POST' && request.url.endsWith('/ips') && !gone) {
            gone = true;
            played.emulator.mutate({ do: 'delete_ip', id: 5001 });
          }
          const ids = (await played.store.bindings()).map(({ kind, id }) => `${kind} ${id}`);
          doubled.push(...ids.filter((id, at) => ids.indexOf(id) !== at));
          return inner.send(request, options);
        },
      }),
    });
    await played.apply(web);

    const report = await played.apply(`${web}ips:\n  fix: {}\n`);

    expect(gone).toBe(true);
    expect(doubled).toEqual([]);
    expect(report.outcome).toBe('converged');
    const [own] = (await played.store.bindings()).filter(({ key }) => key === 'ips.fix');
    expect(own?.id).toBe('5001');
  });

  test('a deletion that is answered by old answers alone goes on to a key that none knows', async () => {
    const played = rig({ emulator: { readings: { reuseIds: true } } });
    const none = 'settings: {prune: true}\n';
    const iso = `${none}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`;
    for (const spec of [iso, none, iso, none, iso, none, iso, none, iso]) await played.apply(spec);
    const engine = played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'other' }));
    await played.clock.run(engine.adopt(load(iso), 'isos.rescue' as ResourceKey, 'uiso-1'));

    const report = await played.apply(none);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.world.projects[0]?.isos).toEqual([]);
  });

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

describe('src/engine/intents/transfer.ts: ids that are used again', () => {
  const nets = (...names: string[]) =>
    `${head}networks:\n${names.map((name, at) => `  ${name}: {cidr: 10.2${at}.0.0/24}\n`).join('')}`;

  test('a deletion whose answer was lost is not sent again at what has its id now', async () => {
    const played = rig({ emulator: { readings: { reuseIds: true, networkDelete: 'sync' } } });
    await played.apply(nets('old'));
    played.emulator.setFaults([
      faultRule({ path: 'delete_network', nth: 1 }, { do: 'reset', effect: 'done' }),
    ]);
    void played.clock.sleep(10_000).then(async () => {
      await played.emulator.handle({
        method: 'POST',
        url: 'http://emulator/v1/networks',
        headers: {
          authorization: `Bearer ${played.emulator.tokens().readWrite}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ name: 'stranger', cidr: '10.99.0.0/24' }),
      });
    });

    await played.apply(head);

    expect(played.emulator.world.projects[0]?.networks.map(({ name }) => name)).toContain('stranger');
    expect(played.writes().filter(({ method }) => method === 'DELETE')).toHaveLength(1);
  });
});
