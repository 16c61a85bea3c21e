import { describe, expect, test } from 'vitest';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { applied, type Rig, sliders as size } from '../support/rig.ts';

const head = 'settings: {prune: true, max_deletions: 9}\n';
const own = `${size}, public_ipv4: {new: true}`;
const servers = (entries: Readonly<Record<string, string>>) =>
  `${head}servers: {${Object.entries(entries)
    .map(([key, entry]) => `${key}: {${entry}}`)
    .join(', ')}}\n`;

const deletions = ({ writes }: Rig) => writes().filter(({ method }) => method === 'DELETE');

describe('src/plan/build.ts: an edit that is undone', () => {
  const protectedB = { a: own, b: `${own}, protect: true` };
  const another = own.replace('ubuntu-24.04', 'debian-13');
  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['of a rename onto another server', protectedB, { b: `${own}, moved: {from: servers.a}` }],
    ['of an `id` that another key has', protectedB, { a: own, b: `${own}, id: 2001` }],
    ['of a rename from an unknown key', protectedB, { a: own, b: `${another}, moved: {from: servers.z}` }],
    [
      'of a protection under an id in question',
      { a: own, b: own },
      { a: own, b: `${own}, id: 9999, protect: true` },
    ],
  ])('%s leaves the server protected', async (_name, before, edited) => {
    const played = await applied(servers(before));

    const { plan } = await played.apply(servers(edited));
    const undone = await played.apply(servers({ a: own }));

    expect(plan.warnings.some(({ code }) => code === 'flags_change')).toBe(before !== protectedB);
    expect(undone.blocked.map(({ code }) => code)).toContain('protected');
    expect(deletions(played)).toEqual([]);
  });
});

describe('src/engine/run/start.ts: `unmanaged: ignore`', () => {
  test('applies only while the spec has it: a run that bought nothing leaves no mark', async () => {
    const spec = servers({ web: own });
    const played = await applied(spec);
    await played.clock.advance(25 * 3_600_000);
    played.loseState();
    const suspended = spec.replace('prune: true', 'unmanaged: ignore, suspend: {reason: freeze}');
    await played.apply(suspended);

    expect((await played.apply(spec)).blocked.map(({ code }) => code)).toEqual(['unmanaged_resources']);
    expect(played.project.servers).toHaveLength(1);
  });

  test('ends for a resource that an entry takes', async () => {
    const spec = servers({ web: own });
    const played = await applied(spec);
    played.loseState();
    await played.apply(spec.replace('prune: true', 'unmanaged: ignore, suspend: {reason: freeze}'));

    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(played.project.servers).toHaveLength(1);
  });
});

describe('src/engine/operator/adopt-key.ts: a server whose entry has left the spec', () => {
  test('keeps its address and its recorded size under the new key', async () => {
    const played = await applied(servers({ one: own, two: own }));
    await played.adopt(servers({ two: `${own}, id: 2001` }), 'servers.two', '2001');

    expect((await played.store.bindings()).map((each) => `${each.key} ${each.id}`)).toEqual([
      'servers.two 2001',
      'servers.two.public_ipv4 5001',
    ]);
    const larger = servers({ two: own.replace('cores: 1', 'cores: 8') });
    expect((await played.plan(larger)).blocked.map(({ code }) => code)).toContain('replace_not_allowed');
  });
});

describe('src/engine/claims/release.ts: a server that another copy of the state has created again', () => {
  test.each([0, 30])('keeps its address when the operator adopts it, %i h later', async (hours) => {
    const spec = servers({ a: own });
    const key = 'servers.a';
    const played = await applied(spec);
    const bindings = await played.store.bindings();
    const old = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
    await old.claimProject(4711);
    await old.change(
      bindings.map((binding) => ({ type: 'bind', binding }) as const),
      played.clock.now(),
    );
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    await played.apply(spec);
    await played.clock.advance(hours * 3_600_000);
    played.restart(old);
    await played.apply(spec);
    const isOpen = (await old.openIntents()).length > 0;
    await (isOpen
      ? played.resolve(spec, key, { type: 'adopt', id: '2002' })
      : played.adopt(spec, key, '2002'));

    expect((await played.apply(spec)).outcome).toBe('converged');
    expect((await old.bindings()).map((each) => `${each.key} ${each.id}`)).toEqual([
      'servers.a 2002',
      'servers.a.public_ipv4 5001',
    ]);
  });
});
