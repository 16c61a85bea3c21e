import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { defaultReadings, parseReadings, type Readings, readingValues } from '../../src/emulator/readings.ts';
import { sliderServer, stage } from './support.ts';

async function withServer(readings: Partial<Readings>) {
  const stageOf = stage({ readings });
  const body = await sliderServer(stageOf.call, { public_ipv4: { new: true } });
  const created = await stageOf.call('POST', '/servers', body);
  return { ...stageOf, id: created.body.data.id as number, created };
}

describe('src/emulator/readings.ts', () => {
  const table = readFileSync(new URL('../../docs/contributing/assumptions.md', import.meta.url), 'utf8');

  test('the table of assumptions lists every reading, with its default in bold', () => {
    for (const [name, value] of Object.entries(defaultReadings)) {
      const [, shown] = new RegExp(`\`${name}\`: \\*\\*([^*]+)\\*\\*`).exec(table) ?? [];
      expect([name, shown]).toEqual([name, String(value)]);
    }
  });

  test('every switch of the table is a reading', () => {
    const switches = [...table.matchAll(/`(\w+)`: \*\*/g)].map(([, name]) => name);
    expect(switches.sort()).toEqual(Object.keys(defaultReadings).sort());
  });

  test('accepts every value of every reading, and no other value', () => {
    for (const [name, values] of Object.entries(readingValues)) {
      for (const value of values) {
        const given = { [name]: value === 'number' ? 5 : value };
        expect(parseReadings(given)).toEqual(given);
      }
      expect(() => parseReadings({ [name]: 'nonsense' })).toThrow(name);
    }
    expect(() => parseReadings({ toString: 1 })).toThrow('unknown reading');
  });

  test('readings of networks: unique names, the default network, a network in use', async () => {
    const strict = stage();
    await strict.call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' });
    expect((await strict.call('POST', '/networks', { name: ' a ', cidr: '10.2.0.0/24' })).status).toBe(422);
    expect((await strict.call('DELETE', '/networks/31')).status).toBe(409);
    const { call, id } = await withServer({
      uniqueNetworkNames: false,
      defaultNetworkDelete: 422,
      networkInUse: '422 network_not_empty',
      networkCreate: 'sync',
      duplicateInterfaces: 409,
    });
    const network = (await call('POST', '/networks', { name: 'default', cidr: '10.2.0.0/24' })).body.data;
    expect((await call('DELETE', '/networks/31')).status).toBe(422);
    await call('POST', `/servers/${id}/network-interfaces`, { network_id: network.id });
    expect((await call('POST', `/servers/${id}/network-interfaces`, { network_id: network.id })).status).toBe(
      409,
    );
    const refused = await call('DELETE', `/networks/${network.id}`);
    expect([refused.status, refused.body.code]).toEqual([422, 'network_not_empty']);
  });

  test('readings of the first network interfaces of a server', async () => {
    const { call, clock, id } = await withServer({ defaultNetworkCard: true, publicCardAt: 'taskDone' });
    const cards = async () =>
      (await call('GET', `/servers/${id}/network-interfaces`)).body.data.map(
        (card: { id: string }) => card.id,
      );
    expect(await cards()).toEqual(['net1']);
    const enabled = { enabled: true, policy_in: 'drop', rules: [] };
    expect((await call('PUT', `/servers/${id}/firewall`, enabled)).body.code).toBe(
      'firewall_no_public_iface',
    );
    await clock.advance(45_000);
    expect(await cards()).toEqual(['net0', 'net1']);
    expect((await call('PUT', `/servers/${id}/firewall`, enabled)).status).toBe(200);
  });

  test('readings of a firewall: a server in creation, decorated rules', async () => {
    const { call, clock, id } = await withServer({ firewallWhileCreating: 409, ruleDecoration: true });
    const rules = [
      { direction: 'in', action: 'accept', enabled: true, protocol: 'tcp', destination_port: '22,443' },
    ];
    const body = { enabled: true, policy_in: 'drop', rules };
    expect((await call('PUT', `/servers/${id}/firewall`, body)).status).toBe(409);
    await clock.advance(45_000);
    expect((await call('PUT', `/servers/${id}/firewall`, body)).body.data.rules).toEqual([
      { id: 1, ...rules[0] },
    ]);
  });

  test('readings of the deletion of a server', async () => {
    const { call, clock, created, id } = await withServer({
      billableIps: 'objects',
      detachAt: 'accepted',
      orphanBackups: 'listed',
    });
    await call('POST', `/servers/${id}/backups`);
    const [ip] = created.body.data.ips;
    expect((await call('DELETE', `/servers/${id}`)).body.data.billable_ips).toEqual([ip]);
    expect((await call('DELETE', `/ips/${ip.id}`)).status).toBe(200);
    await clock.advance(20_000);
    expect((await call('GET', `/servers/${id}/backups`)).body.data).toHaveLength(1);
  });

  test('ids are reused, addresses are not', async () => {
    const { call } = stage({ readings: { reuseIds: true } });
    const one = (await call('POST', '/ips', {})).body.data;
    await call('DELETE', `/ips/${one.id}`);
    const two = (await call('POST', '/ips', {})).body.data;
    expect(two.id).toBe(one.id);
    expect(two.address).not.toBe(one.address);
  });

  test('readings of ISOs: URLs of any scheme, or web URLs only', async () => {
    for (const [isoSchemes, status] of [
      ['web', 422],
      ['any', 202],
    ] as const) {
      const { call } = stage({ readings: { isoSchemes } });
      expect((await call('POST', '/isos', { url: 'ftp://mirror.example.com/a.iso' })).status).toBe(status);
    }
  });

  test('readings of task ids: simple ids, or ids with characters that a path must encode', async () => {
    for (const [taskIds, form] of [
      ['simple', /^task-[0-9a-f]{16}$/],
      ['printable', /[^ -~].* .*\/.*\?.*#.*%/],
    ] as const) {
      const { call } = stage({ readings: { taskIds } });
      const { task } = (await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).body;
      expect(task.id).toMatch(form);
      expect(task.poll).toBe(`/v1/tasks/${encodeURIComponent(task.id)}`);
      expect((await call('GET', task.poll.slice('/v1'.length))).body.data.id).toBe(task.id);
    }
  });

  test('other readings', async () => {
    const { call, emulator } = stage({
      readings: {
        pageSize: 1,
        unpaidStatus: 'Suspended',
        bodilessContentType: 'required',
        omittedIpv4: 'new',
        unshownStatus: 400,
        sizeBounds: 'on',
        omitTaskField: true,
        dateHeader: false,
        unknownSshKey: '404 ssh_key_not_found',
        spending: 'everything',
        policyOutOnWrite: 'accepted',
        ruleFields: 'any',
        skippedServerCount: null,
      },
    });
    const types = await call('GET', '/server-types');
    expect(types.body.data).toHaveLength(1);
    expect(types.headers.date).toBeUndefined();
    expect((await call('POST', '/ips')).status).toBe(415);
    const body = await sliderServer(call);
    expect((await call('POST', '/servers', { ...body, cores: 1000 })).status).toBe(422);
    expect((await call('POST', '/servers', { ...body, ssh_keys: [7] })).body.code).toBe('ssh_key_not_found');
    const gpu = { name: 'g', server_type_id: 8, image: 'x' };
    expect((await call('POST', '/servers', gpu)).status).toBe(400);
    const made = await call('POST', '/servers', body);
    expect(made.body.task).toBeUndefined();
    expect(made.body.data.ips).toHaveLength(1);
    const rules = [{ direction: 'in', action: 'accept', source: '10.0.0.0/8' }];
    const firewall = { enabled: true, policy_in: 'drop', policy_out: 'drop', rules };
    const put = await call('PUT', `/servers/${made.body.data.id}/firewall`, firewall);
    expect(put.body.data).toMatchObject(firewall);
    expect((await call('GET', '/networks?skip_vm_count')).body.data[0].server_count).toBeNull();
    emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    expect((await call('GET', '/project')).body.data.status).toBe('Suspended');
    expect((await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).status).toBe(402);
  });
});
