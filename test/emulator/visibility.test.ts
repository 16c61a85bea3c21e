import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { loadFaults } from '../../src/emulator/faults-file.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { sliderServer, stage } from './support.ts';

const minute = 60_000;
const profile = loadProfile('operations: {list_servers: {}, read_server: {}}');

async function creating(readings: Partial<Readings>, options: Parameters<typeof stage>[0] = {}) {
  const made = stage({ readings, profile, ...options });
  const list = async (path: string) => (await made.call('GET', path)).body.data;
  const address = { public_ipv4: { new: true } };
  const created = await made.call('POST', '/servers', await sliderServer(made.call, address));
  return { ...made, list, created, id: created.body.data.id as number };
}

describe('src/emulator/visibility.ts', () => {
  test('an address that appears only at the end of its task is billed before, but in no read', async () => {
    const { list, call, clock, emulator, created, id } = await creating({ addressAt: 'taskDone' });
    expect(created.body.data).toMatchObject({ id, ipv4: null, ips: [] });
    expect(await list('/ips')).toEqual([]);
    expect((await call('GET', '/ips/5001')).status).toBe(404);
    expect((await call('DELETE', '/ips/5001')).status).toBe(404);
    expect(emulator.billed().map(({ kind }) => kind)).toEqual(['server', 'ip']);
    await clock.advance(45_000);
    expect(await list('/ips')).toMatchObject([{ id: 5001, server_id: id, primary: true }]);
  });

  test('an address that shows its server only at the end of the task is not free earlier', async () => {
    const { list, call, clock, created, id } = await creating({ attachedAt: 'taskDone' });
    const free = { server_id: null, primary: false };
    expect(created.body.data.ips).toMatchObject([free]);
    expect(created.body.data.ipv4).toBe(created.body.data.ips[0].address);
    expect(await list('/ips')).toMatchObject([free]);
    expect((await call('GET', '/ips/5001')).body.data).toMatchObject(free);
    expect((await call('DELETE', '/ips/5001')).body.code).toBe('ip_in_use');
    await clock.advance(45_000);
    expect(await list('/ips')).toMatchObject([{ server_id: id, primary: true }]);
  });

  test('reads always show a reused address; the reading decides when they show its server', async () => {
    const { call, clock } = stage({ readings: { addressAt: 'taskDone', attachedAt: 'taskDone' } });
    await call('POST', '/ips', { server_type_id: 3 });
    await call('POST', '/servers', await sliderServer(call, { public_ipv4: { reuse: true } }));
    expect((await call('GET', '/ips')).body.data).toMatchObject([{ id: 5001, server_id: null }]);
    await clock.advance(45_000);
    expect((await call('GET', '/ips')).body.data).toMatchObject([{ id: 5001, server_id: 2001 }]);
  });

  test('a list may show a server only at the end of its task; a read by id shows the server at once', async () => {
    const { list, clock, call, id } = await creating({ serverListedAt: 'taskDone' });
    expect(await list('/servers')).toEqual([]);
    expect((await call('GET', `/servers/${id}`)).status).toBe(200);
    await clock.advance(45_000);
    expect(await list('/servers')).toMatchObject([{ id }]);
  });

  test('a network interface appears at once, or at the end of its own task', async () => {
    for (const [interfaceAt, before] of [
      ['accepted', 2],
      ['taskDone', 1],
    ] as const) {
      const durations = { add_card: [2 * minute, 2 * minute] } as const;
      const { list, clock, call, id } = await creating({ interfaceAt }, { durations });
      const path = `/servers/${id}/network-interfaces`;
      await call('POST', path, { network_id: 31 });
      // The end of the server's task shows nothing of it.
      await clock.advance(minute);
      expect(await list(path)).toHaveLength(before);
      expect((await list('/networks'))[0].server_count).toBe(before - 1);
      await clock.advance(minute);
      expect(await list(path)).toHaveLength(2);
    }
  });

  test('a network appears at the end of its task, or at once', async () => {
    for (const [networkAt, before] of [
      ['taskDone', 1],
      ['accepted', 2],
    ] as const) {
      const { call, clock, emulator } = stage({ readings: { networkAt } });
      const networks = async () => (await call('GET', '/networks')).body.data;
      await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' });
      expect(await networks()).toHaveLength(before);
      await clock.advance(8_000);
      expect(await networks()).toHaveLength(2);
      expect(emulator.world.executions).toMatchObject([{ kind: 'network', id: '32' }]);
      emulator.mutate({ do: 'fail_next_task' });
      await call('POST', '/networks', { name: 'b', cidr: '10.2.0.0/24' });
      await clock.advance(8_000);
      expect(await networks()).toHaveLength(2);
    }
  });

  test('an ISO appears at once, or at the end of its task', async () => {
    for (const [isoAt, before] of [
      ['accepted', 200],
      ['taskDone', 404],
    ] as const) {
      const { call, clock } = stage({ readings: { isoAt } });
      const made = await call('POST', '/isos', { url: 'https://images.example/a.iso' });
      expect(made.body.data.id).toBe('uiso-1');
      expect((await call('GET', '/isos/uiso-1')).status).toBe(before);
      expect((await call('GET', '/isos')).body.data).toHaveLength(before === 200 ? 1 : 0);
      await clock.advance(minute);
      expect((await call('GET', '/isos/uiso-1')).status).toBe(200);
      expect((await call('GET', '/isos')).body.data).toHaveLength(1);
    }
  });
});

