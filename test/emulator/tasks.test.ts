import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { sliderServer, stage } from './support.ts';

describe('src/emulator/tasks.ts', () => {
  test('a task is pending, then running, then succeeded, and is kept for a day', async () => {
    const { call, clock } = stage();
    const { task } = (await call('POST', '/networks', { name: 'backend', cidr: '10.20.0.0/24' })).body;
    expect(task).toMatchObject({ status: 'pending', is_terminal: false, poll: `/v1/tasks/${task.id}` });
    expect(task.created_at).toBe('2026-08-01T14:00:00+02:00');
    await clock.advance(1500);
    expect((await call('GET', `/tasks/${task.id}`)).body.data.status).toBe('running');
    await clock.advance(6500);
    expect((await call('GET', `/tasks/${task.id}`)).body.data).toMatchObject({
      status: 'succeeded',
      is_terminal: true,
    });
    await clock.advance(86_400_000);
    expect((await call('GET', `/tasks/${task.id}`)).status).toBe(404);
  });

  test.each([
    ['nothing', {}, []],
    ['everything', {}, ['server', 'ip']],
    ['partial', {}, ['ip']],
    [undefined, {}, []],
    [undefined, { failedTaskKeepsIp: true }, ['ip']],
    [undefined, { failedTaskLeaves: 'everything' }, ['server', 'ip']],
  ] as const)('a failed creation leaves the resources that its fault or the reading defines: %s %j', async (leaves, readings, billed) => {
    const fault = { do: 'task', outcome: 'fail', ...(leaves && { leaves }) } as const;
    const { call, clock, emulator } = stage({
      readings,
      faults: [faultRule({ path: 'create_server' }, fault)],
    });
    const body = await sliderServer(call, { public_ipv4: { new: true } });
    const { task } = (await call('POST', '/servers', body)).body;
    await clock.advance(45_000);
    expect((await call('GET', `/tasks/${task.id}`)).body.data).toMatchObject({
      status: 'failed',
      is_terminal: true,
    });
    expect(emulator.billed().map(({ kind }) => kind)).toEqual(billed);
  });

  test('a failed creation releases a newly allocated address, and keeps a reused address', async () => {
    const { call, clock, emulator } = stage();
    await call('POST', '/ips', {});
    emulator.mutate({ do: 'fail_next_task' });
    await call('POST', '/servers', await sliderServer(call, { public_ipv4: { reuse: true } }));
    await clock.advance(45_000);
    expect(emulator.world.projects[0]?.servers).toEqual([]);
    expect(emulator.world.projects[0]?.ips).toMatchObject([{ serverId: null, primary: false }]);
  });

  test('a stuck task never ends; a forgotten task has its effect and gets 404', async () => {
    const { call, clock, emulator } = stage({
      faults: [
        faultRule({ path: 'create_network', nth: 1 }, { do: 'task', outcome: 'stuck' }),
        faultRule({ path: 'create_network', nth: 1 }, { do: 'task', outcome: 'forgotten' }),
      ],
    });
    const stuck = (await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).body.task;
    const forgotten = (await call('POST', '/networks', { name: 'b', cidr: '10.2.0.0/24' })).body.task;
    await clock.advance(7 * 86_400_000);
    expect((await call('GET', `/tasks/${stuck.id}`)).body.data.status).toBe('running');
    expect((await call('GET', `/tasks/${forgotten.id}`)).status).toBe(404);
    expect(emulator.world.projects[0]?.networks.map(({ name }) => name)).toEqual(['default', 'b']);
  });
});
