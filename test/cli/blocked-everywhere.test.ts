import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { emulate, live, speed, startDaemon } from '../daemon/support.ts';
import { folderWith, oneNetwork, vdcsync } from './run.ts';

describe('src/cli: a task past its deadline', () => {
  test('is blocked in apply, plan, status and the daemon', async () => {
    const stuck = faultRule({ path: 'create_network' }, { do: 'task', outcome: 'stuck' });
    const api = await emulate({ faults: [stuck] });
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork, 'profile.yaml': `time_scale: ${speed}\n` });
    const env = {
      VDC_BASE_URL: api.baseUrl,
      VDC_TOKEN: api.projects[0]?.tokens.readWrite ?? '',
      VDCSYNC_API_PROFILE: 'profile.yaml',
      VDCSYNC_STATE: `${cwd}/state.db`,
    };
    const call = (...args: string[]) => vdcsync([...args, '--format', 'json'], { cwd, env });
    const blocked = [{ key: 'networks.backend', verb: 'create', code: 'stuck' }];
    const resources: unknown[] = [];

    const apply = await call('apply', '--yes');
    const summary = JSON.parse(apply.stdout.trimEnd().split('\n').at(-1) ?? '');
    expect([apply.code, summary]).toMatchObject([3, { blocked }]);

    const plan = await call('plan', '--detailed-exitcode');
    expect([plan.code, JSON.parse(plan.stdout)]).toMatchObject([3, { summary: { blocked: 1 }, blocked }]);
    for (const more of [[], ['--offline']]) {
      const status = await call('status', '--detailed-exitcode', ...more);
      expect([status.code, JSON.parse(status.stdout)]).toMatchObject([3, { blocked, resources }]);
    }

    const daemon = await startDaemon(api, { folder: cwd, env: { VDCSYNC_STATE: `${cwd}/state.db` } });
    const project = await daemon.until(({ blocked: some }) => some.length > 0);
    expect(project).toMatchObject({ blocked, condition: 'blocked' });
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toContain('vdcsync_blocked{project="4711"} 1');
    expect(live(api).networks.filter(({ name }) => name === 'backend')).toHaveLength(0);
  });
});