describe('src/emulator/tasks.ts: resources that appear after their task is reported as failed', () => {
  const later = (path: string) =>
    faultRule({ path, nth: 1 }, { do: 'task', outcome: 'fail', leaves: 'later', laterMs: 7 * minute });

  test('no read shows a server and its address for minutes, then both appear', async () => {
    const { list, call, clock, emulator, created, id } = await creating(
      {},
      { faults: [later('create_server')] },
    );
    expect(await list('/ips')).toHaveLength(1);
    await clock.advance(minute);
    expect((await call('GET', `/tasks/${created.body.task.id}`)).body.data.status).toBe('failed');
    for (const path of ['/ips', '/servers']) expect(await list(path)).toEqual([]);
    expect((await call('GET', `/servers/${id}/network-interfaces`)).status).toBe(404);
    expect((await call('DELETE', `/servers/${id}`)).status).toBe(404);
    expect(emulator.billed()).toHaveLength(2);
    await clock.advance(7 * minute);
    expect(await list('/ips')).toMatchObject([{ server_id: id }]);
    expect(await list('/servers')).toMatchObject([{ id, status: 'active' }]);
    expect(await list(`/servers/${id}/network-interfaces`)).toMatchObject([{ id: 'net0' }]);
    expect((await call('GET', `/tasks/${created.body.task.id}`)).body.data.status).toBe('failed');
  });

  test('a resource that is deleted in the meantime does not reappear', async () => {
    const { list, clock, emulator, id } = await creating({}, { faults: [later('create_server')] });
    await clock.advance(minute);
    emulator.mutate({ do: 'delete_server', id });
    await clock.advance(7 * minute);
    expect(await list('/servers')).toEqual([]);
    expect(await list('/ips')).toMatchObject([{ server_id: null }]);
  });

  test('a network, a network interface and an ISO appear, whether listed before or not', async () => {
    for (const readings of [
      {},
      { networkAt: 'accepted', interfaceAt: 'taskDone', isoAt: 'taskDone' },
    ] as const) {
      const faults = ['create_network', 'add_network_interface', 'add_iso'].map(later);
      const { list, call, clock, id } = await creating(readings, { faults });
      await clock.advance(minute);
      await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' });
      await call('POST', `/servers/${id}/network-interfaces`, { network_id: 31 });
      await call('POST', '/isos', { url: 'https://images.example/a.iso' });
      await clock.advance(minute);
      expect(await list('/networks')).toHaveLength(1);
      expect((await call('DELETE', '/networks/32')).status).toBe(404);
      expect(await list(`/servers/${id}/network-interfaces`)).toHaveLength(1);
      expect(await list('/isos')).toMatchObject([{ status: 'failed' }]);
      await clock.advance(7 * minute);
      expect(await list('/networks')).toHaveLength(2);
      expect(await list(`/servers/${id}/network-interfaces`)).toHaveLength(2);
      expect(await list('/isos')).toMatchObject([{ status: 'available', error: null }]);
    }
  });

  test('the reading has the same effect on any failed task', async () => {
    const { call, clock, emulator } = stage({ readings: { failedTaskLeaves: 'later' } });
    emulator.mutate({ do: 'fail_next_task' });
    await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' });
    await clock.advance(minute);
    expect((await call('GET', '/networks')).body.data).toHaveLength(1);
    await clock.advance(5 * minute);
    expect((await call('GET', '/networks')).body.data).toHaveLength(2);
  });
});

describe('src/emulator/durations.ts', () => {
  test('a faults file sets the duration of work', async () => {
    const { durations } = loadFaults('durations: {create_network: 5m, create_server: 1m..25m}');
    expect(durations).toEqual({
      create_network: [5 * minute, 5 * minute],
      create_server: [minute, 25 * minute],
    });
    const { call, clock } = stage({ durations });
    const { task } = (await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).body;
    await clock.advance(5 * minute - 1);
    expect((await call('GET', `/tasks/${task.id}`)).body.data.status).toBe('running');
    await clock.advance(1);
    expect((await call('GET', `/tasks/${task.id}`)).body.data.status).toBe('succeeded');
  });

  test('a fault makes a single task slow', async () => {
    const slow = faultRule({ path: 'create_network', nth: 1 }, { do: 'task', ms: 25 * minute });
    const { call, clock } = stage({ faults: [slow] });
    await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' });
    await call('POST', '/networks', { name: 'b', cidr: '10.2.0.0/24' });
    await clock.advance(24 * minute);
    expect((await call('GET', '/networks')).body.data).toHaveLength(2);
    await clock.advance(minute);
    expect((await call('GET', '/networks')).body.data).toHaveLength(3);
  });

  test.each([
    ['durations: {create_servers: 5m}', /durations\.create_servers: unknown type of task/],
    ['durations: {create_server: soon}', /durations\.create_server: must be a duration/],
    ['durations: {create_server: 5m..1m}', /durations\.create_server: must be a duration/],
    ['durations: {create_server: 1m..2m..3m}', /durations\.create_server: must be a duration/],
    ['durations: [5m]', /durations: must be a map/],
  ])('reports %j with its position', (text, message) => {
    expect(() => loadFaults(text)).toThrow(message);
  });
});
