import { describe, expect } from 'vitest';
import { type Data, test } from '../contract.ts';

describe('§4 /project, /server-types and /tasks', () => {
  test('§2 GET /project answers id, name and status `Active`', async ({ api }) => {
    const answer = await api.get('/project');
    expect(answer.status).toBe(200);
    expect(answer.data).toMatchObject({ id: expect.any(Number), name: expect.any(String), status: 'Active' });
  });

  test('§2 a suspended project does not read Active', async ({ api }) => {
    api.standing('suspended');
    expect((await api.get('/project')).data.status).not.toBe('Active');
  });

  test('§2 the catalogue shows sliders, plans and fixed, and marks graphics cards', async ({ api }) => {
    const types = (await api.get('/server-types')).data;
    expect([...new Set(types.map((type) => type.pricing_mode))].toSorted()).toEqual([
      'fixed',
      'plans',
      'sliders',
    ]);
    expect(types.some((type) => type.gpu)).toBe(true);
    expect(types.some((type) => !type.gpu)).toBe(true);
  });

  test('§4 GET /server-types/{id}/pricing answers the pricing in the mode of the type', async ({ api }) => {
    for (const type of (await api.get('/server-types')).data) {
      const pricing = (await api.get(`/server-types/${type.id}/pricing`)).data;
      expect(pricing).toMatchObject({ server_type_id: type.id, pricing_mode: type.pricing_mode });
    }
  });

  test('§2 a withdrawn package stops appearing, and is not sold any more', async ({ api }) => {
    const type = await api.serverType('fixed');
    const body = await api.gpuBody();
    api.emulator.mutate({ do: 'withdraw_package', package: body.gpu_package });
    const pricing = (await api.get(`/server-types/${type.id}/pricing`)).data;
    expect(pricing.gpu_packages.map(({ key }: Data) => key)).not.toContain(body.gpu_package);
    expect((await api.post('/servers', body)).code).toBe('gpu_package_not_found');
  });

  test('§4 GET /server-types/{id}/images lists os entries, and own ISOs as useriso', async ({ api }) => {
    const type = await api.serverType('sliders');
    const path = `/server-types/${type.id}/images`;
    const before = (await api.get(path)).data;
    expect(before.length).toBeGreaterThan(0);
    expect(before.every((entry) => entry.type === 'os')).toBe(true);
    const iso = await api.iso();
    expect((await api.get(path)).data).toContainEqual(
      expect.objectContaining({ id: iso.id, type: 'useriso' }),
    );
  });

  test('§7 server_type_not_found: pricing and images of an unknown type', async ({ api }) => {
    for (const path of ['/server-types/987654/pricing', '/server-types/987654/images']) {
      const answer = await api.get(path);
      expect([answer.status, answer.code]).toEqual([404, 'server_type_not_found']);
    }
  });

  test('§2 a task goes to `succeeded`, and is_terminal turns true with it', async ({ api }) => {
    const answer = await api.post('/networks', { name: 'backend', cidr: '10.0.0.0/24' });
    expect(['pending', 'running']).toContain(answer.task?.status);
    expect(answer.task?.poll).toBe(`/v1/tasks/${answer.task?.id}`);
    expect(await api.ended(answer)).toMatchObject({
      id: answer.task?.id,
      status: 'succeeded',
      is_terminal: true,
    });
  });

  test('§3 a task that cannot do its work ends in `failed`', async ({ api }) => {
    api.failNextTask();
    const answer = await api.post('/networks', { name: 'backend', cidr: '10.0.0.0/24' });
    expect(await api.ended(answer)).toMatchObject({ status: 'failed', is_terminal: true });
    expect(await api.networkNamed('backend')).toBeUndefined();
  });

  test('§7 an unknown task is not found', async ({ api }) => {
    expect((await api.get('/tasks/no-such-task')).status).toBe(404);
  });
});
