import { describe, expect, test } from 'vitest';
import type { ApplyOptions } from '../../../src/engine/deps.ts';
import { codesOf } from '../../reconcilers/support.ts';
import { isProbe } from '../../support/invariants.ts';
import { around, load, type RigOptions, rig, sliders } from '../../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const servers = (...entries: readonly string[]) => `${head}servers:\n  ${entries.join('\n  ')}\n`;
const web = (more = '', sized = sliders) => `web: {${sized}, public_ipv4: {new: true}${more}}`;
const shop = (more = '') => `shop: {${sliders}, public_ipv4: {new: true}, moved: {from: servers.web}${more}}`;

/** A process that is killed as soon as a write to the path has been answered, or its answer lost. */
function killable(options: RigOptions = {}) {
  let halt = new AbortController();
  let last: { readonly path: string; readonly lost: boolean } | undefined;
  const world = rig({
    ...options,
    wrap: around(async (request, send) => {
      const hit =
        last !== undefined && request.method !== 'GET' && new URL(request.url).pathname === `/v1${last.path}`;
      const answer = await send();
      if (!hit) return answer;
      const { lost } = last ?? { lost: false };
      last = undefined;
      halt.abort(new Error('killed'));
      if (lost) throw new Error('reset');
      return answer;
    }),
  });
  return {
    world,
    async killedAfter(path: string, spec: string, lost = false, more: Partial<ApplyOptions> = {}) {
      halt = new AbortController();
      last = { path, lost };
      await world.apply(spec, { ...more, halt: halt.signal }).catch(() => undefined);
      world.restart();
      expect(await world.store.openIntents()).not.toEqual([]);
    },
    async bound() {
      return Object.fromEntries((await world.store.bindings()).map(({ key, id }) => [key, id]));
    },
    deletions: () => world.writes().filter(({ method }) => method === 'DELETE'),
    bought: (path: string) => {
      const requests = world.writes().filter((each) => each.method === 'POST' && !isProbe(each));
      return requests.filter((each) => each.path === path);
    },
    executed: () => world.emulator.world.executions.length,
  };
}

describe('src/engine/intents: a rename of a resource with an open write', () => {
  test.each([
    ['a server', '/servers', servers(web()), servers(shop()), 'servers'],
    ['an IP', '/ips', `${head}ips:\n  web: {}\n`, `${head}ips:\n  shop: {moved: {from: ips.web}}\n`, 'ips'],
    [
      'a network',
      '/networks',
      `${head}networks:\n  web: {cidr: 10.1.0.0/24}\n`,
      `${head}networks:\n  shop: {cidr: 10.1.0.0/24, moved: {from: networks.web}}\n`,
      'networks',
    ],
  ])('the write of %s is settled first, then the resource is moved, and bought once', async (_name, path, before, after, section) => {
    for (const lost of [false, true]) {
      const { world, killedAfter, bound, bought, executed, deletions } = killable();
      await killedAfter(path, before, lost);
      const plan = await world.plan(after);
      expect(plan.operations).toEqual([]);
      expect(plan.warnings.map(({ code }) => code)).not.toContain('moved_from_unknown');
      expect(plan.blocked.map(({ key, code }) => [key, code])).toEqual([
        [`${section}.shop`, 'moved_in_flight'],
      ]);

      expect((await world.apply(after)).outcome).toBe('converged');
      // A lost answer is asked for again under its key.
      expect(new Set(bought(path).map(({ key }) => key)).size).toBe(1);
      expect(executed()).toBe(1);
      expect(deletions()).toEqual([]);
      const keys = Object.keys(await bound()).map((key) => key.split('.')[1]);
      expect(new Set(keys)).toEqual(new Set(['shop']));
      expect((await world.plan(after)).operations).toEqual([]);
    }
  });
});

describe('src/plan/waits.ts: a rename onto the key of another server', () => {
  test.each([true, false])('that is deleted leaves its address to `prune: %s`', async (prune) => {
    const spec = (...entries: readonly string[]) =>
      servers(...entries).replace('prune: true', `prune: ${prune}`);
    const { world, bound, deletions } = killable();
    await world.apply(spec(web(), `shop: {${sliders}, public_ipv4: {new: true}}`));
    world.emulator.mutate({ do: 'delete_server', id: 2001 });

    const plan = await world.plan(spec(shop()));
    const report = await world.apply(spec(shop()));

    const left = prune ? {} : { 'servers.shop~2001.public_ipv4': 'prune_disabled' };
    expect([codesOf(plan), codesOf(report)]).toEqual([left, left]);
    expect(deletions().map(({ path }) => path)).toEqual(prune ? ['/ips/5001'] : []);
    expect(await bound()).toMatchObject({ 'servers.shop': '2002', 'servers.shop.public_ipv4': '5002' });
  });
});

describe('src/engine/claims/release.ts: the address of a server whose deletion was interrupted', () => {
  const left = `shop: {${sliders}, public_ipv4: {new: true}}`;

  test('with `keep_ip` returns to its entry if the entry returns before the deletion', async () => {
    const { world, bound } = killable();
    const both = servers(web(), left.replace('}}', '}, keep_ip: true}'));
    await world.apply(both);
    world.fail({ path: 'delete_server' }, { do: 'refuse' });
    await world.apply(servers(web()), { halt: world.signalAfter(5_000) });
    expect(Object.keys(await bound())).not.toContain('servers.shop.public_ipv4');
    world.emulator.setFaults([]);
    world.restart();

    expect((await world.apply(both)).outcome).toBe('converged');
    expect(await bound()).toMatchObject({ 'servers.shop.public_ipv4': '5001' });
  });
});

describe('src/api/writes.ts: a lost creation whose environment value has changed', () => {
  test('is settled by a question to its key', async () => {
    const halt = new AbortController();
    const { clock, restart, writes, ...played } = rig({
      wrap: around(async ({ method }, send) => {
        if (method === 'GET' || halt.signal.aborted) return send();
        halt.abort(new Error('killed'));
        throw new Error('reset');
      }),
    });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of the spec
    const spec = 'isos: {rescue: {url: "https://mirror.example.com/${env:RELEASE}.iso"}}\n';
    const approve = async () => true;
    const first = played.engine.apply(load(spec, { RELEASE: 'one' }), { approve, halt: halt.signal });
    await clock.run(first).catch(() => undefined);

    const { outcome } = await clock.run(restart().apply(load(spec, { RELEASE: 'two' }), { approve }));

    expect(outcome).toBe('converged');
    expect(writes().at(-1)?.body).toContain('/two.iso');
  });
});
