import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /servers/{id}/backups and /backup-policy', () => {
  test('§4 POST takes no body and answers a Backup in `creating`, with no task', async ({ api, server }) => {
    const answer = await api.post(`/servers/${server.id}/backups`);
    expect(answer.status).toBeLessThan(300);
    expect(answer.data).toMatchObject({ server_id: server.id, status: 'creating', size_bytes: null });
    expect(answer.task ?? null).toBeNull();
  });

  test('§3 a backup becomes available when it finishes, with its size_bytes', async ({ api, server }) => {
    const taken = (await api.post(`/servers/${server.id}/backups`)).data;
    expect((await api.backups(server.id)).map((backup) => backup.status)).toEqual(['creating']);
    await api.until(async () => (await api.backups(server.id))[0]?.status === 'available');
    const [backup] = await api.backups(server.id);
    expect(backup).toMatchObject({ id: taken.id, created_at: taken.created_at });
    expect(backup?.size_bytes).toBeGreaterThan(0);
  });

  test('§2 a backup id is the UTC time it was taken, created_at the same with an offset', async ({
    api,
    server,
  }) => {
    const taken = (await api.post(`/servers/${server.id}/backups`)).data;
    expect(taken.id).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|\+00:00)?$/);
    const asUtc = Date.parse(/(Z|[+-]\d{2}:\d{2})$/.test(taken.id) ? taken.id : `${taken.id}Z`);
    expect(Math.abs(asUtc - Date.parse(taken.created_at))).toBeLessThan(1_000);
    expect(Math.abs(asUtc - api.now())).toBeLessThan(5_000);
  });

  test('§4 two backups have two ids', async ({ api, server }) => {
    const path = `/servers/${server.id}/backups`;
    const first = await api.post(path);
    const second = await api.post(path);
    // Whether a second one may start while the first is being taken is not shown; if it may, it is another one.
    if (second.status < 300) expect(second.data.id).not.toBe(first.data.id);
    else expect(second.status).toBe(409);
  });

  test('§4 GET lists the backups of one server, empty at first', async ({ api }) => {
    const server = await api.server({ name: 'a' });
    const other = await api.server({ name: 'b' });
    await api.post(`/servers/${server.id}/backups`);
    expect(await api.backups(other.id)).toEqual([]);
    expect(await api.backups(server.id)).toHaveLength(1);
  });

  test('§2 the policy has enabled, days, hour, minute, keep, next_run and last_run', async ({
    api,
    server,
  }) => {
    const answer = await api.get(`/servers/${server.id}/backup-policy`);
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.data)).toEqual(
      expect.arrayContaining(['enabled', 'days', 'hour', 'minute', 'keep', 'next_run', 'last_run']),
    );
  });

  test('§1.5 backups stay billed whether or not the server still exists', async ({ api, server }) => {
    const backup = (await api.post(`/servers/${server.id}/backups`)).data;
    await api.until(async () => (await api.backups(server.id))[0]?.status === 'available');
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect(api.billed()).toEqual([`backup ${server.id}/${backup.id}`]);
  });
});
