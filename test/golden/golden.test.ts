import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { oneNetwork } from '../cli/run.ts';
import { Scene } from './scene.ts';

const shop = readFileSync(new URL('../../examples/shop.yaml', import.meta.url), 'utf8');
const prices = readFileSync(new URL('../../examples/prices.yaml', import.meta.url), 'utf8');
/** The shop, applied. */
let applied: Scene;

beforeAll(async () => {
  applied = Scene.with({ 'vdcsync.yaml': shop });
  await applied.silently(['apply', '--emulator', '--yes']);
});

const fresh = () => Scene.with({ 'vdcsync.yaml': shop });
const converged = () => applied.copy();
const empty = () => Scene.with();

/** The transcript of these steps is the golden text of this name. `npm run golden` writes the file again. */
function golden(
  title: string,
  name: string,
  start: () => Scene,
  steps: (scene: Scene) => Promise<void>,
): void {
  test(title, async () => {
    const scene = start();
    await steps(scene);
    await expect(scene.transcript()).toMatchFileSnapshot(`./${name}.txt`);
  });
}

const unprotected = (spec: string) => spec.replaceAll(/ *protect: true\n/g, '');
const withSettings = (settings: string) => (spec: string) =>
  spec.replace('networks:\n', `settings: { ${settings} }\n\nnetworks:\n`);
const without = (section: RegExp) => (spec: string) => spec.replace(section, '');
const server = (name: string) => new RegExp(`  ${name}:\\n(?:    .*\\n)+`);

/** As a reader of the file sees a change: the plan, and nothing else. */
async function planned(scene: Scene, what: string, change: (spec: string) => string): Promise<void> {
  const next = scene.copy();
  next.edit(what, change);
  await next.calls('plan --emulator');
  scene.add(next);
}

