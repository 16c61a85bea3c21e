import { describe, expect, test } from 'vitest';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { folderWith, inProcess, shop } from '../cli/run.ts';
import { emulate, type RunningDaemon, startConverged } from './support.ts';

const firewall = 'servers.web-1.firewall';

/** The calls of an operator against the emulator over HTTP. */
function operator(api: RunningEmulator, spec = shop) {
  const cwd = folderWith({ 'vdcsync.yaml': spec, 'profile.yaml': 'time_scale: 60\n' });
  const env = {
    VDC_BASE_URL: api.baseUrl,
    VDC_TOKEN: api.projects[0]?.tokens.readWrite ?? '',
    VDCSYNC_API_PROFILE: 'profile.yaml',
  };
  return (...args: string[]) => inProcess(args, { cwd, env });
}

const live = ({ emulator }: RunningEmulator) => emulator.world.projects[0]?.servers[0];
const switchOff = (api: RunningEmulator) =>
  api.emulator.mutate({ do: 'set_firewall', server_id: live(api)?.id ?? 0, enabled: false });

/** Every output of the command line shows that the server is exposed, or that it is not. */
async function expectShown(call: ReturnType<typeof operator>, exposed: readonly string[]): Promise<void> {
  const status = JSON.parse((await call('status', '--format', 'json')).stdout) as Record<string, unknown>;
  const plan = JSON.parse((await call('plan', '--format', 'json')).stdout) as {
    readonly warnings: readonly { readonly code: string; readonly key: string }[];
  };
  const warned = plan.warnings.filter(({ code }) => code === 'exposed').map(({ key }) => key);
  expect({ status: status.exposed, plan: warned }).toEqual({ status: exposed, plan: exposed });
  const texts = [
    (await call('status')).stdout,
    (await call('plan')).stdout,
    (await call('plan', '--format', 'markdown')).stdout,
  ];
  for (const text of texts)
    expect(/exposed|all its ports are open/.test(text), text).toBe(exposed.length > 0);
}

async function expectDaemonShows(daemon: RunningDaemon, exposed: readonly string[]): Promise<void> {
  expect(await daemon.metrics()).toContain(`vdcsync_open_servers{project="4711"} ${exposed.length}\n`);
  const page = await (await fetch(daemon.url)).text();
  expect(page.includes('id="danger"')).toBe(exposed.length > 0);
  expect(/<title>web-1: exposed/.test(page)).toBe(exposed.length > 0);
}

describe('src/core/world.ts: every output shows an exposed server, of any cause', () => {
  test('the firewall is excluded', async () => {
    const api = await emulate();
    const call = operator(api);
    const applied = await call('apply', '--yes', '--exclude', firewall, '--format', 'json');
    const summary = JSON.parse(applied.stdout.trimEnd().split('\n').at(-1) ?? '') as {
      readonly warnings: readonly object[];
    };

    expect(live(api)?.firewall.enabled).toBe(false);
    expect(summary.warnings).toContainEqual(
      expect.objectContaining({ code: 'exposed', key: 'servers.web-1' }),
    );
    await expectShown(call, ['servers.web-1']);
  });

  test('the firewall is disabled outside vdcsync, until an apply enables the firewall', async () => {
    const api = await emulate();
    const call = operator(api);
    await call('apply', '--yes');
    await expectShown(call, []);
    switchOff(api);
    await expectShown(call, ['servers.web-1']);

    expect((await call('apply', '--yes')).code).toBe(0);
    expect(live(api)?.firewall.enabled).toBe(true);
    await expectShown(call, []);
  });

  test('with `drift: report`, the daemon notifies at the start and at the end of the exposure', async () => {
    const spec = shop.replace('max_deletions: 9', 'max_deletions: 9, drift: report');
    const { api, daemon } = await startConverged(spec);
    const events = () => daemon.notified.filter(({ event }) => /exposed/.test(event));
    await expectDaemonShows(daemon, []);
    switchOff(api);
    const seen = await daemon.until(({ exposed }) => exposed?.join() === 'servers.web-1');
    expect(seen.converged).toBe(false);
    await expect.poll(() => events()).not.toEqual([]);
    await expectDaemonShows(daemon, ['servers.web-1']);
    expect(live(api)?.firewall.enabled).toBe(false);
    api.emulator.mutate({ do: 'set_firewall', server_id: live(api)?.id ?? 0, enabled: true });
    const told = [
      ['exposed', 'servers.web-1'],
      ['not_exposed', ''],
    ];
    await expect.poll(() => events().map(({ event, detail }) => [event, detail])).toEqual(told);
  });
});
