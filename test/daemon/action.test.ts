import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { folderWith, oneNetwork } from '../cli/run.ts';
import { builtCommand } from '../support/built.ts';
import { programEnv } from '../support/program-env.ts';
import { createRepository } from './git-server.ts';
import { emulate, live, speed } from './support.ts';

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
  test('fits the published schema, and every input that a step uses is declared', () => {
    const path = createRequire(import.meta.url).resolve('schemastore/package.json');
    const schema = readFileSync(path.replace('package.json', 'schemas/json/github-action.json'), 'utf8');
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const isValid = ajv.compile(JSON.parse(schema, (key, value) => (key === '$schema' ? undefined : value)));
    expect([isValid(action), isValid.errors]).toEqual([true, null]);
    const used = [...JSON.stringify(action.runs).matchAll(/inputs\.(\w+)/g)].map(([, name]) => name);
    expect(new Set(used)).toEqual(new Set(Object.keys(action.inputs)));
    // An input in a script would be run as a part of the script.
    for (const { run = '' } of action.runs.steps) expect(run).not.toContain('${{');
  });

  test('its steps plan, apply and keep the state, for real, twice', async () => {
    const api = await emulate();
    const { push, git } = await createRepository();
    await push({ 'vdcsync.yaml': oneNetwork });
    const clone = await git('rev-parse', '--show-toplevel');
    const tools = folderWith({
      vdcsync: `#!/bin/sh\nexec "${process.execPath}" "${builtCommand()}" "$@"\n`,
      npm: '#!/bin/sh\nexit 0\n',
      gh: '#!/bin/sh\ncp plan.md commented.md\n',
      'profile.yaml': `time_scale: ${speed}\n`,
    });
    for (const name of ['vdcsync', 'npm', 'gh']) chmodSync(join(tools, name), 0o755);
    const job = async (mode: 'plan' | 'apply', token = '') => {
      const inputs: Record<string, string> = {
        ...Object.fromEntries(
          Object.entries(action.inputs).map(([name, each]) => [name, each.default ?? '']),
        ),
        ...{ mode, token, package: 'vdcsync', base_url: api.baseUrl },
      };
      const value = (text: string) =>
        text
          .replace(/\$\{\{ inputs\.(\w+) \}\}/g, (_, name: string) => inputs[name] ?? '')
          .replace(/\$\{\{ github\.event\.pull_request\.number \}\}/g, '1');
      for (const { run, env = {}, if: condition = '' } of action.runs.steps) {
        if (run === undefined || (condition !== '' && !condition.includes(`'${mode}'`))) continue;
        const notified = existsSync(join(clone, 'env'))
          ? parseEnv(readFileSync(join(clone, 'env'), 'utf8'))
          : {};
        const own = Object.fromEntries(Object.entries(env).map(([name, text]) => [name, value(text)]));
        const child = spawn('bash', ['-e', '-c', run], {
          cwd: clone,
          env: {
            ...programEnv(),
            ...{ PATH: `${tools}:${process.env.PATH}`, HOME: tools, GIT_CONFIG_GLOBAL: '/dev/null' },
            ...{ GITHUB_ENV: 'env', GITHUB_STEP_SUMMARY: 'summary.md', GITHUB_SHA: '0123' },
            VDCSYNC_API_PROFILE: join(tools, 'profile.yaml'),
            ...notified,
            ...own,
          },
        });
        let out = '';
        for (const stream of [child.stdout, child.stderr])
          stream.on('data', (chunk: Buffer) => {
            out += chunk.toString();
          });
        const [code] = await once(child, 'close');
        expect(code, out).toBe(0);
      }
    };
    const { read, readWrite } = api.projects[0]?.tokens ?? {};
    const networks = () => live(api).networks.filter(({ name }) => name === 'backend').length;
    await job('plan', read);
    expect(readFileSync(join(clone, 'commented.md'), 'utf8')).toContain('+ backend');
    expect(networks()).toBe(0);
    await job('apply', readWrite);
    await git('clean', '--quiet', '-fdx');
    await job('apply', readWrite);
    expect(networks()).toBe(1);
    await git('remote', 'set-url', 'origin', join(clone, 'nowhere'));
    await git('clean', '--quiet', '-fdx');
    await expect(job('apply', readWrite), 'no state is not an unknown state').rejects.toThrow();
  }, 120_000);
});
