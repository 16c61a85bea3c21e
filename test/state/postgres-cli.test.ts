import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { contentsOf, type Ended, folderWith, inProcess, oneNetwork, shop } from '../cli/run.ts';
import { postgresServer } from '../support/postgres.ts';

const server = postgresServer();
let api: RunningEmulator;
beforeAll(async () => {
  api = await startEmulator({ speed: 60, projects: [{ id: 4711, name: 'shop' }] });
});
afterAll(() => api.close());

const files = { 'vdcsync.yaml': shop, 'network.yaml': oneNetwork, 'profile.yaml': 'time_scale: 60\n' };

async function run(cwd: string, state: string, ...args: string[]): Promise<Ended> {
  const env = {
    VDC_BASE_URL: api.baseUrl,
    VDC_TOKEN: api.emulator.tokens(4711).readWrite,
    VDCSYNC_API_PROFILE: 'profile.yaml',
    VDCSYNC_STATE: state,
  };
  const ended = await inProcess(args, { cwd, env });
  expect(ended.stdout + ended.stderr).not.toMatch(/canary/);
  return ended;
}

describe('src/state/postgres.ts: a state in PostgreSQL', () => {
  test('plan creates nothing, apply converges, status and history show the state, destroy empties the state', async () => {
    const cwd = folderWith(files);
    const before = contentsOf(cwd);
    const state = `${server.url()}?state=shop`;
    const shown = `postgres://127.0.0.1:${server.port}/postgres?state=shop`;

    expect(await run(cwd, state, 'plan')).toMatchObject({ code: 0 });
    const empty = await run(cwd, state, 'status', '--format', 'json');
    expect(JSON.parse(empty.stdout).state).toMatchObject({ location: shown, exists: false });

    expect(await run(cwd, state, 'apply', '--yes')).toMatchObject({ code: 0 });
    const status = await run(cwd, state, 'status', '--format', 'json');
    expect(JSON.parse(status.stdout)).toMatchObject({
      state: { location: shown, exists: true },
      converged: true,
      resources: { length: 5 },
    });
    const history = await run(cwd, state, 'history', '--format', 'json');
    expect(JSON.parse(history.stdout).writes).toHaveLength(5);
    expect(await run(cwd, state, 'plan', '--detailed-exitcode')).toMatchObject({ code: 0 });

    expect(await run(cwd, state, 'destroy', '--yes')).toMatchObject({ code: 0 });
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('with a URL, the embedded emulator cannot store its world, and the error names the next step', async () => {
    const ended = await run(folderWith(files), server.url(), 'plan', '--emulator');
    expect(ended).toMatchObject({ code: 64, stdout: '' });
    expect(ended.stderr).toMatch(/name a file with --state, or start `vdcsync emulator`/);
  });
});
