import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { ServeOptions } from '../../src/emulator/http-server.ts';
import { ended, folderWith, oneNetwork } from '../cli/run.ts';
import { programEnv } from '../support/program-env.ts';
import { complaints } from '../support/schema-store.ts';
import { createRepository } from './git-server.ts';
import { emulate, live, toolsOfJob } from './support.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const action = parse(readFileSync(join(root, 'action.yml'), 'utf8')) as {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
};

interface Step {
  readonly name?: string;
  readonly if?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

describe('action.yml', () => {
  test('matches the published schema, and declares every input that a step uses', () => {
    expect(complaints('github-action.json', action)).toEqual([]);
    const used = [...JSON.stringify(action.runs).matchAll(/inputs\.(\w+)/g)].map(([, name]) => name);
    expect(new Set(used)).toEqual(new Set(Object.keys(action.inputs)));
    // An input in a script would be run as a part of the script.
    for (const { run = '' } of action.runs.steps) expect(run).not.toContain('${{');
  });

  test('the steps plan, apply and keep the state, in two real runs', async () => {
    const { api, clone, git, job, networks } = await repository();
    const { read, readWrite } = api.projects[0]?.tokens ?? {};
    expect(await job('plan', { token: read })).toMatchObject({ code: 0 });
    expect(readFileSync(join(clone, 'commented.md'), 'utf8')).toContain('+ backend');
    expect(networks()).toBe(0);
    expect(await job('apply', { token: readWrite })).toMatchObject({ code: 0 });
    expect(await job('apply', { token: readWrite })).toMatchObject({ code: 0 });
    expect([networks(), await branches(git)]).toEqual([1, ['main', 'vdcsync-state']]);
    await git('remote', 'set-url', 'origin', join(clone, 'nowhere'));
    const { code } = await job('apply', { token: readWrite });
    expect(code, 'no state is not an unknown state').not.toBe(0);
  });

  test.each([
    'SIGINT',
    'SIGKILL',
  ] as const)('a job that %s cancels returns the state before another job begins, and the next job continues', async (signal) => {
    const { api, git, job, networks } = await repository({
      durations: { create_network: [400_000, 400_000] },
    });
    const { readWrite: token } = api.projects[0]?.tokens ?? {};
    const overlapping: Ended[] = [];
    const sent = () => api.emulator.requests.filter(({ method }) => method === 'POST');
    const cancelled = await job('apply', {
      token,
      async during(child) {
        await expect.poll(() => sent().length).toBeTruthy();
        overlapping.push(await job('apply', { token, run: 2 }));
        child.kill(signal);
      },
    });
    expect(cancelled.code, cancelled.out).toBe(signal === 'SIGINT' ? 130 : null);
    expect(overlapping[0]).toMatchObject({ code: 1, out: expect.stringContaining('/runs/1, job') });
    expect(await branches(git)).toEqual(['main', 'vdcsync-state']);
    const next = await job('apply', { token, run: 3 });
    expect([next.code, networks()], next.out).toEqual([0, 1]);
  });
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
}

interface Job {
  readonly token?: string | undefined;
  /** The number of the workflow run. */
  readonly run?: number;
  /** Called while the step of vdcsync runs. */
  readonly during?: (child: ChildProcess) => Promise<void>;
}

async function branches(git: (...args: string[]) => Promise<string>): Promise<readonly string[]> {
  const refs = (await git('ls-remote', '--heads', 'origin')).trim().split('\n');
  return refs.map((line) => line.replace(/^.*refs\/heads\//, ''));
}

/** A repository with a spec, and the jobs that run the steps of the action in new clones, as GitHub does. */
async function repository(options: ServeOptions = {}) {
  const api = await emulate(options);
  const { bare, push, git } = await createRepository();
  await push({ 'vdcsync.yaml': oneNetwork });
  const clone = await git('rev-parse', '--show-toplevel');
  const tools = toolsOfJob({ gh: 'cp plan.md commented.md' });
  const job = async (
    mode: 'plan' | 'apply',
    { token = '', run: number = 1, during }: Job,
  ): Promise<Ended> => {
    const cwd = number === 1 ? clone : join(folderWith(), 'clone');
    if (number === 1) await git('clean', '--quiet', '-fdx');
    else await git('clone', '--quiet', '--depth=1', `file://${bare}`, cwd);
    const inputs: Record<string, string> = {
      ...Object.fromEntries(Object.entries(action.inputs).map(([name, each]) => [name, each.default ?? ''])),
      ...{ mode, token, package: 'vdcsync', base_url: api.baseUrl },
    };
    const value = (text: string) =>
      text
        .replace(/\$\{\{ inputs\.(\w+) \}\}/g, (_, name: string) => inputs[name] ?? '')
        .replace(/\$\{\{ github\.event\.pull_request\.number \}\}/g, '1');
    let failed: number | null | undefined;
    let all = '';
    for (const { run, env = {}, if: condition = '' } of action.runs.steps) {
      if (run === undefined || (condition.includes('inputs.mode') && !condition.includes(`'${mode}'`)))
        continue;
      if (failed !== undefined && !condition.includes('always()')) continue;
      const notified = existsSync(join(cwd, 'env')) ? parseEnv(readFileSync(join(cwd, 'env'), 'utf8')) : {};
      const own = Object.fromEntries(Object.entries(env).map(([name, text]) => [name, value(text)]));
      const child = spawn('bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c', run], {
        cwd,
        env: {
          ...programEnv(),
          ...{ PATH: `${tools}:${process.env.PATH}`, HOME: tools, GIT_CONFIG_GLOBAL: '/dev/null' },
          ...{ GITHUB_ENV: 'env', GITHUB_STEP_SUMMARY: 'summary.md', GITHUB_SHA: '0123' },
          ...{ GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'shop/infra' },
          ...{ GITHUB_RUN_ID: String(number), GITHUB_JOB: 'apply' },
          VDCSYNC_API_PROFILE: join(tools, 'profile.yaml'),
          ...notified,
          ...own,
        },
      });
      const closed = ended(child);
      if (run.includes('vdcsync apply')) await during?.(child);
      const { code, stdout, stderr } = await closed;
      all += stdout + stderr;
      if (code !== 0) failed ??= code;
    }
    return { code: failed === undefined ? 0 : failed, out: all };
  };
  const networks = () => live(api).networks.filter(({ name }) => name === 'backend').length;
  return { api, clone, git, job, networks };
}
