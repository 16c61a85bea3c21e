import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDaemonSettings } from '../../src/cli/daemon/settings.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { type Forge, forges } from '../../src/daemon/commit-status/forge.ts';
import { commitStatusesOf } from '../../src/daemon/commit-status/result.ts';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { conditions } from '../../src/view/condition.ts';
import { folderWith, oneNetwork } from '../cli/run.ts';
import { drawn } from '../support/drawn.ts';
import { fakeForge, forgeToken } from '../support/fake-forge.ts';
import { createRepository } from './git-server.ts';
import { emulate, live, startDaemon } from './support.ts';

/** A daemon that follows a repository, and sets its statuses in a forge. */
async function followed(forge: Forge, spec: string) {
  const [api, server, repository] = [await emulate(), await fakeForge(forge), await createRepository()];
  const first = await repository.push({ 'vdcsync.yaml': spec });
  const folder = folderWith({ token: `${forgeToken}\n` });
  const daemon = await startDaemon(api, {
    folder,
    args: [
      ...['--git-url', repository.url, '--git-allow-insecure', '--git-interval', '1s'],
      ...['--commit-status', forge, '--commit-status-url', `${server.url}/`],
    ],
    env: {
      VDCSYNC_COMMIT_STATUS_TOKEN_FILE: join(folder, 'token'),
      VDCSYNC_PUBLIC_URL: 'https://vdcsync.example.com',
    },
  });
  const ends = async (commit: string, state: string) => {
    const last = () => server.kept.findLast((each) => each.commit === commit);
    await expect.poll(last).toMatchObject({ state });
    return last();
  };
  return { api, server, daemon, first, push: repository.push, ends };
}

describe('src/daemon/commit-status', () => {
  test.each(drawn(forges))('%s: each commit gets one status, with the counts of its plan', async (forge) => {
    const { first, push, ends, server } = await followed(forge, oneNetwork);
    const failure = forge === 'gitlab' ? 'failed' : 'failure';
    const done = await ends(first, 'success');
    expect(done).toEqual({
      ...{ commit: first, state: 'success', context: 'vdcsync' },
      ...{ description: 'Converged. Plan: 1 to create', target: 'https://vdcsync.example.com/' },
    });
    const broken = await ends(await push({ 'vdcsync.yaml': 'version: 1\n' }), failure);
    expect(broken?.description).toMatch(/^The spec is broken: vdcsync\.yaml:\d+:\d+: /);
    const gone = `${oneNetwork.replace('backend', 'other')}`;
    const blocked = await ends(await push({ 'vdcsync.yaml': gone }), failure);
    expect(blocked?.description).toMatch(/^Blocked: networks\.backend: /);
    const same = await ends(await push({ 'vdcsync.yaml': gone, 'README.md': 'text' }), 'success');
    expect(same?.description).toBe('No spec has changed');
    for (const { commit, state } of server.kept)
      expect(
        server.kept.filter((each) => each.commit === commit && each.state === state).length,
      ).toBeLessThan(3);
  });

  test('a failing forge stops no reconciliation, is logged once, and gets the newest status later', async () => {
    const { api, server, first, push, daemon, ends } = await followed('github', oneNetwork);
    await ends(first, 'success');
    server.answer(503);
    const before = server.requests();
    const second = await push({ 'vdcsync.yaml': `${oneNetwork}  extra: { cidr: 10.30.0.0/24 }\n` });
    await expect.poll(() => live(api).networks.map(({ name }) => name)).toContain('extra');
    await expect.poll(() => server.requests()).toBeGreaterThan(before + 1);
    const failures = daemon.log().filter(({ msg }) => msg === 'commit status not sent');
    expect(failures).toMatchObject([{ level: 'warn', commit: second, reason: 'the answer was 503' }]);
    server.answer(undefined);
    expect((await ends(second, 'success'))?.description).toBe('Converged. Plan: 1 to create');
    expect(JSON.stringify([daemon.log(), await daemon.status()])).not.toContain(forgeToken);
    expect(daemon.log().some(({ msg }) => msg === 'commit status sent again')).toBe(true);
    expect(await daemon.end()).toBe(0);
  });
});

