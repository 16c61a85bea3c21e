import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { contentsOf, folderWith, inProcess, oneNetwork, type Served, served } from './run.ts';

interface Told {
  readonly healthy: boolean;
  readonly findings: readonly { readonly id: string; readonly level: string; readonly message: string }[];
}

/** What `doctor --probe-writes` says of the keys of an API that treats them so. */
async function probed(
  readings: Partial<Readings>,
  {
    token = 'env',
    file = oneNetwork,
    prepare = () => undefined,
    flags = ['--probe-writes'],
  }: {
    readonly token?: 'env' | 'readEnv';
    readonly file?: string;
    readonly prepare?: (emulator: Served['emulator']) => void;
    readonly flags?: readonly string[];
  } = {},
) {
  const { emulator, [token]: env } = await served({ readings });
  prepare(emulator);
  const cwd = folderWith({ 'vdcsync.yaml': file });
  const before = contentsOf(cwd);
  const { stdout } = await inProcess(['doctor', '--format', 'json', ...flags], { cwd, env });
  expect(contentsOf(cwd)).toEqual(before);
  expect(emulator.world.executions).toEqual([]);
  const { findings, healthy } = JSON.parse(stdout) as Told;
  const keys = findings.filter(({ id }) => /^(keys:|idempotency_keys)/.test(id));
  const writes = emulator.requests.filter(({ method }) => method !== 'GET');
  const levels = findings.filter(({ id }) => id === 'token_level');
  return { keys, levels, writes, healthy };
}

const operations = ['create_network', 'allocate_ip', 'add_iso', 'create_server'];

describe('src/cli/doctor/keys.ts', () => {
  test.each([
    [{}, 'ok', 'refuses a reused key with 422 idempotency_key_reused'],
    [{ reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' }, 'ok', 'with 409 conflicting_request'],
    [{ bodyCheck: 'beforeKey' }, 'ok', 'The API checks the body before the key'],
    [{ bodyCheck: 'beforeKeyUnstored' }, 'warning', 'the API does not store refusals'],
  ] as const)('detects the reading %j by refused requests alone', async (readings, level, message) => {
    const { keys, healthy } = await probed(readings);

    expect(keys.map(({ id }) => id)).toEqual(operations.map((name) => `keys:${name}`));
    expect(new Set(keys.map((each) => each.level))).toEqual(new Set([level]));
    for (const each of keys) expect(each.message).toContain(message);
    expect(healthy).toBe(true);
  });

  test('probes network interfaces on a visible server', async () => {
    const prepare = (emulator: Served['emulator']) =>
      void emulator.mutate({ do: 'add_server', name: 'one', public: true });
    const { keys } = await probed({}, { prepare });

    expect(keys.map(({ id }) => id)).toContain('keys:add_network_interface');
  });

  test('warns of an API that differs from every modelled reading', async () => {
    const prepare = (emulator: Served['emulator']) =>
      emulator.setFaults([
        faultRule({ path: 'create_network' }, { do: 'answer', status: 422, code: 'invalid_request' }),
      ]);
    const { keys } = await probed({}, { prepare });

    expect(keys[0]).toMatchObject({ id: 'keys:create_network', level: 'warning' });
    expect(keys[0]?.message).toContain('differs from the API document');
  });

  test('reports a read-only token as an error, and sends no further request', async () => {
    const { keys, levels, writes, healthy } = await probed({}, { token: 'readEnv' });

    expect(keys).toEqual([]);
    expect(levels).toMatchObject([
      { level: 'error', message: expect.stringContaining('refused create_network') },
    ]);
    expect(healthy).toBe(false);
    expect(writes).toHaveLength(1);
  });

  test.each([
    ['without the flag', { flags: [] }],
    ['for another project', { file: oneNetwork.replace('4711', '4712') }],
  ])('sends no write %s', async (_name, options) => {
    const { writes } = await probed({}, options);

    expect(writes).toEqual([]);
  });
});
