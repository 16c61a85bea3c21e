import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { contentsOf, folderWith, inProcess } from '../cli/run.ts';
import { type DaemonOptions, emulate, program, type RunningDaemon, speed, startDaemon } from './support.ts';

const shop = `version: 1
project: { id: 4711, token_env: TOKEN_4711 }
networks:
  backend: { cidr: 10.20.0.0/24 }
`;
const blog = shop.replaceAll('4711', '4712');
/** A copy of the shop's, for a project of its own, whose id has not been changed yet. */
const copy = `version: 1
project: { id: 4711, token_env: TOKEN_4711 }
settings: { prune: true, max_deletions: 100 }
networks:
  api: { cidr: 10.40.0.0/24 }
`;

const cloud = () =>
  emulate({
    projects: [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'blog' },
      { id: 4713, name: 'api' },
    ],
  });

function keep(api: RunningEmulator, { args = ['-f', 'projects'], ...more }: DaemonOptions = {}) {
  const tokens = [4711, 4712, 4713].map((id) => [`TOKEN_${id}`, api.emulator.tokens(id).readWrite] as const);
  return startDaemon(api, {
    ...more,
    args: [...args, '--metrics-per-project'],
    env: { ...Object.fromEntries(tokens), ...more.env },
  });
}

const networks = (api: RunningEmulator, id: number) =>
  api.emulator.world.projects.find((each) => each.id === id)?.networks.map(({ name }) => name);

async function projects({ status }: RunningDaemon) {
  return new Map((await status()).projects.map((each) => [each.project.id, each]));
}

const converged = (daemon: RunningDaemon, ids: readonly number[]) =>
  daemon.until(
    (_, status) =>
      ids.every((id) => status.projects.some((each) => each.project.id === id && each.converged)) &&
      status.projects.length === ids.length,
  );

/** Waits until the file is reported as broken, with these words. */
const toldBroken = (daemon: RunningDaemon, file: string, words = '') =>
  expect
    .poll(async () => (await daemon.status()).source.broken.find((each) => each.file === file)?.message)
    .toContain(words);

/** A daemon of a folder with these files, once these projects have converged. */
async function started(
  files: Readonly<Record<string, string>>,
  ids: readonly number[],
  options: DaemonOptions = {},
) {
  const api = await cloud();
  const named = Object.entries(files).map(([name, text]) => [`projects/${name}.yaml`, text]);
  const folder = folderWith(Object.fromEntries(named));
  const daemon = await keep(api, { folder, ...options });
  if (ids.length > 0) await converged(daemon, ids);
  const fileOf = (name: string) => join(folder, `projects/${name}.yaml`);
  const write = (name: string, text: string) => writeFileSync(fileOf(name), text);
  return { api, folder, daemon, write, remove: (name: string) => rmSync(fileOf(name)) };
}

const metric = async (daemon: RunningDaemon, name: string) =>
  (await daemon.metrics()).split('\n').find((line) => line.startsWith(name));

