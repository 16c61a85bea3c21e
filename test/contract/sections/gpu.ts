import { describe, expect } from 'vitest';
import { type Data, open, test } from '../contract.ts';

describe('§4 GPU types with packages', () => {
  test.each([
    ['gpu_package_required', { gpu_package: undefined }],
    ['gpu_package_not_found', { gpu_package: 'no-such-package' }],
    ['resources_managed_by_package', { cores: 4 }],
    ['resources_managed_by_package', { memory_mb: 4096 }],
    ['resources_managed_by_package', { disk_gb: 40 }],
    ['resources_managed_by_package', { plan_id: 51 }],
    ['gpus_not_supported', { gpus: 1 }],
    ['disk_type_not_supported', { disk_type: 'ssd' }],
  ])('§4 gpu 1, 2: %s for %j; gpu 5: the refused request costs nothing', async (code, over) => {
    const api = await open();
    const answer = await api.post('/servers', await api.gpuBody({ public_ipv4: { new: true }, ...over }));
    expect([answer.status, answer.code]).toEqual([422, code]);
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test.each([
    { new: true },
    { reuse: true },
  ])('§4 gpu 4: no free GPU gets 409 without Retry-After; gpu 5: no cost; §8.3 the same key buys later: %j', async (public_ipv4) => {
    const api = await open();
    const body = await api.gpuBody({ public_ipv4 });
    const buy = () => api.post('/servers', body, { key: 'wait-for-cards' });
    api.gpuCapacity(body.gpu_package, 0);
    const refused = await buy();
    expect([refused.status, refused.code]).toEqual([409, 'no_gpu_capacity']);
    expect(refused.headers['retry-after']).toBeUndefined();
    expect((await api.get('/ips')).data).toEqual([]);
    api.gpuCapacity(body.gpu_package, 1);
    const bought = await buy();
    expect([bought.status, bought.replayed]).toEqual([202, false]);
  });

  test.each([
    ['free', () => ({ reuse: true })],
    ['named', ({ id }: Data) => ({ ip_id: id })],
  ])('§4 gpu 5: the caller keeps a %s address of the pool of the type after a refusal', async (_what, formOf) => {
    const api = await open({ undocumented: ['named_address'] });
    const body = await api.gpuBody();
    const mine = (await api.post('/ips', { server_type_id: body.server_type_id })).data;
    const wanted = { ...body, public_ipv4: formOf(mine) };
    api.gpuCapacity(body.gpu_package, 0);
    expect((await api.post('/servers', wanted)).code).toBe('no_gpu_capacity');
    expect((await api.get('/ips')).data).toEqual([mine]);
    api.gpuCapacity(body.gpu_package, 1);
    expect((await api.post('/servers', wanted)).data.ipv4).toBe(mine.address);
  });

  test('§4 gpu 4: created servers use capacity, and deleted servers free capacity', async ({ api }) => {
    const body = await api.gpuBody();
    api.gpuCapacity(body.gpu_package, 1);
    const server = await api.gpuServer();
    expect((await api.post('/servers', body)).code).toBe('no_gpu_capacity');
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect((await api.post('/servers', body)).status).toBe(202);
  });
});
