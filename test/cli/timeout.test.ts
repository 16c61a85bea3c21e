import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { type Call, folderWith, inProcess, type Served, serve, vdcsync } from './run.ts';
import { jsonLines } from './workspace.ts';

let api: Served;
beforeAll(async () => {
  api = await serve({ speed: 60 });
});
afterAll(() => api.close());

const spec = `version: 1
project: { id: 4711 }
networks: { backend: { cidr: 10.20.0.0/24 } }
servers:
  gpu-1: { server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: l40s-1 }
`;

describe('src/cli/commands/apply.ts: apply --timeout', () => {
  let call: Call;
  const apply = (...args: string[]) => vdcsync(['apply', '--yes', ...args], call);
  const cards = (capacity: number) =>
    api.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity });

  beforeEach(() => {
    call = { cwd: folderWith({ ...api.files, 'vdcsync.yaml': spec }), env: api.env };
  });

  test('ends a wait for GPU capacity, completes all else, and the next run continues the same write', async () => {
    cards(0);
    const { code, stdout, stderr } = await apply('--timeout', '4m');
    expect(code).toBe(130);
    expect(stderr).toMatch(
      /\n {2}create servers\.gpu-1 waits for free capacity until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\. Ctrl-C or --timeout ends the wait, and the next apply continues\. To leave out the server: --exclude servers\.gpu-1\. Further packages in gpu_package/,
    );
    expect(stderr).toMatch(
      /\n {2}create servers\.gpu-1: retrying in [\w ]+: gpu_package l40s-1: 409 no_gpu_capacity /,
    );
    expect(stderr.match(/ waits for free capacity until \d/g)).toHaveLength(1);
    expect(stderr).toContain('vdcsync: --timeout 4m is over. The next run continues from here.\n');
    expect(stderr).toMatch(/✓ .*create networks\.backend/);
    expect(stdout).toContain('… create servers.gpu-1 not finished');
    expect(stdout).toContain('Stopped: 1 operation done');
    cards(1);
    expect((await apply('--timeout', '1h')).code).toBe(0);
    const { stdout: past } = await inProcess(['history', '--format', 'json', 'servers.gpu-1'], call);
    expect((JSON.parse(past) as { writes: unknown[] }).writes).toHaveLength(1);
  });

  test('ends during a task, and a wait in JSON shows its deadline', async () => {
    cards(0);
    const stuck = faultRule({ path: 'create_network', nth: 1, times: 1 }, { do: 'task', outcome: 'stuck' });
    api.emulator.setFaults([stuck]);
    const edited = spec.replace('backend: { cidr: 10.20', 'other: { cidr: 10.30').replace('gpu-1:', 'gpu-2:');
    writeFileSync(
      join(call.cwd, 'vdcsync.yaml'),
      edited.replace('4711 }', '4711 }\nsettings: { unmanaged: ignore }'),
    );
    const { code, stdout } = await apply('--timeout', '4m', '--format', 'json');
    expect(code).toBe(130);
    const told = jsonLines(stdout);
    expect(told.at(-1)).toMatchObject({
      type: 'summary',
      outcome: 'stopped',
      exit_code: 130,
      operations: { done: 0, unresolved: 2 },
    });
    const waits = told.find(({ step, key }) => step === 'waiting' && key === 'servers.gpu-2');
    const at = Date.parse(waits.at);
    expect(Date.parse(waits.until)).toBeGreaterThan(at);
    expect(Date.parse(waits.deadline) - at).toBeGreaterThan(23.9 * 3_600_000);
  });

  test.each(['soon', '0s', '-5m', '30'])('refuses %s as a duration', async (text) => {
    const { code, stderr } = await inProcess(['apply', '--yes', '--timeout', text], call);
    expect(code).toBe(64);
    expect(stderr).toContain('It must be a duration, such as 90s or 30m.');
  });
});