describe('src/daemon/sources: two files of one project', () => {
  test('the file in force stays in force, and the other file is an error until its removal', async () => {
    const { api, daemon, write, remove } = await started({ shop, blog }, [4711, 4712]);

    write('api', copy);
    await toldBroken(
      daemon,
      'projects/api.yaml',
      'two files are for project 4711: projects/shop.yaml, which stays in force, and projects/api.yaml',
    );
    daemon.child.kill('SIGHUP');
    await daemon.reconciled(1);
    expect(networks(api, 4711)).toEqual(['default', 'backend']);
    expect((await projects(daemon)).get(4711)?.spec.broken).toEqual([]);
    expect(await metric(daemon, 'vdcsync_broken_specs')).toBe('vdcsync_broken_specs 1');
    expect(daemon.log()).toContainEqual(
      expect.objectContaining({ project: 4711, file: 'projects/api.yaml', msg: 'spec invalid' }),
    );

    remove('api');
    await daemon.until((_, { source }) => source.broken.length === 0);
    expect((await projects(daemon)).get(4711)?.spec).toMatchObject({
      files: ['projects/shop.yaml'],
      broken: [],
    });
    expect(await metric(daemon, 'vdcsync_broken_specs')).toBe('vdcsync_broken_specs 0');
    expect(await metric(daemon, 'vdcsync_spec_valid{project="4711"}')).toMatch(/ 1$/);
    expect(daemon.log().map(({ reason }) => String(reason))).not.toContainEqual(
      expect.stringContaining('stays in force, and nothing'),
    );
  });

  test('an invalid edit of the file in force does not activate the other file', async () => {
    const { api, daemon, write } = await started({ shop }, [4711]);
    write('shop', 'version: [\n');
    await daemon.until(({ spec }) => spec.broken.length > 0);
    write('api', copy);
    await toldBroken(daemon, 'projects/api.yaml');
    write('shop', shop);
    await daemon.until(({ spec, converged }) => spec.broken.length === 0 && converged);
    expect(networks(api, 4711)).toEqual(['default', 'backend']);
  });

  test('the daemon uses none of two files at its start, until each project has one file', async () => {
    // What is broken beside it describes the project all the same.
    const files = { api: copy, blog, shop: shop.replace('cidr:', 'cdir:') };
    const { api, daemon, write } = await started(files, [4712]);
    const none = 'uses none of them: projects/api.yaml, projects/shop.yaml';
    await toldBroken(daemon, 'projects/api.yaml', none);
    write('shop', shop);
    await toldBroken(daemon, 'projects/shop.yaml', none);
    expect(networks(api, 4711)).toEqual(['default']);

    write('api', copy.replaceAll('4711', '4713'));
    await converged(daemon, [4711, 4712, 4713]);
    expect((await daemon.status()).source.broken).toEqual([]);
    expect(networks(api, 4711)).toEqual(['default', 'backend']);
    expect(networks(api, 4713)).toEqual(['default', 'api']);
  });

  test('a renamed file stays in force under its new name', async () => {
    const { api, folder, daemon, write } = await started({ shop }, [4711]);
    renameSync(join(folder, 'projects/shop.yaml'), join(folder, 'projects/web.yaml'));
    const renamed = await daemon.until(({ spec }) => spec.files[0] === 'projects/web.yaml');
    expect(renamed.spec.broken).toEqual([]);
    write('web', `${shop}  extra: { cidr: 10.21.0.0/24 }\n`);
    await expect.poll(() => networks(api, 4711)).toContain('extra');
    // The old name is free.
    write('shop', blog);
    await converged(daemon, [4711, 4712]);
  });

  test('a file that changes its project.id keeps its old project, and no other file gets either project', async () => {
    const { api, daemon, write } = await started({ shop, blog }, [4711, 4712]);
    write('shop', copy.replace('4711', '4712'));
    const notified = await daemon.until(({ spec }) => spec.broken.length > 0);
    expect(notified.spec.broken[0]?.message).toContain('project.id was 4711 and is 4712 now');
    write('api', copy);
    await toldBroken(daemon, 'projects/api.yaml');
    expect([networks(api, 4711), networks(api, 4712)]).toEqual([
      ['default', 'backend'],
      ['default', 'backend'],
    ]);
  });
});

describe('src/daemon/sources: a project that leaves the folder', () => {
  const rare = { args: ['-f', 'projects', '--interval', '10h'] };
  const foreign = shop.replace('{ id: 4711', '{ id: 4713').replace('TOKEN_4711', 'TOKEN_4712');

  test('a project with an empty state leaves with its file, and returns with its file', async () => {
    const { daemon, write, remove } = await started({ shop, third: foreign }, [], rare);
    await expect.poll(async () => (await projects(daemon)).get(4713)?.condition).toBe('fenced');
    expect(await daemon.ready()).toBe(false);
    remove('third');
    await converged(daemon, [4711]);
    expect(await daemon.ready()).toBe(true);
    expect(await metric(daemon, 'vdcsync_broken_specs')).toBe('vdcsync_broken_specs 0');
    expect(await metric(daemon, 'vdcsync_condition{project="4713"')).toBeUndefined();
    write('third', foreign.replace('TOKEN_4712', 'TOKEN_4713'));
    await converged(daemon, [4711, 4713]);
  });

  test('a wrong project.id can be corrected while the state is empty', async () => {
    const { daemon, write } = await started({ third: foreign }, []);
    await daemon.until(({ condition }) => condition === 'fenced');
    write('third', foreign.replace('4713', '4712'));
    await converged(daemon, [4712]);
    expect(daemon.log().map(({ msg }) => msg)).not.toContain('spec invalid');
  });

  test('a wrong token name can be corrected in the file', async () => {
    const { daemon, write } = await started({ third: foreign }, [], rare);
    await daemon.until(({ condition }) => condition === 'fenced');
    write('third', foreign.replace('TOKEN_4712', 'TOKEN_NOBODY'));
    await daemon.until(({ spec }) => spec.broken.length === 1);
    write('third', foreign.replace('TOKEN_4712', 'TOKEN_4713'));
    await converged(daemon, [4713]);
  });

  test('a project with resources keeps its last spec, and leaves once its resources are deleted', async () => {
    const { api, daemon, write, remove } = await started({ shop, blog }, [4711, 4712]);
    remove('blog');
    await expect
      .poll(async () => (await projects(daemon)).get(4712)?.spec.broken[0]?.message)
      .toContain('Its last content stays in force');
    expect(networks(api, 4712)).toEqual(['default', 'backend']);

    write('blog', `${blog.split('networks')[0]}settings: { prune: true }\n`);
    await expect.poll(() => networks(api, 4712)).toHaveLength(1);
    await converged(daemon, [4711, 4712]);
    remove('blog');
    await converged(daemon, [4711]);
  });
});

