import { describe, expect, test } from 'vitest';
import { around, type Rig, rig, sliders } from '../../support/rig.ts';

const head = 'settings: {prune: true, max_deletions: 10, unmanaged: ignore}\n';
const web = `${head}servers:\n  web: {${sliders}, public_ipv4: {new: true}, replace: allowed}\n`;

describe('src/engine/claims: an id that is used again', () => {
  test.each([
    ['address', `${head}ips:\n  a: {}\n`, { do: 'add_ip' } as const, 5001],
    ['server', web, { do: 'add_server', name: 'theirs', public: true } as const, 5007],
  ])('the %s of a replayed answer is read, and not bound if it is another one', async (_what, spec, mutation, ip) => {
    const played = rig({ emulator: { readings: { reuseIds: true } } });
    await played.apply(spec);
    await played.apply(head);
    // Theirs has the id that ours had.
    Object.assign(played.emulator.world.nextId, { ip, server: 2001 });
    const theirs = played.emulator.mutate(mutation) as { readonly id: number };
    Object.assign(played.project.ips[0] ?? {}, { address: '198.51.100.7' });
    played.loseState();

    await played.apply(spec);
    await played.apply(head);

    const deleted = played.writes().filter(({ method }) => method === 'DELETE');
    expect(played.project.ips.map(({ address }) => address)).toContain('198.51.100.7');
    expect(deleted.filter(({ path }) => path.endsWith(`/${theirs.id}`))).toHaveLength(1);
  });
});

describe('src/engine/claims: the address of a server with {reuse: true}', () => {
  const reuse = web.replace('{new: true}', '{reuse: true}').replace(', unmanaged: ignore', '');

  test('may be an unmanaged address that was freed just before, which is reported and stays', async () => {
    const played: Rig = rig({
      wrap: around(async (request, send) => {
        const buys = request.method === 'POST' && request.url.endsWith('/servers');
        if (buys) played.emulator.mutate({ do: 'add_ip' });
        return send();
      }),
    });

    const report = await played.apply(reuse);
    await played.apply('settings: {prune: true}\n');

    expect(report.plan.warnings.map(({ code }) => code)).toContain('address_not_as_declared');
    expect(report.plan.warnings.map(({ message }) => message).join()).toContain('`id: 5001`');
    expect(played.project.servers).toEqual([]);
    expect(played.project.ips).toHaveLength(1);
  });
});
