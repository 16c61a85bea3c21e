import { describe, expect } from 'vitest';
import { open, test } from '../contract.ts';

describe('§4 packaged graphics-card types', () => {
  test('§4 gpu 1: a server is created with gpu_package', async ({ api }) => {
    expect((await api.post('/servers', await api.gpuBody())).status).toBe(202);
  });

  test('§4 gpu 1: gpu_package is required, else gpu_package_required', async ({ api }) => {
    const { gpu_package: _, ...body } = await api.gpuBody();
    const answer = await api.post('/servers', body);
    expect([answer.status, answer.code]).toEqual([422, 'gpu_package_required']);
  });

  test('§4 gpu 1: a key that the type does not sell is gpu_package_not_found', async ({ api }) => {
    const answer = await api.post('/servers', await api.gpuBody({ gpu_package: 'no-such-package' }));
    expect([answer.status, answer.code]).toEqual([422, 'gpu_package_not_found']);
  });

  test.each([
    'cores',
    'memory_mb',
    'disk_gb',
    'plan_id',
  ])('§4 gpu 2: %s next to the package is 422 resources_managed_by_package', async (field) => {
    const api = await open();
    const answer = await api.post('/servers', await api.gpuBody({ [field]: 4 }));
    expect([answer.status, answer.code]).toEqual([422, 'resources_managed_by_package']);
  });

  test('§4 gpus is refused with gpus_not_supported, disk_type likewise', async ({ api }) => {
    expect((await api.post('/servers', await api.gpuBody({ gpus: 1 }))).code).toBe('gpus_not_supported');
    expect((await api.post('/servers', await api.gpuBody({ disk_type: 'ssd' }))).code).toBe(
      'disk_type_not_supported',
    );
  });

  test('§4 gpu 4: no host with free cards is 409 no_gpu_capacity without Retry-After', async ({ api }) => {
    const body = await api.gpuBody();
    api.gpuCapacity(body.gpu_package, 0);
    const answer = await api.post('/servers', body);
    expect([answer.status, answer.code]).toEqual([409, 'no_gpu_capacity']);
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  test('§4 gpu 5: a refused request costs nothing: its address is released again', async ({ api }) => {
    const body = await api.gpuBody();
    api.gpuCapacity(body.gpu_package, 0);
    for (const refused of [
      { ...body, public_ipv4: { new: true } },
      { ...body, public_ipv4: { reuse: true } },
      { ...body, public_ipv4: { new: true }, gpu_package: 'no-such-package' },
      { ...body, public_ipv4: { new: true }, cores: 4 },
    ]) {
      expect((await api.post('/servers', refused)).status).toBeGreaterThanOrEqual(400);
    }
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test('§4 gpu 5: an address of the caller stays the caller’s and free', async ({ api }) => {
    const body = await api.gpuBody({ public_ipv4: { reuse: true } });
    const mine = (await api.post('/ips', { server_type_id: body.server_type_id })).data;
    api.gpuCapacity(body.gpu_package, 0);
    expect((await api.post('/servers', body)).code).toBe('no_gpu_capacity');
    expect((await api.get('/ips')).data).toEqual([mine]);
  });

  test('§4 gpu 5: an address named by the caller stays the caller’s', async () => {
    const api = await open({ undocumented: ['named_address'] });
    const body = await api.gpuBody();
    const mine = (await api.post('/ips', { server_type_id: body.server_type_id })).data;
    api.gpuCapacity(body.gpu_package, 0);
    const named = { ...body, public_ipv4: { ip_id: mine.id } };
    expect((await api.post('/servers', named)).code).toBe('no_gpu_capacity');
    expect((await api.get('/ips')).data).toEqual([mine]);
    api.gpuCapacity(body.gpu_package, 1);
    expect((await api.post('/servers', named)).data.ipv4).toBe(mine.address);
  });

  test('§4 gpu 4: created servers use up capacity, and free it when they are gone', async ({ api }) => {
    const body = await api.gpuBody();
    api.gpuCapacity(body.gpu_package, 1);
    const server = await api.gpuServer();
    expect((await api.post('/servers', body)).code).toBe('no_gpu_capacity');
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect((await api.post('/servers', body)).status).toBe(202);
  });

  test('§4.3 gpu_package and image are trimmed like every string', async ({ api }) => {
    const body = await api.gpuBody();
    const padded = { ...body, gpu_package: ` ${body.gpu_package} `, image: `\t${body.image}` };
    expect((await api.post('/servers', padded)).status).toBe(202);
  });

  test('§8.3 a 409 no_gpu_capacity is not stored: the same key buys later', async ({ api }) => {
    const body = await api.gpuBody();
    api.gpuCapacity(body.gpu_package, 0);
    expect((await api.post('/servers', body, { key: 'wait-for-cards' })).status).toBe(409);
    api.gpuCapacity(body.gpu_package, 1);
    const answer = await api.post('/servers', body, { key: 'wait-for-cards' });
    expect([answer.status, answer.replayed]).toEqual([202, false]);
  });

  test('§2 the pricing of a fixed type has packages, and limits is null', async ({ api }) => {
    const type = await api.serverType('fixed');
    expect(type.gpu).toBe(true);
    const pricing = (await api.get(`/server-types/${type.id}/pricing`)).data;
    expect(pricing).toMatchObject({ server_type_id: type.id, pricing_mode: 'fixed', limits: null });
    expect(pricing.gpu_packages?.length).toBeGreaterThan(0);
  });
});
