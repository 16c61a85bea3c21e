import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { type Call, type Ended, ended, folderWith, inProcess } from '../cli/run.ts';
import { createRepository } from '../daemon/git-server.ts';
import { type RunningDaemon, speed, startDaemon, until } from '../daemon/support.ts';
import { builtCommand } from '../support/built.ts';
import { fakeForge, forgeToken } from '../support/fake-forge.ts';
import { postgresServer } from '../support/postgres.ts';
import { programEnv } from '../support/program-env.ts';
import { receiver } from '../support/receiver.ts';
import {
  allConverged,
  billed,
  cloud,
  conditionsOf,
  database,
  eachOf,
  expectBoughtOnce,
  fleetOf,
  folderOfSpecs,
  ids,
  lastReplicasOf,
  projectsWith,
  replica,
  restingFleet,
  specOf,
  specs,
  sql,
  twoReplicas,
} from './rig.ts';

const server = postgresServer();

/** A branch with the specs of all projects, and the flags of a replica that follows the branch. */
async function branchOfSpecs() {
  const repository = await createRepository();
  const files = (more = '') =>
    Object.fromEntries(ids.map((id) => [`specs/${id}.yaml`, `${specOf(id)}${more}`]));
  const first = await repository.push(files());
  const git = ['--git-url', repository.url, '--git-path', 'specs/', '--git-allow-insecure'];
  const pushMore = () => repository.push(files('  extra: { cidr: 10.21.0.0/24 }\n'));
  return { repository, first, pushMore, git };
}

/** The first of these replicas whose pass over project 4711 is refused. */
async function refusedBy(daemon: RunningDaemon, names: readonly string[]): Promise<string> {
  const ask = async () => {
    const [first] = (await fleetOf(daemon)).projects;
    return first?.condition === 'unauthorized' ? (first.last_reconciliation?.replica ?? '') : '';
  };
  return until(ask, (name) => names.includes(name));
}