describe('src/daemon/commit-status/result.ts', () => {
  const summary = { create: 2, update: 0, replace: 0, delete: 1, adopt: 0, blocked: 0, unchanged: 4 };
  const project = (id: number, condition: string, more: object = {}) => ({
    ...{ id, condition, problem: [], blocked: [], reconciled: 'head', planned: summary },
    ...more,
  });
  const daemonWith = (projects: readonly object[], more: object = {}) =>
    ({
      ...{ change: () => ({ commit: 'head', projects }), projects: () => [] },
      ...{ specs: { state: () => ({ orphans: [] }) }, fleet: undefined },
      ...more,
    }) as unknown as Daemon;
  const of = (daemon: Daemon) => commitStatusesOf(daemon).map(({ commit, state }) => `${commit} ${state}`);

  test('each condition maps to a commit status', () => {
    const byState = Map.groupBy(conditions, (each) => of(daemonWith([project(1, each)])).join());
    expect(Object.fromEntries(byState)).toEqual({
      'head pending': ['starting', 'awaiting_approval', 'converging', 'waiting', 'suspended'],
      'head success': ['drifting', 'converged'],
      'head failure': ['fenced', 'unauthorized', 'unreachable', 'failing', 'blocked', 'paused'],
    });
  });

  test('a commit is pending until all projects are reconciled, and fails if one project fails', () => {
    const [good, bad] = [project(1, 'converged'), project(2, 'blocked')];
    const old = project(3, 'converged', { reconciled: 'before' });
    expect(of(daemonWith([good, old]))).toEqual(['head pending']);
    expect(of(daemonWith([good, old, bad]))).toEqual(['head failure']);
    expect(of(daemonWith([good]))).toEqual(['head success']);
    expect(of(daemonWith([]))).toEqual(['head success']);
  });

  test('a refused plan names the policy, and no operation', () => {
    const refused = { code: 'check_refused', reason: 'not today' };
    const blocked = ['networks.a', 'networks.b'].map((key) => ({ key, ...refused }));
    const [status] = commitStatusesOf(daemonWith([project(1, 'blocked', { blocked })]));
    expect(status?.text).toBe('Refused: not today');
  });

  test('a status is one line, without error texts of the infrastructure', () => {
    const texts = conditions.flatMap((condition) =>
      commitStatusesOf(
        daemonWith([
          project(1, condition, {
            error: new Error('connect to db.internal'),
            blocked: [{ key: 'networks.a', reason: 'not\n\u001b[31mtoday' }],
          }),
        ]),
      ).map(({ text }) => text),
    );
    expect(texts.join('|')).not.toContain('db.internal');
    expect(texts).toContain('Blocked: networks.a: not \\u001b[31mtoday');
  });

  test('in a fleet, the leader reports each rollout', () => {
    const rollout = (change: string, phase: string) => ({ change, phase, wave: 1, left: 3, total: 5 });
    const fleet = (leads: boolean, ...rollouts: object[]) =>
      daemonWith([], { fleet: { leads: () => leads, board: { rollouts } } });
    expect(of(fleet(false, rollout('head', 'running')))).toEqual([]);
    expect(of(fleet(true))).toEqual(['head success']);
    expect(of(fleet(true, rollout('head', 'queued'), rollout('older', 'stopped')))).toEqual([
      'head pending',
      'older failure',
    ]);
    expect(of(fleet(true, rollout('head', 'running'), rollout('head', 'stopped')))).toEqual(['head failure']);
  });
});

describe('src/cli/daemon/commit-status.ts', () => {
  const env = { VDC_BASE_URL: 'https://api.example.com/v1', VDCSYNC_COMMIT_STATUS_TOKEN: forgeToken };
  const target = (flags: object, more: object = {}) => {
    const io = { env: { ...env, ...more }, cwd: folderWith({ 'vdcsync.yaml': oneNetwork }) } as unknown as Io;
    return readDaemonSettings({ gitUrl: 'https://git.example.com/group/infra.git', ...flags }, io)
      .statusTarget;
  };

  test.each([
    ['github', 'https://github.com/o/r.git', 'https://api.github.com/repos/o/r'],
    ['github', 'git@github.com:o/r.git', 'https://api.github.com/repos/o/r'],
    ['github', 'https://git.example.com/o/r', 'https://git.example.com/api/v3/repos/o/r'],
    [
      'gitlab',
      'ssh://git@git.example.com:2222/g/s/r.git',
      'https://git.example.com/api/v4/projects/g%2Fs%2Fr',
    ],
    ['gitea', 'https://git.example.com:3000/o/r/', 'https://git.example.com:3000/api/v1/repos/o/r'],
  ] as const)('%s: the address of the API follows from %s', (commitStatus, gitUrl, url) => {
    expect(target({ commitStatus, gitUrl })).toMatchObject({ url, forge: commitStatus, name: 'vdcsync' });
  });

  test('without the flag, the daemon sends no commit status', () => {
    expect(target({})).toBeUndefined();
  });

  test.each<[flags: object, message: string, more?: object]>([
    [{ commitStatus: 'github', gitUrl: undefined }, '--git-url'],
    [{ commitStatus: 'github' }, 'VDCSYNC_COMMIT_STATUS_TOKEN_FILE', { VDCSYNC_COMMIT_STATUS_TOKEN: '' }],
    [{ commitStatusUrl: 'https://x.example.com' }, 'needs --commit-status'],
    [{ commitStatus: 'gitlab', commitStatusUrl: 'http://git.example.com/x' }, 'must be the https URL'],
    [{ commitStatus: 'gitlab', commitStatusUrl: 'https://a:b@git.example.com/x' }, 'must be the https URL'],
    [{ commitStatus: 'gitea', gitUrl: 'file:///srv/r.git', gitAllowInsecure: true }, '--commit-status-url'],
  ])('refuses %j: %s', (flags, message, more) => {
    expect(() => target(flags, more)).toThrow(message);
  });
});
