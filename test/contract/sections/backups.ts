import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /servers/{id}/backups', () => {
  test('§4 POST answers a Backup in `creating`, with no task; §3 a finished backup is available and has size_bytes', async ({
    api,
    server,
  }) => {
    const other = await api.server({ name: 'other' });
    const answer = await api.post(`/servers/${server.id}/backups`);
    expect(answer.status).toBeLessThan(300);
    expect(answer.data).toMatchObject({ server_id: server.id, status: 'creating', size_bytes: null });
    expect(answer.task ?? null).toBeNull();
    expect(await api.backups(server.id)).toEqual([answer.data]);
    expect(await api.backups(other.id)).toEqual([]);
    await api.until(async () => (await api.backups(server.id))[0]?.status === 'available');
    const { id, created_at } = answer.data;
    expect(await api.backups(server.id)).toMatchObject([{ id, created_at, size_bytes: expect.any(Number) }]);
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

  test('§4 two backups have two ids; §1.5 backups stay billed whether or not the server still exists', async ({
    api,
    server,
  }) => {
    const path = `/servers/${server.id}/backups`;
    const ids = [(await api.post(path)).data.id, (await api.post(path)).data.id];
    expect(new Set(ids).size).toBe(2);
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect(api.billed()).toEqual(ids.map((id) => `backup ${server.id}/${id}`));
  });
});