describe('src/daemon/sources: overlays of a folder of projects', () => {
  const common = 'networks: {backend: {cidr: 10.99.0.0/24}}\n';
  const cidrs = (api: RunningEmulator) =>
    api.emulator.world.projects.flatMap((each) =>
      each.networks.flatMap(({ name, cidr }) => (name === 'backend' ? [`${each.id} ${cidr}`] : [])),
    );

  test('each project gets the overlays, also after a change, and commands name the overlays', async () => {
    const args = ['-f', 'projects', '--overlay', 'projects/common.yaml'];
    const { api, folder, daemon, write } = await started({ shop, blog, common }, [4711, 4712], { args });
    expect(cidrs(api)).toEqual(['4711 10.99.0.0/24', '4712 10.99.0.0/24']);

    write('common', common.replace('99', '98'));
    const { daemon: shown } = await daemon.until(
      () => cidrs(api).join() === '4711 10.98.0.0/24,4712 10.98.0.0/24',
    );
    expect(shown.flags).toContain('--overlay');
    const { stdout } = await inProcess(['validate', ...args, '--token-env-prefix', 'TOKEN_'], {
      cwd: folder,
    });
    expect(stdout.match(/is valid/g)).toHaveLength(2);
  });
});

describe('src/daemon/sources: commands next to a folder of projects', () => {
  const besideDaemon = ({ baseUrl, emulator }: RunningEmulator) => ({
    ...{ VDC_BASE_URL: baseUrl, TOKEN_4712: emulator.tokens(4712).readWrite },
    ...{ VDCSYNC_API_PROFILE: 'profile.yaml', VDCSYNC_TOKEN_ENV_PREFIX: 'TOKEN_' },
  });

  test('a command for one file names the state of the daemon, and creates no second state', async () => {
    const { api, folder, daemon } = await started({ blog }, [4712]);
    const env = besideDaemon(api);
    const call = (...args: readonly string[]) =>
      inProcess([...args, '-f', 'projects/blog.yaml'], { cwd: folder, env });
    for (const args of [
      ['status'],
      ['plan'],
      ['apply', '--yes'],
      ['adopt', 'networks.backend', '1'],
      ['history'],
    ]) {
      const { code, stderr } = await call(...args);
      expect([args[0], code, stderr]).toEqual([
        args[0],
        64,
        expect.stringContaining('Use the first state: --state .vdcsync/4712/state.db'),
      ]);
    }
    expect(Object.keys(contentsOf(folder))).not.toContain(join('.vdcsync', 'state.db'));
    const own = ['--state', '.vdcsync/4712/state.db'];
    expect(await call('status', ...own)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('converged'),
    });
    await daemon.end();
    expect((await call('apply', '--yes', ...own)).code).toBe(0);
  });

  test('the daemon names an earlier state of a single file, and creates no second state', async () => {
    const api = await cloud();
    const folder = folderWith({ 'projects/blog.yaml': blog, 'profile.yaml': `time_scale: ${speed}\n` });
    const env = besideDaemon(api);
    const alone = await inProcess(['apply', '--yes', '-f', 'projects/blog.yaml'], { cwd: folder, env });
    expect(alone.code).toBe(0);
    const writes = api.emulator.requests.filter(({ method }) => method !== 'GET').length;
    const daemon = await keep(api, { folder });
    const notified = await daemon.until(({ daemon: { error } }) => error !== null);
    const way = /move the state: (.*)\. If/.exec(notified.daemon.error ?? '')?.[1] ?? '';
    await program('sh', ['-c', way], folder);
    daemon.child.kill('SIGHUP');
    await converged(daemon, [4712]);
    expect(networks(api, 4712)).toEqual(['default', 'backend']);
    expect(api.emulator.requests.filter(({ method }) => method !== 'GET')).toHaveLength(writes);
  });
});
