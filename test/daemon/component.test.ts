import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import type { ServeOptions } from '../../src/emulator/http-server.ts';
import { ended, folderWith, oneNetwork } from '../cli/run.ts';
import { builtCommand } from '../support/built.ts';
import { fakeGitlab, jobToken, noteToken } from '../support/fake-gitlab.ts';
import { programEnv } from '../support/program-env.ts';
import { createRepository } from './git-server.ts';
import { emulate, live, program, toolsOfJob } from './support.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const template = readFileSync(join(root, 'templates/vdcsync.yml'), 'utf8');
const example = readFileSync(join(root, 'examples/gitlab-ci/.gitlab-ci.yml'), 'utf8');
const [header, jobs] = parseAllDocuments(template).map((each) => each.toJS());
const { resolve } = createRequire(import.meta.url);

interface Input {
  readonly description: string;
  readonly default?: string;
  readonly options?: readonly string[];
  readonly regex?: string;
}
const inputs = (header as { spec: { inputs: Record<string, Input> } }).spec.inputs;

describe('templates/vdcsync.yml', () => {
  test('the inputs have the keys that GitLab reads, and valid defaults', () => {
    expect(Object.keys(header as object)).toEqual(['spec']);
    const isKey = (key: string) => ['description', 'default', 'options', 'regex', 'type'].includes(key);
    for (const [name, input] of Object.entries(inputs)) {
      const { description, default: value = '', options = [value], regex = '' } = input;
      expect([name, Object.keys(input).every(isKey), description.length > 0]).toEqual([name, true, true]);
      expect([name, options.includes(value), new RegExp(regex).test(value)]).toEqual([name, true, true]);
    }
  });

  test('uses exactly the inputs that it declares, and a pipeline needs at most ten lines', () => {
    const used = [...template.matchAll(/\$\[\[ inputs\.(\w+) \]\]/g)].map(([, name]) => name);
    expect(new Set(used)).toEqual(new Set(Object.keys(inputs)));
    const [include] = (parse(example) as { include: { inputs: object }[] }).include;
    const required = Object.keys(inputs).filter((name) => inputs[name]?.default === undefined);
    expect(Object.keys(include?.inputs ?? {})).toEqual(required);
    expect(example.trim().split('\n').length).toBeLessThanOrEqual(10);
  });
});

/** Runs pipelines in a clone, with the jobs and rules that gitlab-ci-local reads from the example. */
async function pipelines(options: ServeOptions = {}) {
  const [api, gitlab] = [await emulate(options), await fakeGitlab()];
  const tools = toolsOfJob({
    vdcsync: `echo $PPID $$ > "$HOME/processes"\nexec "${process.execPath}" "${builtCommand()}" "$@"`,
    node: `exec "${process.execPath}" "$@"`,
    // For jobs in containers gitlab-ci-local copies the clone. These jobs run in the clone.
    rsync: 'exit 0',
  });
  const { bare, push, git } = await createRepository();
  const clone = await git('rev-parse', '--show-toplevel');
  const [{ inputs: given }] = (parse(example) as { include: [{ inputs: object }] }).include;
  const include = { local: 'templates/vdcsync.yml', inputs: { ...given, base_url: api.baseUrl } };
  const files = { 'templates/vdcsync.yml': template, '.gitlab-ci.yml': stringify({ include: [include] }) };
  await push({ ...files, '.gitignore': '.gitlab-ci-local\n', 'vdcsync.yaml': oneNetwork });
  await git('remote', 'set-head', 'origin', 'main');
  // gitlab-ci-local reads the address of the forge from the remote.
  await git('remote', 'set-url', '--push', 'origin', bare);
  await git('remote', 'set-url', 'origin', 'git@gitlab.example.com:group/infra.git');
  const { read = '', readWrite = '' } = api.projects[0]?.tokens ?? {};
  const pipeline = async (variables: Readonly<Record<string, string>>, args: readonly string[] = []) => {
    await git('clean', '--quiet', '-fdx');
    const all = {
      ...{ CI_API_V4_URL: gitlab.url, CI_PROJECT_ID: '7', CI_JOB_TOKEN: jobToken },
      ...{ VDC_TOKEN_READ: read, VDC_TOKEN: readWrite, VDCSYNC_NOTE_TOKEN: noteToken },
      ...{ VDCSYNC_API_PROFILE: join(tools, 'profile.yaml'), ...variables },
    };
    const flags = [
      ...['--force-shell-executor', '--no-evaluate-rule-changes'],
      ...['--ignore-predefined-vars', Object.keys(all).join()],
      ...Object.entries(all).flatMap(([name, value]) => ['--variable', `${name}=${value}`]),
    ];
    const child = spawn(process.execPath, [resolve('gitlab-ci-local'), ...flags, ...args], {
      cwd: clone,
      env: { ...programEnv(), PATH: `${tools}:${process.env.PATH}`, HOME: tools },
    });
    const { code, stdout, stderr } = await ended(child);
    return { code, out: stdout + stderr };
  };
  const mergeRequest = {
    ...{ CI_PIPELINE_SOURCE: 'merge_request_event', CI_COMMIT_BRANCH: '' },
    ...{ CI_MERGE_REQUEST_PROJECT_ID: '7', CI_MERGE_REQUEST_IID: '3' },
  };
  const networks = () =>
    live(api)
      .networks.map(({ name }) => name)
      .filter((name) => name !== 'default');
  /** Kills the processes of the script, as a runner does when a job is cancelled. Only after_script follows. */
  const cancel = () => {
    for (const id of readFileSync(join(tools, 'processes'), 'utf8').trim().split(' '))
      process.kill(Number(id), 'SIGKILL');
  };
  const sent = () => api.emulator.requests.filter(({ method }) => method === 'POST').length;
  return { gitlab, clone, push, pipeline, mergeRequest, networks, cancel, sent };
}

