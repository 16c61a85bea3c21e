import { describe, expect, test } from 'vitest';
import { partsOf } from '../../../src/core/intent.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { crashable } from '../../support/crashable.ts';
import { applied, type Rig, type RigOptions, rig, sliders as size } from '../../support/rig.ts';

const large = size.replace('cores: 1', 'cores: 2');
const servers = (entries: Readonly<Record<string, string>>) =>
  `servers: {${Object.entries(entries)
    .map(([key, entry]) => `${key}: {${entry}}`)
    .join(', ')}}\n`;
const renamed = servers({ c: `${size}, moved: {from: servers.a}` });
/** The entry `a` is another server now. */
const passedOn = servers({ a: large, c: size });

/** A server that was bought as `a`, and is `c` now. */
async function renamedOnce(options: RigOptions = {}): Promise<Rig> {
  const played = rig(options);
  await played.apply(servers({ a: size }));
  await played.apply(renamed);
  return played;
}

/** The creations sent since, as the numbers of their probes, or as the cores that they ask for. */
function sentSince({ writes }: Rig, before: number): readonly unknown[] {
  return writes()
    .slice(before)
    .filter(({ method, key = '' }) => method === 'POST' && !key.startsWith('vdcsync-spare-'))
    .map(({ body = '' }) => {
      const { vdcsync_probe: probe, cores } = JSON.parse(body);
      return probe === undefined ? `${cores} cores` : probe;
    });
}

const deletions = ({ writes }: Rig) => writes().filter(({ method }) => method === 'DELETE');

async function reservations({ store }: Rig) {
  const past = await store.intents({ key: 'servers.c' as ResourceKey, limit: 50 });
  return past
    .filter(({ request }) => request.probe === 2)
    .map((each) => [each.incarnation, each.attempt, partsOf(each).because]);
}

/** A state with the bindings of this one. */
async function copyOf({ clock, store }: Rig) {
  const copy = memoryState({ createdAt: clock.now(), lineage: 'test' });
  await clock.run(copy.claimProject(4711 as never));
  for (const binding of await store.bindings())
    await clock.run(copy.change([{ type: 'bind', binding }], clock.now()));
  return copy;
}

describe('src/engine/intents/reserve-key.ts', () => {
  test('the key of an entry is reserved once its `moved` is gone, and only once', async () => {
    const played = await renamedOnce();
    const before = played.writes().length;
    await played.apply(renamed);
    expect(sentSince(played, before)).toEqual([]);
    await played.apply(servers({ c: size }));
    await played.apply(servers({ c: size }));
    expect(sentSince(played, before)).toEqual([2, 2]);
    expect(await reservations(played)).toEqual([['0', 0, 'reserved']]);
  });

  test('an edit of the scope reserves the key in the new scope', async () => {
    const file = (scope: string) =>
      `version: 1\nproject: {id: 4711, scope: ${scope}}\n${servers({ c: size })}`;
    const played = await applied(file('blue'));
    const before = played.writes().length;
    expect((await played.apply(file('green'))).plan.warnings).toEqual([]);
    expect(sentSince(played, before)).toEqual([2, 2]);
    played.loseState();
    expect((await played.apply(file('green'))).blocked.map(({ code }) => code)).toEqual(['key_conflict']);
    expect(played.project.servers).toHaveLength(1);
  });

  test.each([
    ['servers', `${size}, public_ipv4: {new: true}`],
    ['networks', 'cidr: 10.1.0.0/24'],
    ['ips', ''],
    ['isos', 'url: "https://mirror.example.com/a.iso"'],
  ])('a copy of the state that is older than a rename under %s neither buys nor deletes', async (section, entry) => {
    const death = crashable();
    const played = rig({ wrap: death.transport });
    const file = (fields: string) => `settings: {prune: true}\n${section}: {${fields}}\n`;
    const moved = entry === '' ? `moved: {from: ${section}.a}` : `${entry}, moved: {from: ${section}.a}`;
    await played.apply(file(`a: {${entry}}`));
    const copy = await copyOf(played);
    await played.apply(file(`c: {${moved}}`));
    await played.apply(file(`c: {${entry}}`));
    const was = JSON.stringify(played.project);
    played.restart(copy);
    for (let runs = 0; runs < 2; runs++) {
      const { blocked } = await played.apply(file(`c: {${entry}}`));
      expect(blocked.map(({ key, code }) => `${key} ${code}`)).toEqual(
        expect.arrayContaining([`${section}.a dependency_blocked`, `${section}.c key_conflict`]),
      );
    }
    expect(deletions(played)).toEqual([]);
    expect(JSON.parse(was)).toMatchObject({ servers: played.project.servers, ips: played.project.ips });
  });

  test('a copy of the state that is older than a replacement does not buy the replacement again', async () => {
    const played = await renamedOnce();
    const copy = await copyOf(played);
    const replaced = { c: `${size.replace('ubuntu-24.04', 'debian-13')}, replace: allowed` };
    await played.apply(servers({ c: `${replaced.c}, moved: {from: servers.a}` }));
    played.restart(copy);
    await played.apply(servers(replaced));
    expect(played.project.servers.map(({ id }) => id)).toEqual([2002]);
  });

  test('a project without an answer to a reservation converges, and the plan warns', async () => {
    const played = await renamedOnce();
    played.fail({ path: 'create_server' }, { do: 'answer', status: 403, code: 'insufficient_privileges' });
    expect((await played.apply(servers({ c: size }))).outcome).toBe('converged');
    expect(await played.store.openIntents()).toEqual([]);
    const { outcome, plan } = await played.apply(servers({ c: size }));
    expect(outcome).toBe('converged');
    expect(plan.warnings.map(({ code, key }) => `${code} ${key}`)).toEqual(['key_not_derived servers.c']);
    played.emulator.setFaults([]);
    await played.apply(servers({ c: size }));
    expect((await played.plan(servers({ c: size }))).warnings).toEqual([]);
  });

  test('before its own key is used again, the key of the renamed entry is reserved', async () => {
    const played = await renamedOnce();
    const before = played.writes().length;
    expect((await played.apply(passedOn)).outcome).toBe('converged');
    expect(sentSince(played, before)).toEqual([2, 2, '2 cores']);
  });
});
