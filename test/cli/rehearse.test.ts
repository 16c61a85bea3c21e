import { PassThrough, Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { rehearse } from '../../src/cli/commands/rehearse.ts';
import { calmRun } from '../../src/cli/rehearse/calm-run.ts';
import { runTrial, spread, type Trial, trialsFor } from '../../src/cli/rehearse/trials.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import { contentsOf, folderWith, oneNetwork } from './run.ts';
import { emulated } from './workspace.ts';

const foreign = `version: 1
project: { id: 815 }
networks:
  default: { managed: false }
  shared: { managed: false }
ips:
  web: { id: 77, moved: { from: ips.www } }
servers:
  web-1:
    id: 12
    server_type: huge-9
    image: plan9
    plan_id: 3
    ssh_keys: [5]
    public_ipv4: { ip: web }
`;

describe('src/cli/commands/rehearse.ts', () => {
  test('runs the spec with crashes and faults, and draws the run', async () => {
    const place = emulated(oneNetwork);
    const { code, stdout, stderr } = await place.run('rehearse --svg run.svg --format json');
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /^Running \d+ trials: \d+ crashes and \d+ faults\. For fewer: --trials COUNT\n/,
      ),
    });
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({
      ...{ outcome: 'converged', duplicates: 0, left_unseen: 0, settled: true, failures: [] },
      operations: [{ id: 'create:networks.backend', outcome: 'done' }],
    });
    expect(told.trials).toBe(told.converged);
    const svg = place.read('run.svg');
    expect(svg).toContain('create networks.backend');
    expect(svg).toContain('class="waits"');
    expect(svg).not.toContain('<script');
    expect(Object.keys(contentsOf(place.cwd))).toEqual(['run.svg', 'vdcsync.yaml']);
  });

  test('replaces values that the emulator does not have, and reports the replacements', async () => {
    const place = emulated(foreign, {}, { RELEASE: '4', VDCSYNC_ALLOW_ENV: 'RELEASE' });
    const { code, stdout } = await place.run('rehearse --trials 40');
    expect(stdout).toContain('server type huge-9: the rehearsal uses plans-1 instead');
    expect(stdout).toContain('networks.shared, which is not managed, is created for the rehearsal');
    expect(stdout).toMatch(/create servers\.web-1 +▕/);
    expect(stdout).toMatch(/trials converged, 0 duplicates/);
    expect([0, 1]).toContain(code);
  });

  const rehearsed = (trials: number, web: string, more = '') =>
    emulated(
      `version: 1\nproject: {id: 4711}\n${more}servers: {web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, ${web}}}\n`,
    ).json(`rehearse --trials ${trials}`);

  test('an approved network interface in an unmanaged network converges', async () => {
    const more = 'settings: {approval: plan}\nnetworks: {default: {managed: false}}\n';
    const told = await rehearsed(2, 'network_interfaces: [default]', more);
    expect(told).toMatchObject({ converged: 2, failures: [] });
  });

  test.each([
    '{enabled: true}',
    '{policy_in: drop}',
    '{}',
  ])('a firewall of %s alone converges', async (firewall) => {
    const told = await rehearsed(6, `public_ipv4: {new: true}, firewall: ${firewall}`);
    expect(told).toMatchObject({ failures: [], trials: 6, converged: 6 });
  });

  test('counts decisions about an unconfirmed outcome, and no refusal or late task', async () => {
    const servers = { db: { server_type: 'plans-1', image: 'debian-13', plan_id: 52 } };
    const spec = { settings: {}, networks: {}, ips: {}, isos: {}, servers };
    const { plan } = await calmRun(spec, 4711, documentedProfile, '');
    const trials = await trialsFor(spec, plan, 0);
    const played = async (...names: string[]) => {
      const wanted = names.map((name) => trials.find((each) => each.name === `${name} on create_server`));
      return Promise.all(wanted.map((trial) => runTrial(trial as Trial)));
    };

    const refused = await played(...['400', '401', '402', '403', '404', '405', '415', '422']);
    const late = await played('task stuck', 'suspended', 'unpaid');
    const [unclear, lost] = await played('500 after', 'reset after');

    for (const end of [...refused, ...late]) expect(end).toMatchObject({ asked: [], stopped: true });
    expect(unclear).toMatchObject({ asked: ['outcome_unknown'], stopped: false });
    expect(lost).toMatchObject({ asked: [], stopped: false });
  });

  test('counts the decisions by code, and shows its progress', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': 'version: 1\nproject: {id: 4711}\nips: {web: {}}\n' });
    const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY: true })];
    const io = { stdin: Readable.from([]), stdout, stderr, env: {}, cwd } as unknown as Io;
    expect(await rehearse({}, io)).toBe(0);
    expect(String(stdout.read())).toMatch(/^Decisions by code: outcome_unknown \d+$/m);
    const [, trials, rest = ''] = /^Running (\d+) trials: [^\n]+\n(.*)$/s.exec(String(stderr.read())) ?? [];
    expect(rest.match(/\d+\/\d+ /g)).toHaveLength(Number(trials));
    expect(rest.endsWith('\r\x1b[K')).toBe(true);
  });

  test('reports an invalid file as validate does', async () => {
    const place = emulated('version: 1\nproject: {id: 1}\nservers: {a: {core: 1}}\n');
    expect(await place.refused(1, 'rehearse')).toMatch(/^vdcsync\.yaml:3:\d+: unknown field `core`/m);
  });

  test('waits for a stuck task, and manages its result', async () => {
    const networks = { backend: { cidr: '10.20.0.0/24' } };
    const spec = { settings: {}, networks, ips: {}, isos: {}, servers: {} };
    const { plan } = await calmRun(spec, 4711, documentedProfile, '');
    const trials = await trialsFor(spec, plan, 0);
    const hung = trials.filter(({ name }) => name === 'task stuck on create_network');
    expect(await Promise.all(hung.map(runTrial))).toMatchObject([{ converged: true, rule: null }]);
  });

  test('spreads fewer crashes than steps over the whole run', () => {
    expect(spread(100, 5)).toEqual([1, 26, 51, 75, 100]);
    expect(spread(3, 5)).toEqual([1, 2, 3]);
    expect(spread(9, 0)).toEqual([]);
  });
});