describe('src/cli: golden texts', () => {
  golden('plan', 'plan', fresh, async (scene) => {
    await scene.calls(
      'plan --emulator',
      'plan --emulator --target networks.backend',
      'plan --emulator --format markdown',
    );
  });

  golden('plan of a change', 'plan-change', converged, async (scene) => {
    await scene.calls('plan --emulator');
    await planned(scene, 'another port, and a second server', (spec) =>
      spec.replace('"80,443"', '"8080,443"').replace(
        '\n  db-1:',
        `
  web-2:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { new: true }
\n  db-1:`,
      ),
    );
    await planned(scene, 'a larger web-1, which may not be replaced', (spec) =>
      unprotected(spec).replace('cores: 4', 'cores: 8'),
    );
    await planned(scene, 'a larger web-1, which may be replaced', (spec) =>
      unprotected(spec).replace('cores: 4', 'cores: 8\n    replace: allowed'),
    );
    await planned(scene, 'web-1 has another key', (spec) =>
      spec.replace('  web-1:\n', '  www-1:\n    moved: { from: servers.web-1 }\n'),
    );
    await planned(scene, 'web-1 has another key, and `moved` is not written', (spec) =>
      spec.replace('  web-1:\n', '  www-1:\n'),
    );
    await planned(scene, 'backend has another key', (spec) =>
      spec
        .replace('  backend: {', '  private: { moved: { from: networks.backend },')
        .replaceAll('[backend]', '[private]'),
    );
  });

  golden('plan of a deletion', 'plan-deletion', converged, async (scene) => {
    await planned(scene, 'db-1 has left the spec', without(server('db-1')));
    await scene.silently(['apply', '--emulator', '--yes']);
    const open = applied.copy();
    open.write('vdcsync.yaml', unprotected(open.read('vdcsync.yaml')));
    await open.silently(['apply', '--emulator', '--yes']);
    await planned(open, 'db-1 has left the spec, and is not protected', without(server('db-1')));
    await planned(open, 'the same, with prune', (spec) =>
      withSettings('prune: true')(without(server('db-1'))(spec)),
    );
    await planned(open, 'all servers have left the spec', (spec) =>
      withSettings('prune: true, max_deletions: 1')(spec.replace(/servers:[\s\S]*/, '')),
    );
    scene.add(open);
  });

  golden('plan of a blocked, paused or unconfirmed project', 'plan-blocked', converged, async (scene) => {
    await planned(scene, 'values that the catalogue does not have', (spec) =>
      spec.replace(
        '\n  db-1:',
        `
  web-2: { server_type: slider-1, image: ubuntu-24.04, cores: 2, memory_mb: 4096, disk_gb: 40 }
  web-3: { server_type: sliders-1, image: ubuntu-24, cores: 2, memory_mb: 4096, disk_gb: 40, network_interfaces: [backend] }
\n  db-1:`,
      ),
    );
    await planned(scene, 'changes are suspended', (spec) =>
      withSettings('suspend: { reason: "audit" }')(spec).replace('"80,443"', '"443"'),
    );
    const lost = applied.copy();
    lost.outside('the state is lost', () => {});
    lost.remove('.vdcsync/state.db');
    await lost.calls('plan --emulator', 'explain servers.db-1 --emulator');
    scene.add(lost);
    const unpaid = applied.copy();
    unpaid.outside('the project is not paid', ({ projects }) => {
      for (const each of projects) each.standing = 'suspended';
    });
    unpaid.edit('another network and address', (spec) =>
      spec.replace('ips:\n', '  more: { cidr: 10.21.0.0/24 }\n\nips:\n  more: {}\n'),
    );
    await unpaid.calls('plan --emulator', 'apply --emulator --yes');
    scene.add(unpaid);
  });

  golden('apply', 'apply', fresh, async (scene) => {
    await scene.calls('apply --emulator');
    for (const typed of ['no\n', 'yes\n'])
      await scene.run(['apply', '--emulator', '--target', 'networks.backend'], { typed });
  });

  golden('apply --yes', 'apply-yes', fresh, async (scene) => {
    await scene.calls('apply --emulator --yes', 'apply --emulator --yes');
    scene.edit('web-1 has another key', (spec) =>
      spec.replace('  web-1:\n', '  www-1:\n    moved: { from: servers.web-1 }\n'),
    );
    await scene.calls('apply --emulator --yes');
  });

  golden('apply of an operation that fails or is rate limited', 'apply-trouble', converged, async (scene) => {
    scene.outside('the next task fails', ({ projects }) => {
      for (const each of projects) each.failNextTasks = 1;
    });
    scene.edit('a second server', (spec) =>
      spec.replace(
        '\n  db-1:',
        `
  web-2: { server_type: sliders-1, image: ubuntu-24.04, cores: 2, memory_mb: 4096, disk_gb: 40, public_ipv4: { new: true } }
\n  db-1:`,
      ),
    );
    await scene.calls('apply --emulator --yes', 'status --emulator', 'explain servers.web-2 --emulator');
    const many = Array.from({ length: 6 }, (_, at) => `  n${at}: { cidr: 10.30.${at}.0/24 }\n`).join('');
    const limited = Scene.with({
      'vdcsync.yaml': `version: 1\nproject: { id: 4711 }\nnetworks:\n${many}`,
      'profile.yaml': 'time_scale: 10\nlimits: { window: 60s, reads: 60, writes: 4 }\n',
    });
    await limited.calls('apply --emulator --yes --api-profile profile.yaml');
    scene.add(limited);
  });

  golden('apply after an interruption', 'apply-interrupted', fresh, async (scene) => {
    await scene.calls(
      'apply --emulator --yes --timeout 1s',
      'plan --emulator --detailed-exitcode',
      'apply --emulator --yes',
    );
  });

  golden('plan of another backup and of reserved addresses', 'plan-further', converged, async (scene) => {
    scene.edit('three more addresses', (spec) =>
      spec.replace('ips:\n', 'ips:\n  one: {}\n  two: {}\n  three: {}\n'),
    );
    await scene.wait(25 * 3_600_000);
    await scene.calls('plan --emulator');
  });

  golden('destroy', 'destroy', converged, async (scene) => {
    await scene.calls('destroy --emulator --dry-run');
    scene.edit('nothing is protected', unprotected);
    await scene.silently(['apply', '--emulator', '--yes']);
    await scene.run(['destroy', '--emulator'], { typed: 'shop\n' });
    await scene.run(['destroy', '--emulator', '--max-deletions', '4'], { typed: 'emulated\n' });
    await scene.calls('destroy --emulator --yes');
  });

  golden('status', 'status', converged, async (scene) => {
    await scene.calls('status --emulator', 'status --offline');
    scene.edit('db-1 has left the spec, and web-1 has another port', (spec) =>
      without(server('db-1'))(spec).replace('"80,443"', '"443"'),
    );
    await scene.calls('status --emulator');
    const unapplied = fresh();
    await unapplied.calls('status');
    scene.add(unapplied);
  });

  golden('validate', 'validate', fresh, async (scene) => {
    scene.write(
      'wrong.yaml',
      `version: 1
project: { id: x }
servers:
  web-1: { server_typ: sliders-1, image: ubuntu-24.04, cores: 2, plan_id: 52, network_interfaces: [backend] }
`,
    );
    await scene.calls('validate', 'validate -f wrong.yaml', 'validate -f missing.yaml');
  });

  golden('doctor', 'doctor', converged, async (scene) => {
    await scene.calls('doctor --emulator');
    const bare = Scene.with();
    await bare.calls('doctor');
    scene.add(bare);
  });

  golden('explain', 'explain', converged, async (scene) => {
    // A code that asks the operator, one of the API, a condition and a slip: docs/reference/codes.md has the others.
    for (const topic of ['prune_disabled', 'insufficient_scope', 'unauthorized', 'server_bussy'])
      await scene.run(['explain', topic]);
    await scene.calls('explain servers.web-1 --emulator', 'explain servers.web-9 --emulator');
    scene.edit('a larger web-1, which may not be replaced', (spec) =>
      unprotected(spec).replace('cores: 4', 'cores: 8'),
    );
    await scene.calls('explain servers.web-1 --emulator');
  });

  golden('output', 'output', converged, async (scene) => {
    for (const format of ['json', 'env', 'ansible', 'ssh-config'])
      await scene.run(['output', '--emulator', '--format', format]);
  });

  golden('history', 'history', converged, async (scene) => {
    await scene.calls(
      'history --limit 3',
      'history servers.db-1',
      'history servers.web-9',
      'history 2026-01-05T09:00:00Z --limit 1',
      'history 2025-12-31T00:00:00Z',
    );
  });

  golden('bill', 'bill', converged, async (scene) => {
    scene.write('prices.yaml', prices);
    await scene.wait(4 * 3_600_000);
    await scene.calls(
      'bill --emulator',
      'bill --emulator --prices prices.yaml',
      'bill --offline --prices prices.yaml --format csv',
      'bill --emulator --month 2025-12',
    );
  });

  golden('adopt, forget, ignore, resolve, approve', 'binding', converged, async (scene) => {
    await scene.calls(
      'forget servers.web-1 --emulator',
      'plan --emulator',
      'adopt servers.web-1 2002 --emulator',
      'adopt servers.web-1 2999 --emulator',
      'adopt server.web-1 2002 --emulator',
      'ignore 2002 --emulator',
      'forget ips.web --emulator',
      'ignore 203.0.113.10 --emulator',
      'ignore --undo 203.0.113.10 --emulator',
      'resolve servers.web-1 --absent --emulator',
      'resolve servers.web-1 --emulator',
      'approve sha256:0 --emulator',
    );
    scene.edit('db-1 has left the spec', (spec) =>
      spec.replaceAll('    protect: true\n', '').replace(/ {2}db-1:[\s\S]*$/, ''),
    );
    await scene.calls(
      'apply --emulator --yes',
      'forget servers.db-1 --emulator',
      'ignore 2001 --emulator',
      'ignore --undo 2001 --emulator',
    );
    scene.edit('db-1 is back', () => shop);
    await scene.calls('adopt servers.db-1 2001 --emulator', 'adopt servers.db-1 2002 --emulator');
  });

  golden('export', 'export', converged, async (scene) => {
    await scene.calls('export --emulator');
  });

  golden('rehearse', 'rehearse', empty, async (scene) => {
    scene.write('vdcsync.yaml', oneNetwork);
    await scene.calls('rehearse --trials 6');
  });

  golden('init', 'init', empty, async (scene) => {
    await scene.calls('init', 'init --emulator', 'init --emulator');
    scene.show('vdcsync.yaml');
  });

  golden('render', 'render', empty, async (scene) => {
    scene.write(
      'project.ts',
      `export default {
  version: 1,
  project: { id: 4711 },
  networks: Object.fromEntries(['front', 'back'].map((name, at) => [name, { cidr: \`10.\${at}.0.0/24\` }])),
};
`,
    );
    scene.write('wrong.ts', 'export default 1;\n');
    await scene.calls('render project.ts', 'render wrong.ts');
  });

  golden('wrong usage', 'mistakes', fresh, async (scene) => {
    await scene.calls('aply', 'plan --emulatr', 'plan');
    await scene.run(['plan'], { env: { VDC_BASE_URL: 'https://api.example.com' } });
    await scene.run(['plan'], { env: { VDC_BASE_URL: 'http://api.example.com/v1', VDC_TOKEN: 'x' } });
    await scene.run(['plan'], { env: { VDC_BASE_URL: 'https://api.example.com/v1' } });
    await scene.calls(
      'plan --emulator --target servers.web-9',
      'plan --emulator -f missing.yaml',
      'apply --emulator --yes --plan missing.json',
    );
    const syntax = Scene.with({
      'brace.yaml': 'version: 1\nproject: { id: 4711\nnetworks:\n  a: { cidr: 10.0.0.0/24 }\n',
      'range.yaml': shop.replace('"80,443"', '"8000:8080"').replace('max_age: 24h', 'max_age: 1m'),
    });
    for (const name of ['brace.yaml', 'range.yaml']) await syntax.run(['validate', '-f', name]);
    scene.add(syntax);
    await Scene.with().run(['plan', '--emulator']);
  });

  // docs/reference/cli.md and the man pages have the flags and examples of every command: test/cli/generated.test.ts.
  golden('--help', 'help', empty, async (scene) => {
    await scene.calls('--help');
  });
});