describe('src/daemon/fleet: a fleet that shares projects through PostgreSQL', () => {
  test('all replicas use the specs of the leader, and apply a change at once', async () => {
    const { api, state, folder } = await restingFleet(server, 'led');
    const second = await replica(api, state, folderOfSpecs());
    await expect.poll(async () => (await fleetOf(second)).projects.length).toBe(ids.length);
    for (const id of ids) {
      const more = specOf(id).replace('max_deletions: 9', 'max_deletions: 9, prune: true');
      writeFileSync(join(folder, 'specs', `${id}.yaml`), `${more}  extra: { cidr: 10.21.0.0/24 }\n`);
    }
    await expect.poll(() => projectsWith(api)).toEqual(ids);
    const seen = new Set<string | undefined>();
    const workers = async () => {
      for (const name of await lastReplicasOf(second)) seen.add(name);
      return seen.size;
    };
    await expect.poll(workers).toBe(2);
    // The second has read its own, older files all the time.
    expect(projectsWith(api)).toEqual(ids);
    const deletions = api.emulator.requests.filter(({ method }) => method === 'DELETE');
    expect(deletions).toEqual([]);
  });

  test('the leader refuses a second file of a project, also at its start', async () => {
    const { api, state, folder, first } = await restingFleet(server, 'contested');
    const copy = specOf(4711).replace('max_deletions', 'prune: true, max_deletions');
    writeFileSync(join(folder, 'specs', '0.yaml'), copy.replace('backend', 'other'));
    const second = await replica(api, state, folder);
    const toldBy = ({ status }: RunningDaemon) =>
      expect
        .poll(async () => (await status()).source.broken[0]?.message)
        .toContain('specs/4711.yaml, which stays in force, and specs/0.yaml');
    await toldBy(first);
    await first.end();
    await expect.poll(() => fleetOf(second)).toMatchObject({ leads: true });
    await toldBy(second);
    const turns = async () =>
      (await fleetOf(second)).projects.map(({ last_reconciliation }) => last_reconciliation?.ended_at);
    const before = await turns();
    second.child.kill('SIGHUP');
    await until(turns, (ends) => ends.every((end, at) => end !== before[at]));
    expect(api.emulator.world.projects[0]?.networks.map(({ name }) => name)).toEqual(['default', 'backend']);
  });

  test.each([
    ['stopped', 'SIGTERM', 0],
    ['killed', 'SIGKILL', null],
  ] as const)('the other replica replaces a replica that is %s during its work, and buys nothing twice', async (how, signal, code) => {
    const api = await cloud();
    const state = await database(server, how);
    const { replicas, names, working } = await twoReplicas(api, state);
    expect(await replicas[working]?.end(signal)).toBe(code);
    const other = replicas[1 - working] as RunningDaemon;
    await allConverged(api, other);
    await expect.poll(() => billed(api)).toEqual(eachOf([1, 1]));
    await expect.poll(() => fleetOf(other)).toMatchObject({ leads: true });
    await expect.poll(() => lastReplicasOf(other)).toEqual(eachOf(names[1 - working]));
    expectBoughtOnce(api);
  });

  test('a webhook to any replica reaches the replica that reads the branch', async () => {
    const api = await cloud();
    const state = await database(server, 'hooked');
    const [{ pushMore, git }, forge] = [await branchOfSpecs(), await fakeForge('gitea')];
    const statuses = ['--commit-status', 'gitea', '--commit-status-url', forge.url];
    const way = {
      args: [...git, ...statuses, '--git-interval', '100h', '--interval', '10h'],
      env: { VDCSYNC_WEBHOOK_SECRET: 'hook'.repeat(5), VDCSYNC_COMMIT_STATUS_TOKEN: forgeToken },
    };
    const first = await replica(api, state, folderWith(), way);
    await allConverged(api, first);
    const second = await replica(api, state, folderWith(), way);
    const commit = await pushMore();
    const body = '{}';
    const signature = `sha256=${createHmac('sha256', 'hook'.repeat(5)).update(body).digest('hex')}`;
    const { status } = await fetch(`${second.url}/hooks/github`, {
      ...{ method: 'POST', body },
      headers: { 'x-hub-signature-256': signature, 'x-github-delivery': 'a' },
    });
    expect([status, (await fleetOf(second)).leads]).toEqual([202, false]);
    await expect.poll(() => projectsWith(api)).toEqual(ids);
    await expect.poll(async () => (await second.status()).source.commit?.id).toBe(commit);
    // The replica that leads reports the commit, and no other one does.
    const reports = () => forge.kept.filter((each) => each.commit === commit && each.state === 'success');
    await expect.poll(reports).toHaveLength(1);
    await pause(2_000);
    expect(reports()).toHaveLength(1);
  });

  test('no replica accepts a branch with a rewritten history, under any leading replica', async () => {
    const api = await cloud();
    const state = await database(server, 'rewritten');
    const { repository, first, pushMore, git } = await branchOfSpecs();
    await pushMore();
    const before = await replica(api, state, folderWith(), { args: git });
    await allConverged(api, before);
    await before.end();
    await repository.git('reset', '--quiet', '--hard', first);
    await repository.git('push', '--quiet', '--force', 'origin', 'HEAD:main');

    const another = await replica(api, state, folderWith(), { args: git });

    await expect
      .poll(async () => (await another.status()).source.error)
      .toMatch(/history of .* was rewritten/);
  });

  test('the replica with the turn names an earlier state of a single file, and continues after its rename', async () => {
    const api = await cloud();
    const state = await database(server, 'alone_before');
    const folder = folderWith({ 'profile.yaml': `time_scale: ${speed}\n` });
    specs(folder);
    const env = { ...besideDaemon(api, 'profile.yaml'), TOKEN_4711: api.emulator.tokens(4711).readWrite };
    const args = ['apply', '--yes', '-f', 'specs/4711.yaml', '--state', state];
    expect((await inProcess(args, { cwd: folder, env })).code).toBe(0);
    const only = await replica(api, state, folder);
    const { error } = (await only.until((each) => each.daemon.error !== null)).daemon;
    expect(only.log().some(({ msg }) => msg === 'project failed')).toBe(true);
    await sql(state, /move the state: (.*)\. If/.exec(error ?? '')?.[1] ?? '');
    only.child.kill('SIGHUP');
    await allConverged(api, only);
    const made = api.emulator.requests.filter(({ project, method }) => project === 4711 && method === 'POST');
    expect(made).toHaveLength(1);
  });

  test('two replicas report each finding once, and one replica measures each project', async () => {
    const api = await cloud();
    const state = await database(server, 'notified');
    const heard = await receiver<{ readonly project: number; readonly condition: string }>();
    const [one, two] = [folderOfSpecs(), folderOfSpecs()];
    const way = { args: ['-f', 'specs', '--metrics-per-project'], env: { VDCSYNC_NOTIFY_URL: heard.url } };
    const replicas = await Promise.all([replica(api, state, one, way), replica(api, state, two, way)]);
    const [first, second] = replicas as [RunningDaemon, RunningDaemon];
    await allConverged(api, first);
    const measured = async () => {
      const texts = await Promise.all(replicas.map((each) => each.metrics()));
      return [...texts.join('').matchAll(/vdcsync_converged\{project="(\d+)"/g)]
        .map(([, id]) => Number(id))
        .sort();
    };
    await expect.poll(measured).toEqual(ids);
    api.emulator.mutate({ do: 'revoke_token', token: api.emulator.tokens(4711).readWrite });
    const names = await Promise.all(replicas.map(async (each) => (await fleetOf(each)).replica));
    const met = names.indexOf(await refusedBy(first, names));
    await expect.poll(() => heard.bodies.length).toBeGreaterThan(0);
    expect(await replicas[met]?.end()).toBe(0);
    const other = met === 0 ? second : first;
    await refusedBy(other, names.toSpliced(met, 1));
    expect(await other.end()).toBe(0);
    expect(heard.bodies.map(({ project, condition }) => [project, condition])).toEqual([
      [4711, 'unauthorized'],
    ]);
  });

  test.each([
    ['plain', ''],
    ['named', '?sslmode=disable&state=eu'],
  ])('commands use the state that the fleet has for the project (%s)', async (name, query) => {
    const lost = faultRule(
      { method: 'POST', path: '/ips', times: 1 },
      { do: 'reset', effect: 'done', stored: false },
    );
    const api = await cloud([lost]);
    const own = (id: number) =>
      `version: 1\nproject: { id: ${id}, token_env: TOKEN_${id} }\nips: { web: {} }\n`;
    const folder = folderWith({ 'specs/4711.yaml': own(4711), 'specs/4712.yaml': own(4712) });
    const tokens = ids.map((id) => [`TOKEN_${id}`, api.emulator.tokens(id).readWrite]);
    const env = { ...Object.fromEntries(tokens), VDCSYNC_STATE: `${await database(server, name)}${query}` };
    const wrong = { ...env, TOKEN_4712: 'of-nobody' };
    const daemon = await startDaemon(api, { folder, args: ['-f', 'specs'], env: wrong });
    const { blocked } = await daemon.until(({ condition }) => condition === 'blocked');
    await expect.poll(async () => (await fleetOf(daemon)).projects.length).toBe(2);

    const beside = { ...env, ...besideDaemon(api, join(folder, 'profile.yaml')) };
    const shell = (line: string) => inShell(line, { cwd: folderWith(), env: beside });
    const [way = ''] = blocked[0]?.resolve.split(' (') ?? [];
    expect(way).not.toContain('canary');
    const state = way.split(' ').find((word) => word.includes('VDCSYNC_STATE'));

    const ask = (file: string, ...args: string[]) =>
      inProcess([...args, '-f', join(folder, 'specs', file)], { cwd: folder, env: beside });
    expect(await ask('4711.yaml', 'adopt', 'ips.web', '5001')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(`--state ${state}\n`),
    });
    const untouched = await ask('4712.yaml', 'apply', '--yes');
    expect([untouched.code, untouched.stderr]).toEqual([64, expect.stringMatching(/state=(eu-)?4712"\n/)]);

    const settled = await onceFree(() => shell(way.replace(' ID', ' 5001')));
    expect(settled).toMatchObject({ code: 0, stderr: '' });
    await expect.poll(async () => (await conditionsOf(daemon))[0]).toBe('converged');
    expect(api.emulator.world.projects.map(({ ips }) => ips.length)).toEqual([1, 0, 0, 0]);
  });

  test('docs/how-to/fleet.md: files, commands and output', async () => {
    const page = readFileSync(new URL('../../docs/how-to/fleet.md', import.meta.url), 'utf8');
    const folder = folderWith(
      Object.fromEntries(
        [...page.matchAll(/```yaml\n# file: (\S+)\n([\s\S]*?)```/g)].map(([, name = '', body = '']) => [
          name,
          body,
        ]),
      ),
    );
    const api = await cloud();
    const state = `${await database(server, 'documented')}?application_name=fleet`;
    const env = {
      VDCSYNC_STATE: state,
      TOKEN_SHOP: api.emulator.tokens(4711).readWrite,
      TOKEN_BLOG: api.emulator.tokens(4712).readWrite,
    };
    const [, call = ''] = /^vdcsync run (.*)$/m.exec(page) ?? [];
    const one = await startDaemon(api, { folder, args: call.split(' '), env });
    await expect.poll(() => conditionsOf(one)).toEqual(['converged', 'converged']);
    const [, shown = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
    expect(shapeOf(await fleetOf(one))).toEqual(shapeOf(JSON.parse(shown)));
    const metrics = await one.metrics();
    for (const [name] of page.matchAll(/vdcsync_fleet_\w+/g)) expect(metrics).toContain(name);
    const [, settle = ''] = /^vdcsync (resolve .*)$/m.exec(page) ?? [];
    const args = settle.replace('"$VDCSYNC_STATE&state=4711"', `${state}&state=4711`).split(' ');
    const beside = { cwd: folder, env: { ...env, ...besideDaemon(api, 'profile.yaml') } };
    const { stderr } = await onceFree(() => inProcess(args, beside));
    expect(stderr).toMatch(/No key has an open write/);
    const input = readFileSync(join(folder, 'projects/shop.yaml'), 'utf8');
    const fromInput = args.map((each) => (each.endsWith('.yaml') ? '-' : each));
    const piped = await onceFree(() => inProcess(fromInput, { ...beside, input }));
    expect(piped.stderr).toMatch(/No key has an open write/);
    const apply = ['apply', '--yes', '-f', 'projects/shop.yaml'];
    const second = await onceFree(() => inProcess(apply, beside));
    expect([second.code, second.stderr]).toEqual([
      64,
      expect.stringMatching(/the same URL with state=4711, --state "\$VDCSYNC_STATE&state=4711"\n/),
    ]);
  });
});

/** The variables of a command beside a daemon. */
const besideDaemon = ({ baseUrl }: RunningEmulator, profile: string) => ({
  ...{ VDC_BASE_URL: baseUrl, VDCSYNC_API_PROFILE: profile, VDCSYNC_TOKEN_ENV_PREFIX: 'TOKEN_' },
});

/** In the middle of a reconciliation the state is the daemon's. */
const onceFree = (call: () => Promise<Ended>) => until(call, ({ stderr }) => !stderr.includes('in use by'));

/** A line as somebody types it. */
async function inShell(line: string, { cwd, env }: Call): Promise<Ended> {
  const script = `vdcsync() { '${process.execPath}' '${builtCommand()}' "$@"; }\n${line}`;
  return ended(spawn('sh', ['-c', script], { cwd, env: { ...programEnv(), ...env }, stdio: 'pipe' }));
}

/** The names in a value, without what stands under them. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return 'a value';
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shapeOf(each)]));
}
