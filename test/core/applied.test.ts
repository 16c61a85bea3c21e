import { describe, expect, test } from 'vitest';
import { appliedServer } from '../../src/core/applied.ts';

describe('src/core/applied.ts', () => {
  test('a server that this state created shows its entry, and the type that the request asked for', () => {
    const applied = {
      entry: { name: 'web', public_ipv4: { ip: 'web' } },
      body: { name: 'web-1', server_type_id: 3, gpu_package: 'l40s-1' },
    };
    expect(appliedServer({ applied })).toEqual({
      isCreated: true,
      mayBeOlder: false,
      name: 'web',
      sentName: 'web-1',
      namesAddress: true,
      typeId: 3,
      gpuPackage: 'l40s-1',
    });
  });

  test.each([
    ['without a binding', undefined],
    ['an adopted one', { applied: { entry: {}, body: null } }],
    ['values in another form', { applied: { entry: 'web', body: null } }],
  ])('%s shows nothing', (_what, binding) => {
    expect(appliedServer(binding)).toMatchObject({ isCreated: false, name: undefined, namesAddress: false });
  });
});
