import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { folderWith, oneNetwork } from '../cli/run.ts';
import { createRepository, serveGit } from './git-server.ts';
import { type DaemonOptions, emulate, live, startDaemon } from './support.ts';

const body = '{"ref":"refs/heads/main"}';

/** A daemon that has converged by a branch. With a password, a server gives the branch. */
async function following(interval: string, options: DaemonOptions = {}, password?: string) {
  const [api, repository] = [await emulate(), await createRepository()];
  const first = await repository.push({ 'vdcsync.yaml': oneNetwork });
  const served = await serveGit(repository.bare, password);
  const url = password === undefined ? repository.url : served.url;
  const args = ['--git-url', url, '--git-allow-insecure', '--git-interval', interval];
  const daemon = await startDaemon(api, { ...options, args });
  const converged = await daemon.until((project) => project.converged);
  return { api, repository, served, daemon, first, converged };
}

describe('src/daemon/sources: from a push to the project', () => {
  test('polls the branch without a webhook, and names the commit in status and metrics', async () => {
    const { api, repository, daemon, first, converged } = await following('1m');
    expect(converged.spec.commit?.id).toBe(first);
    const second = await repository.push({
      'vdcsync.yaml': `${oneNetwork}  extra: { cidr: 10.30.0.0/24 }\n`,
    });
    await daemon.until((project) => {
      const [last] = project.daemon.last_reconciliations;
      return project.converged && last?.commit === second;
    });
    expect(live(api).networks.map(({ name }) => name)).toContain('extra');
    expect(await daemon.metrics()).toContain(`vdcsync_commit_info{commit="${second}",ref="main"} 1`);
    expect(daemon.log().map(({ commit }) => commit)).toContain(second);

    await repository.push({
      'vdcsync.yaml': 'version: 1\nproject: {id: 4711}\nservers: {web: {cores: many}}\n',
    });
    const broken = await daemon.until(({ spec }) => spec.broken.length > 0);
    expect(broken.spec.digest).not.toBe(converged.spec.digest);
    expect(live(api).networks.map(({ name }) => name)).toContain('extra');
  });

  test('a webhook wakes the daemon, and a forged webhook is refused without effect', async () => {
    const secret = 'canary-secret-of-some-length';
    const env = { VDCSYNC_GIT_TOKEN: 'git-token', VDCSYNC_WEBHOOK_SECRET: secret };
    const { repository, served, daemon } = await following('24h', { env }, 'git-token');
    const second = await repository.push({
      'vdcsync.yaml': `${oneNetwork}  extra: { cidr: 10.30.0.0/24 }\n`,
    });
    const deliver = (by: string) =>
      fetch(`${daemon.url}/hooks/gitea`, {
        method: 'POST',
        body,
        headers: {
          'x-gitea-signature': createHmac('sha256', by).update(body).digest('hex'),
          'x-gitea-delivery': by,
        },
      });
    const before = served.requests.length;
    expect((await deliver('a-guess')).status).toBe(401);
    expect(served.requests.length).toBe(before);
    expect((await deliver(secret)).status).toBe(202);
    const { spec } = await daemon.until((project) => project.converged && project.spec.commit?.id === second);
    expect(spec.commit?.id).toBe(second);
    expect(daemon.log().find(({ msg }) => msg === 'webhook delivery accepted')).toMatchObject({
      forge: 'gitea',
    });
    const notified = JSON.stringify(daemon.log().filter(({ msg }) => msg !== 'webhook delivery accepted'));
    expect(notified).not.toMatch(/canary-secret|git-token/);
  });

  test('an unreachable repository leaves the last spec in force', async () => {
    const folder = folderWith({ 'git-token': 'right' });
    const env = { VDCSYNC_GIT_TOKEN_FILE: 'git-token' };
    const { api, daemon } = await following('1m', { folder, env }, 'right');
    writeFileSync(`${daemon.folder}/git-token`, 'wrong');
    await daemon.until((_, { source, ready }) => source.error !== null && !ready);
    const { id } = live(api).networks.find(({ name }) => name === 'backend') ?? { id: 0 };
    api.emulator.mutate({ do: 'delete_network', id });
    await daemon.until(() =>
      live(api).networks.some(({ name, id: now }) => name === 'backend' && now !== id),
    );
    writeFileSync(`${daemon.folder}/git-token`, 'right');
    await daemon.until((_, { source }) => source.error === null);
  });
});
