import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { served } from '../cli/run.ts';
import { postgresServer } from '../support/postgres.ts';
import type { Until } from './process.ts';
import { Scene } from './scene.ts';

const postgres = postgresServer();

/** Each operation needs the one before, so that the order of the lines does not depend on the speed of the machine. */
const chain = `version: 1
project: { id: 4711 }
ips:
  web: {}
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { ip: web }
    firewall: { enabled: true, policy_in: drop, rules: [] }
`;
const approval = (spec: string) => spec.replace('ips:', 'settings: { approval: plan }\nips:');
const daemon = ['run', '--emulator', '--listen', '127.0.0.1:0'];

async function matches(scene: Scene, name: string): Promise<void> {
  await expect(scene.transcript()).toMatchFileSnapshot(`./${name}.txt`);
}

describe('src/cli: golden texts of processes, terminals and decisions', () => {
  test('run', async () => {
    const scene = Scene.with({ 'vdcsync.yaml': chain });
    await scene.serve(daemon, async (until) => {
      await until(/reconciliation ended.*outcome=converged/);
    });
    await matches(scene, 'run');
  });

  test('approve', async () => {
    const scene = Scene.with({ 'vdcsync.yaml': approval(chain) });
    await scene.serve(daemon, async (until) => {
      const [, digest = ''] = await until(/vdcsync approve .*?\b([0-9a-f]{12})\b/);
      await until(/reconciliation ended/);
      await scene.run(['approve', '000000000000', '--emulator']);
      await scene.run(['approve', digest, '--emulator']);
      await until(/outcome=converged/);
    });
    await matches(scene, 'approve');
  });

  test('emulator', async () => {
    const scene = Scene.with();
    await scene.serve(['emulator', '--speed', '60'], async (until) => {
      await until(/Ctrl-C ends the emulator\n/);
    });
    await matches(scene, 'emulator');
  });

  test('apply on a terminal', async () => {
    // Between two events a display is redrawn as often as the machine has time for it: here, never.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const scene = Scene.with({ 'vdcsync.yaml': chain });
    await scene.run(['apply', '--emulator', '--yes'], { live: true });
    await matches(scene, 'apply-live');
  });

  test.each([
    ['adopt', 'done'],
    ['absent', 'none'],
  ] as const)('resolve --%s', async (decision, effect) => {
    const lost = faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect, stored: false });
    const { env, files } = await served({ speed: 60, faults: [lost] });
    const scene = Scene.with({
      'vdcsync.yaml': `version: 1
project: { id: 4711 }
settings: { unconfirmed_servers: ask }
servers:
  gpu: { server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: l40s-1 }
`,
      ...files,
    });
    const input = { env, realTime: true };
    await scene.silently(['apply', '--yes'], input);
    await scene.run(['status'], input);
    const flags = decision === 'adopt' ? ['--adopt', '2001'] : ['--absent'];
    await scene.run(['resolve', 'servers.gpu', ...flags], input);
    await scene.run(['plan'], input);
    await matches(scene, `resolve-${decision}`);
  });

  test('invalid answers of the API', async () => {
    const api = await served({ speed: 60 });
    const network = 'version: 1\nproject: { id: 4711 }\nnetworks: { backend: { cidr: 10.20.0.0/24 } }\n';
    const scene = Scene.with({ ...api.files, 'vdcsync.yaml': network });
    const [input, reading] = [api.env, api.readEnv].map((env) => {
      return { env: { ...env, LOG_LEVEL: 'error' }, realTime: true };
    });
    await scene.run(['doctor', '--probe-writes'], reading);
    for (const then of [{ do: 'malformed' }, { do: 'answer', status: 500 }] as const) {
      api.emulator.setFaults([faultRule({ method: 'GET', path: '/networks' }, then)]);
      await scene.run(['plan'], input);
    }
    api.emulator.setFaults([
      faultRule({ path: 'create_network' }, { do: 'answer', status: 401, code: 'unauthorized' }),
    ]);
    await scene.run(['apply', '--yes'], input);
    await scene.run(['status'], input);
    // The first run asks how the API treats keys, before the write that the API answers with a server error.
    api.emulator.setFaults([]);
    await scene.silently(['apply', '--yes'], input);
    scene.edit('another network', (spec) => spec.replace('} }', '}, front: { cidr: 10.21.0.0/24 } }'));
    api.emulator.setFaults([faultRule({ path: 'create_network' }, { do: 'answer', status: 503 })]);
    await scene.silently(['apply', '--yes', '--timeout', '1m'], input);
    await scene.run(['status'], input);
    await matches(scene, 'faults');
  });

  test('schema and completion', async () => {
    const scene = Scene.with();
    await scene.run(['schema'], { head: 8 });
    await scene.serve(['completion', 'bash'], undefined, { head: 8 });
    await scene.run(['completion', 'tcsh']);
    await matches(scene, 'scripts');
  });

  test('approve-commit', async () => {
    const api = await served({ speed: 60 });
    const shop = `version: 1
project: { id: 4711 }
settings: { prune: true }
networks:
  default: { managed: false }
`;
    const scene = Scene.with({
      'specs/shop.yaml': `${shop}  old: { cidr: 10.21.0.0/24 }\n`,
      'fleet.yaml': 'fleet: { max_deletions: 0 }\n',
      ...api.files,
    });
    await scene.run(['approve-commit', '9f2c41d']);
    const env = { ...api.env, VDCSYNC_STATE: postgres.url() };
    const fleet = ['run', '-f', 'specs', '--fleet-config', 'fleet.yaml', '--listen', '127.0.0.1:0'];
    const steps = async (until: Until) => {
      await until(/outcome=converged/);
      scene.write('specs/shop.yaml', shop);
      const [, change = ''] = await until(/rollout paused change=(\S+)/);
      await scene.run(['approve-commit', '9f2c41d'], { env, realTime: true });
      await scene.run(['approve-commit', change], { env, realTime: true });
      await until(/rollout ended/);
      await until(/verb=delete[\s\S]*outcome=converged/);
    };
    await scene.serve(fleet, steps, { env });
    await matches(scene, 'approve-commit');
  });
});
