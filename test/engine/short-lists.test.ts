import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { loadProfile as emulatorProfile } from '../../src/emulator/profile.ts';
import { memoryState } from '../../src/state/memory.ts';
import { isProbe } from '../support/invariants.ts';
import { load, type Rig, rig } from '../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const base = 'settings: {exclusive: true}\nips:\n  a: {}\n  b: {}\n  c: {}\n';
const iso = (name: string) => `  ${name}: {url: "https://mirror.example.com/${name}.iso"}\n`;

const bought = ({ emulator }: Rig, kind: string) =>
  emulator.world.executions.filter((each) => each.kind === kind).length;

describe('src/engine: a list that ends early proves nothing', () => {
  test.each([
    ['an address', `${base}  d: {}\n`, 'allocate_ip', 'ip', 4],
    [
      'a server',
      `${base}servers:\n  web: {${size}, public_ipv4: {new: true}}\n`,
      'create_server',
      'server',
      1,
    ],
    ['an ISO', `${base}isos:\n${iso('x')}${iso('y')}${iso('z')}`, 'add_iso', 'iso', 3],
  ])('%s behind a server error is asked about, not bought again', async (_what, spec, path, kind, most) => {
    const played = rig();
    await played.apply(base + (kind === 'iso' ? `isos:\n${iso('x')}${iso('y')}` : ''));
    played.emulator.setReadings({ pageSize: 1 });
    played.emulator.setFaults([faultRule({ path, nth: 1 }, { do: 'answer', status: 500, effect: 'done' })]);

    const report = await played.apply(spec);

    expect(report.blocked).toMatchObject([
      { code: 'outcome_unknown', reason: expect.stringContaining('is incomplete') },
    ]);
    expect(bought(played, kind)).toBe(most);
  });

  test.each([
    ['with', 4, ', public_ipv4: {new: true}'],
    ['without', 3, ''],
  ])('a server behind a server error that only a network counts, beside one %s an address, is asked about, not bought again', async (_old, pageSize, address) => {
    const played = rig({ emulator: { readings: { pageSize, defaultNetworkCard: true } } });
    const one = `${base}servers:\n  old: {${size}${address}}\n`;
    await played.apply(one);
    const fault = faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 500, effect: 'done' });
    played.emulator.setFaults([fault]);

    const report = await played.apply(`${one}  web: {${size}, public_ipv4: {new: true}}\n`);

    expect(report.blocked).toMatchObject([{ key: 'servers.web', code: 'outcome_unknown' }]);
    expect(bought(played, 'server')).toBe(2);
  });

  test('a server error without an effect is not taken for a server of this spec that a network counts since', async () => {
    const played = rig({ emulator: { readings: { defaultNetworkCard: true } } });
    const fault = faultRule({ path: 'create_server', nth: 2 }, { do: 'answer', status: 500 });
    played.emulator.setFaults([fault]);
    const spec = ['one', 'two'].map((name) => `  ${name}: {${size}, public_ipv4: {new: true}}\n`);

    const report = await played.apply(`${base}servers:\n${spec.join('')}`);

    expect(report.outcome).toBe('converged');
    expect(bought(played, 'server')).toBe(2);
  });

  test.each([
    0, 1, 2, 3,
  ])('where the state is lost, and look %i shows an empty project, nothing is bought again', async (nth) => {
    const played = rig();
    const spec = `ips:\n  a: {}\nservers:\n  web: {${size}, public_ipv4: {new: true}}\n`;
    await played.apply(spec);
    await played.clock.advance(25 * 3_600_000);
    const fault = faultRule({ path: 'list_ips', nth: nth + 1 }, { do: 'truncate_list', keep: 0 });
    played.emulator.setFaults([fault]);
    played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'new' }));

    const report = await played.apply(spec);

    expect([bought(played, 'ip'), bought(played, 'server')]).toEqual([1, 1]);
    expect(report.blocked.map(({ code }) => code)).toEqual(['unmanaged_resources', 'unmanaged_resources']);
    expect((await played.apply(spec)).outcome).toBe('blocked');
  });

  test('where the state is lost, and no look shows its address, what a network counts keeps a server from being bought again', async () => {
    const played = rig();
    const network = 'networks:\n  a: {cidr: 10.1.0.0/24}\n';
    const spec = `${network}servers:\n  web: {${size}, public_ipv4: {new: true}, network_interfaces: [a]}\n`;
    await played.apply(spec);
    await played.clock.advance(25 * 3_600_000);
    played.emulator.setFaults([faultRule({ path: 'list_ips' }, { do: 'truncate_list', keep: 0 })]);
    played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'new' }));
    const id = played.emulator.world.projects[0]?.networks.find(({ name }) => name === 'a')?.id;
    await played.clock.run(played.engine.adopt(load(spec), 'networks.a' as ResourceKey, String(id)));

    const report = await played.apply(spec);

    expect(bought(played, 'server')).toBe(1);
    expect(report.blocked[0]).toMatchObject({
      code: 'unlisted_servers',
      reason: expect.stringContaining('or be missing in the list of addresses'),
    });
  });

  test('nor does one of networks that lacks a bound one', async () => {
    const played = rig();
    const networks = (...names: string[]) =>
      `settings: {exclusive: true}\nnetworks:\n${names.map((name, at) => `  ${name}: {cidr: 10.${at}.0.0/24}\n`).join('')}`;
    await played.apply(networks('a'));
    played.emulator.setFaults([
      faultRule({ path: 'create_network', nth: 1 }, { do: 'answer', status: 500, effect: 'done' }),
    ]);
    void played.clock.sleep(5_000).then(() => {
      played.emulator.setFaults([faultRule({ path: 'list_networks' }, { do: 'truncate_list', keep: 1 })]);
    });

    const report = await played.apply(networks('a', 'b'));

    expect(bought(played, 'network')).toBe(2);
    expect(report.blocked.map(({ code }) => code)).toContain('outcome_unknown');
  });

  test.each([
    [
      'a server',
      'servers',
      (cores: number) =>
        `${base}servers:\n  web: {${size.replace('cores: 1', `cores: ${cores}`)}, public_ipv4: {new: true}}\n`,
    ],
    ['an address', 'ips', (type: number) => `${base}  d: {server_type_id: ${type}}\n`],
  ])('%s whose answer was lost is not given up for an edit', async (_what, path, file) => {
    const halt = new AbortController();
    const store = memoryState({ createdAt: 1, lineage: 'test' });
    const update = store.updateIntent.bind(store);
    store.updateIntent = async (id, patch, at, note) => {
      await update(id, patch, at, note);
      if (patch.stage?.phase === 'waiting') halt.abort(new Error('interrupted'));
    };
    const played = rig({ store });
    await played.apply(base);
    const fault = faultRule({ method: 'POST', path: `/${path}`, nth: 1 }, { do: 'reset', effect: 'done' });
    played.emulator.setFaults([fault]);
    // No probe can fence a key here, so its request is to be sent again.
    played.emulator.setReadings({ pageSize: 3, bodyCheck: 'beforeKeyUnstored' });
    await played.apply(file(1), { halt: halt.signal }).catch(() => undefined);
    const [open] = await played.store.openIntents();
    expect(open).toMatchObject({ phase: 'waiting', unconfirmed: { why: 'lost' } });
    played.restart();

    const report = await played.apply(file(3));

    const sent = played.writes().filter((each) => each.path === `/${path}` && !each.unsent);
    expect(sent.filter((each) => !isProbe(each))).toHaveLength(path === 'ips' ? 4 : 1);
    expect(report.blocked).toMatchObject([{ code: 'outcome_unknown' }]);
  });

  test('an address whose answer was lost is found under its key, though the list lacks it', async () => {
    const played = rig();
    await played.apply(base);
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset', effect: 'done' })]);
    played.emulator.setReadings({ pageSize: 3 });

    const report = await played.apply(`${base}  d: {}\n`);

    expect(report.blocked).toEqual([]);
    expect(bought(played, 'ip')).toBe(4);
  });

  describe('of servers', () => {
    const operations = 'operations: {list_servers: {}}';
    const listing = () =>
      rig({
        profile: loadProfile(operations, 'profile'),
        emulator: { profile: emulatorProfile(operations) },
      });
    const cut = faultRule({ path: 'list_servers' }, { do: 'truncate_list', keep: 0 });
    const servers = (...names: string[]) =>
      `settings: {exclusive: true}\nnetworks:\n  a: {cidr: 10.1.0.0/24}\nservers:\n${names
        .map((name) => `  ${name}: {${size}, network_interfaces: [a]}\n`)
        .join('')}`;

    test('without one that is there, a server behind a server error is asked about, not bought again', async () => {
      const played = listing();
      await played.apply(servers('one'));
      const error = faultRule(
        { path: 'create_server', nth: 1 },
        { do: 'answer', status: 500, effect: 'done' },
      );
      played.emulator.setFaults([cut, error]);

      const report = await played.apply(servers('one', 'two'));

      expect(report.blocked.map(({ code }) => code)).toContain('outcome_unknown');
      expect(bought(played, 'server')).toBe(2);
    });

    test('that is whole, a server that nothing else shows is found in it', async () => {
      const played = listing();
      await played.apply(servers('one'));
      const error = faultRule(
        { path: 'create_server', nth: 1 },
        { do: 'answer', status: 500, effect: 'done' },
      );
      played.emulator.setFaults([error]);

      const report = await played.apply(servers('one', 'two'));

      expect(report.outcome).toBe('converged');
      expect(bought(played, 'server')).toBe(2);
    });

    test('without one that is there does not say that the project holds no unmanaged server', async () => {
      const played = listing();
      await played.apply(servers('one', 'two'));
      await played.clock.advance(25 * 3_600_000);
      played.emulator.setFaults([cut]);
      played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'new' }));
      const [project] = played.emulator.world.projects;
      const id = (
        list: readonly { readonly id: number | string; readonly name: string }[] = [],
        name: string,
      ) => String(list.find((each) => each.name === name)?.id);
      const file = load(servers('one', 'two'));
      const adopt = (key: string, live: string) =>
        played.clock.run(played.engine.adopt(file, key as ResourceKey, live));
      await adopt('networks.a', id(project?.networks, 'a'));
      await adopt('servers.one', id(project?.servers, 'one'));

      const report = await played.apply(servers('one', 'two'));

      expect(report.blocked.map(({ code }) => code)).toContain('unlisted_servers');
      expect(bought(played, 'server')).toBe(2);
    });
  });
});