describe('templates/vdcsync.yml: real pipelines', () => {
  test('a merge request has one note, which is updated with each plan', async () => {
    const { gitlab, pipeline, mergeRequest, networks } = await pipelines();
    const mark = '<!-- vdcsync -->';
    gitlab.notes.push({ id: 1, author: { id: 1 }, body: `${mark} another author, the same beginning` });
    const first = await pipeline(mergeRequest);
    expect(first.code, first.out).toBe(0);
    expect(gitlab.notes.map((each) => each.author.id)).toEqual([1, 42]);
    expect(gitlab.notes[1]?.body).toContain('+ backend');
    const second = await pipeline({ ...mergeRequest, VDCSYNC_FILE: 'vdcsync.yaml' });
    expect(second.code, second.out).toBe(0);
    expect(gitlab.notes).toHaveLength(2);
    expect(gitlab.notes[0]?.body).toContain('another author');
    expect(networks()).toEqual([]);
    const fork = await pipeline({ ...mergeRequest, CI_PROJECT_ID: '8' });
    expect(fork.out).not.toContain('vdcsync-plan');
  });

  test('apply waits for approval, carries out the plan, and keeps the state for the next pipeline', async () => {
    const { gitlab, clone, push, pipeline, networks } = await pipelines();
    const planned = await pipeline({});
    expect([planned.code, networks()], planned.out).toEqual([0, []]);
    expect(existsSync(join(clone, 'plan.json'))).toBe(true);
    const approved = ['--manual', 'vdcsync-apply'];
    const applied = await pipeline({}, approved);
    expect([applied.code, networks()], applied.out).toEqual([0, ['backend']]);
    const again = await pipeline({}, approved);
    expect([again.code, networks()], again.out).toEqual([0, ['backend']]);

    // A failed apply keeps its state too.
    const before = gitlab.state();
    await push({ 'vdcsync.yaml': `${oneNetwork}  extra: { cidr: 10.30.0.0/24 }\n` });
    const failed = await pipeline({ VDC_TOKEN: 'revoked' }, approved);
    expect([failed.code, networks()], failed.out).toEqual([1, ['backend']]);
    expect(gitlab.state()?.equals(before ?? Buffer.of())).toBe(false);

    gitlab.answer(503);
    const unknown = await pipeline({}, approved);
    expect(unknown.out).toContain('the state cannot be fetched: 503');
    expect([unknown.code, networks()]).toEqual([1, ['backend']]);
  });

  test('a cancelled apply keeps its state, and the next pipeline continues the apply', async () => {
    const { gitlab, pipeline, networks, cancel, sent } = await pipelines({
      durations: { create_network: [400_000, 400_000] },
    });
    const approved = ['--manual', 'vdcsync-apply'];
    const applying = pipeline({}, approved);
    await expect.poll(() => sent()).toBeTruthy();
    expect(gitlab.state()).toBeUndefined();
    cancel();
    const cancelled = await applying;
    expect(cancelled.code, cancelled.out).not.toBe(0);
    expect([gitlab.state() === undefined, networks()], cancelled.out).toEqual([false, []]);
    const next = await pipeline({}, approved);
    // A plan that was made while the write was in flight no longer fits once the write has ended.
    const stale = next.code === 1 && next.out.includes('The saved plan no longer fits');
    const last = stale ? await pipeline({}, approved) : next;
    expect([last.code, networks()], next.out + last.out).toEqual([0, ['backend']]);
  });

  test('after a cancellation, apply ends before the job keeps the state', async () => {
    const folder = folderWith();
    mkdirSync(join(folder, '.vdcsync'));
    const apply = spawn('sleep', ['60']);
    const exited = once(apply, 'exit');
    writeFileSync(join(folder, '.vdcsync/pid'), String(apply.pid));
    const [first = ''] = (jobs['$[[ inputs.name ]]-apply'] as { after_script: string[] }).after_script;
    await program('bash', ['-e', '-c', first], folder);
    expect(await exited).toEqual([null, 'SIGTERM']);
  });
});
