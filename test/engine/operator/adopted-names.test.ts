import { describe, expect, test } from 'vitest';
import { profiled } from '../../support/profiled.ts';
import { saidBy } from '../../support/resolve.ts';
import { applied, sliders } from '../../support/rig.ts';

const profile = 'operations: {list_servers: {}, take_server_image: {}}';
const settings = 'settings: {prune: true, max_deletions: 9, unmanaged: ignore}\n';
const url = 'url: "https://mirror.example.com/rescue.iso"';

/** What one state makes under one name, and what another one calls it; `ID` is its id. */
const kinds = {
  network: {
    made: 'networks: {backend: {cidr: 10.20.0.0/24}}\n',
    key: 'networks.mine',
    entry: 'networks: {mine: {cidr: 10.20.0.0/24}}\n',
  },
  ip: { made: 'ips: {web: {}}\n', key: 'ips.mine', entry: 'ips: {mine: {}}\n' },
  iso: { made: `isos: {rescue: {${url}}}\n`, key: 'isos.mine', entry: `isos: {mine: {${url}}}\n` },
  server: {
    made: `servers: {web: {${sliders}}}\n`,
    key: 'servers.mine',
    entry: `servers: {mine: {${sliders}}}\n`,
  },
  'server with an address': {
    made: `servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`,
    key: 'servers.mine',
    entry: `servers: {mine: {${sliders}, public_ipv4: {new: true}}}\n`,
  },
} as const;

async function madeElsewhere(spec: string) {
  const played = profiled({}, profile);
  await played.apply(settings + spec);
  const [binding] = await played.store.bindings();
  return { played, store: played.loseState(), id: binding?.id ?? '' };
}

describe.each(
  Object.entries(kinds),
)('src/engine/operator/adopt-key.ts: a %s that has another name in the project', (_kind, each) => {
  test.each(['adopt', 'id:'])('is unchanged in each later run, and may be deleted (%s)', async (how) => {
    const { played, store, id } = await madeElsewhere(each.made);
    const given = `id: ${id}, `;
    const spec = settings + each.entry.replace('mine: {', `mine: {${how === 'id:' ? given : ''}`);
    if (how === 'adopt') await played.adopt(spec, each.key, id);

    expect((await played.apply(spec)).blocked).toEqual([]);
    expect(await played.plan(spec)).toMatchObject({ operations: [], blocked: [] });
    const known = await played.adopt(spec, each.key, id);
    expect(saidBy(known)).toContain('The binding is confirmed');
    expect(await played.plan(spec)).toMatchObject({ operations: [], blocked: [] });
    const leaving = await played.apply(settings);

    expect(leaving.blocked).toEqual([]);
    expect(leaving.outcome).toBe('converged');
    expect(await store.bindings()).toEqual([]);
  });
});

describe('src/engine/operator: a server image that has another name in the project', () => {
  test('may get its right name in the spec, because no read shows the name', async () => {
    const spec = (name: string) => `server_images: {golden: {id: img-7, name: ${name}}}\n`;
    const played = await applied(spec('believed'));

    expect(await played.plan(spec('right'))).toMatchObject({ operations: [], blocked: [] });
  });
});
