import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { sliderServer, stage } from './support.ts';

describe('src/emulator/tasks.ts', () => {
  test('a task is pending, then running, then succeeded, and is kept for a day', async () => {
    const { call, clock } = stage();
    const { task } = (await call('POST', '/networks', { name: 'backend', cidr: '10.20.0.0/24' })).body;
    expect(task).toMatchObject({ status: 'pending', is_terminal: false, poll: `/v1/tasks/${task.id}` });
    expect(task.created_at).toBe('2026-08-01T14:00:00+02:00');
    await clock.forward(1500);
    expect((await call('GET', `/tasks/${task.id}`)).body.data.status).toBe('running');
    await clock.forward(6500);
    expect((await call('GET', `/tasks/${task.id}`)).body.data).toMatchObject({
      status: 'succeeded',
      is_terminal: true,
    });
    await clock.forward(86_400_000);
    expect((await call('GET', `/tasks/${task.id}`)).status).toBe(404);
  });

  test('a network does not exist until its task completes', async () => {
    const { call, clock } = stage();
    const made = await call('POST', '/networks', { name: ' backend ', cidr: '10.20.0.7/24' });
    expect(made.status).toBe(202);
    expect(made.body.data).toBeNull();
    expect((await call('GET', '/networks')).body.data).toHaveLength(1);
    await clock.forward(8000);
    const [, network] = (await call('GET', '/networks')).body.data;
    expect(network).toMatchObject({
      name: 'backend',
      cidr: '10.20.0.0/24',
      is_default: false,
      server_count: 0,
    });
  });

  test('a failed creation leaves nothing, everything or the address', async () => {
    for (const [leaves, billed] of [
      ['nothing', []],
      ['everything', ['server', 'ip']],
      ['partial', ['ip']],
    ] as const) {
      const { call, clock, emulator } = stage({
        faults: [faultRule({ path: 'create_server' }, { do: 'task', outcome: 'fail', leaves })],
      });
      const body = await sliderServer(call, { public_ipv4: { new: true } });
      const { task } = (await call('POST', '/servers', body)).body;
      await clock.forward(45_000);
      expect((await call('GET', `/tasks/${task.id}`)).body.data).toMatchObject({
        status: 'failed',
        is_terminal: true,
      });
      expect(emulator.billed().map(({ kind }) => kind)).toEqual(billed);
    }
  });

  test('a failed creation releases the address it allocated, and keeps one it reused', async () => {
    const { call, clock, emulator } = stage();
    await call('POST', '/ips', {});
    emulator.mutate({ do: 'fail_next_task' });
    await call('POST', '/servers', await sliderServer(call, { public_ipv4: { reuse: true } }));
    await clock.forward(45_000);
    expect(emulator.world.projects[0]?.servers).toEqual([]);
    expect(emulator.world.projects[0]?.ips).toMatchObject([{ serverId: null, primary: false }]);
  });

  test('a stuck task runs for ever; a forgotten one has its effect and answers 404', async () => {
    const { call, clock, emulator } = stage({
      faults: [
        faultRule({ path: 'create_network', nth: 1 }, { do: 'task', outcome: 'stuck' }),
        faultRule({ path: 'create_network', nth: 1 }, { do: 'task', outcome: 'forgotten' }),
      ],
    });
    const stuck = (await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).body.task;
    const forgotten = (await call('POST', '/networks', { name: 'b', cidr: '10.2.0.0/24' })).body.task;
    await clock.forward(7 * 86_400_000);
    expect((await call('GET', `/tasks/${stuck.id}`)).body.data.status).toBe('running');
    expect((await call('GET', `/tasks/${forgotten.id}`)).status).toBe(404);
    expect(emulator.world.projects[0]?.networks.map(({ name }) => name)).toEqual(['default', 'b']);
  });

  test('another project does not see a task', async () => {
    const { call, emulator } = stage({
      projects: [
        { id: 1, name: 'a' },
        { id: 2, name: 'b' },
      ],
    });
    const { task } = (await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).body;
    const other = await call('GET', `/tasks/${task.id}`, undefined, { token: emulator.tokens(2).readWrite });
    expect(other.body.code).toBe('task_not_found');
  });

  test('an address leaves its server inside the deleting task', async () => {
    const { call, clock } = stage();
    const created = await call('POST', '/servers', await sliderServer(call, { public_ipv4: { new: true } }));
    const { id, ips } = created.body.data;
    await clock.forward(45_000);
    const deleted = await call('DELETE', `/servers/${id}`);
    expect(deleted.status).toBe(202);
    expect(deleted.body.data).toEqual({ server_id: id, billable_ips: [ips[0].address] });
    expect((await call('DELETE', `/ips/${ips[0].id}`)).body.code).toBe('ip_in_use');
    await clock.forward(20_000);
    expect((await call('GET', `/ips/${ips[0].id}`)).body.data).toMatchObject({
      server_id: null,
      primary: false,
    });
    expect((await call('GET', `/servers/${id}/firewall`)).body.code).toBe('server_not_found');
  });

  test('a backup has no task: it is creating, then available with a size', async () => {
    const { call, clock, emulator } = stage();
    const { id } = (await call('POST', '/servers', await sliderServer(call))).body.data;
    const taken = await call('POST', `/servers/${id}/backups`);
    expect(taken.body.data).toEqual({
      id: '2026-08-01T12:00:00Z',
      server_id: id,
      status: 'creating',
      size_bytes: null,
      created_at: '2026-08-01T14:00:00+02:00',
    });
    expect(taken.body.task).toBeUndefined();
    await clock.forward(120_000);
    const [backup] = (await call('GET', `/servers/${id}/backups`)).body.data;
    expect(backup.status).toBe('available');
    expect(backup.size_bytes).toBeGreaterThan(0);
    await call('DELETE', `/servers/${id}`);
    await clock.forward(20_000);
    expect(emulator.billed()).toEqual([
      { projectId: 4711, kind: 'backup', id: `${id}/${backup.id}`, serverId: id },
    ]);
  });

  test('image operations are submitted one at a time: a wait of up to three seconds, then server_busy', async () => {
    const { call, clock } = stage({ durations: { image_submission: [2000, 2000] } });
    const add = (name: string) => call('POST', '/isos', { url: 'https://example.com/a.iso', name });
    expect((await add('one')).status).toBe(202);
    const second = add('two');
    const third = add('three');
    await clock.forward(2000);
    expect((await second).status).toBe(202);
    await clock.forward(1000);
    const busy = await third;
    expect(busy.status).toBe(409);
    expect(busy.body.code).toBe('server_busy');
    expect(busy.headers['retry-after']).toBe('1');
  });

  test('a download that fails says why', async () => {
    const { call, clock } = stage();
    const added = await call('POST', '/isos', { url: 'https://mirror.invalid/path/rescue.iso' });
    expect(added.body.data).toMatchObject({ name: 'rescue.iso', status: 'downloading' });
    expect(added.headers.location).toBe(`/v1/isos/${added.body.data.id}`);
    await clock.forward(60_000);
    expect((await call('GET', `/tasks/${added.body.task.id}`)).body.data.status).toBe('failed');
    const iso = (await call('GET', `/isos/${added.body.data.id}`)).body.data;
    expect(iso).toMatchObject({ status: 'failed', error: 'the host name cannot be resolved' });
  });
});
