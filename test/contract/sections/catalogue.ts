import { describe, expect } from 'vitest';
import { type Data, test } from '../contract.ts';

describe('§4 /project, /server-types and /tasks', () => {
  test('§2 an active project has the status `Active`, and a suspended project does not', async ({ api }) => {
    expect((await api.get('/project')).data.status).toBe('Active');
    api.standing('suspended');
    expect((await api.get('/project')).data.status).not.toBe('Active');
  });

  test('§2 the catalogue shows sliders, plans and fixed, and marks GPU types; the pricing has the mode of the type', async ({
    api,
  }) => {
    const types = (await api.get('/server-types')).data;
    const modes = new Set(types.map((type) => type.pricing_mode));
    expect([...modes].toSorted()).toEqual(['fixed', 'plans', 'sliders']);
    expect(new Set(types.map((type) => type.gpu))).toEqual(new Set([true, false]));
    for (const { id, pricing_mode } of types) {
      const pricing = (await api.get(`/server-types/${id}/pricing`)).data;
      expect(pricing).toMatchObject({ server_type_id: id, pricing_mode });
    }
  });

  test('§2 a withdrawn package no longer appears and can no longer be bought', async ({ api }) => {
    const body = await api.gpuBody();
    api.emulator.mutate({ do: 'withdraw_package', package: body.gpu_package });
    const pricing = (await api.get(`/server-types/${body.server_type_id}/pricing`)).data;
    expect(pricing.gpu_packages.map(({ key }: Data) => key)).not.toContain(body.gpu_package);
    expect((await api.post('/servers', body)).code).toBe('gpu_package_not_found');
  });

  test('§3 a task that cannot complete its work ends in `failed`', async ({ api }) => {
    api.failNextTask();
    const answer = await api.post('/networks', { name: 'backend', cidr: '10.0.0.0/24' });
    expect(await api.ended(answer)).toMatchObject({ status: 'failed', is_terminal: true });
    expect(await api.networkNamed('backend')).toBeUndefined();
  });
});
