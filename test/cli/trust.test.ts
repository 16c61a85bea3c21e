// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { folderWith, inProcess } from './run.ts';

const canary = 'canary-of-the-pipeline';
/** The variables that a pipeline has, and that belong to nobody who writes a spec. */
const secrets = {
  ...{ VDCSYNC_HTTP_TOKEN: canary, VDCSYNC_WEBHOOK_SECRET: canary, VDC_TOKEN: 'token-of-the-project' },
  ...{ PGPASSWORD: canary, CI_JOB_TOKEN: canary, GITHUB_TOKEN: canary, ACTIONS_RUNTIME_TOKEN: canary },
  ...{ TOKEN_OTHER: canary, NPM_TOKEN: canary },
};
const commands = [
  ['validate'],
  ['plan'],
  ['apply', '--yes'],
  ['destroy', '--yes'],
  ['status'],
  ['doctor'],
  ['rehearse', '--trials', '1'],
];

/** An API that only remembers the requests. */
async function listener() {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.writeHead(500).end();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

describe('src/cli/settings/spec-source.ts', () => {
  test.each(
    Object.keys(secrets)
      .filter((name) => name !== 'VDC_TOKEN')
      .flatMap((name) => [
        [name, `version: 1\nproject: { id: 4711, token_env: ${name} }\n`],
        [
          name,
          `version: 1\nproject: { id: 4711 }\nisos: { a: { url: "https://e.example/?\${env:${name}}" } }\n`,
        ],
      ]),
  )('no command sends %s anywhere', async (_name, spec) => {
    const api = await listener();
    const cwd = folderWith({ 'vdcsync.yaml': spec });
    const env = { ...secrets, VDC_BASE_URL: api.url, LOG_LEVEL: 'error' };
    for (const command of commands) {
      const { code, stdout, stderr } = await inProcess(command, { cwd, env });
      if (command[0] !== 'status') expect([command[0], code]).not.toEqual([command[0], 0]);
      expect(api.requests.filter((each) => each.includes(canary))).toEqual([]);
      expect(`${stdout}${stderr}`).not.toContain(canary);
    }
  });

  test.each([
    'VDC_TOKEN',
    'VDCSYNC_STATE',
    'PGPASSWORD',
    'CI_JOB_TOKEN',
    'GITHUB_TOKEN',
  ])('%s cannot be allowed, neither as a value nor as a token', async (name) => {
    const spec = `version: 1\nproject: { id: 4711 }\nisos: { a: { url: "https://e.example/?\${env:${name}}" } }\n`;
    const cwd = folderWith({ 'vdcsync.yaml': spec });
    expect((await inProcess(['validate', '--allow-env', name], { cwd, env: secrets })).code).toBe(64);
    const named = folderWith({ 'vdcsync.yaml': `version: 1\nproject: { id: 4711, token_env: ${name} }\n` });
    const prefix = ['--token-env-prefix', name.slice(0, 2)];
    expect((await inProcess(['validate', ...prefix], { cwd: named, env: secrets })).code).toBe(1);
  });

  test('a value is read if the operator allows its variable', async () => {
    const spec =
      'version: 1\nproject: { id: 4711 }\nisos: { a: { url: "https://e.example/${env:MIRROR}" } }\n';
    const cwd = folderWith({ 'vdcsync.yaml': spec });
    const env = { MIRROR: 'x', TOKEN_MIRROR: 'y' };
    expect((await inProcess(['validate', '--allow-env', 'MIRROR'], { cwd, env })).code).toBe(0);
    expect(
      (await inProcess(['validate'], { cwd, env: { ...env, VDCSYNC_ALLOW_ENV: 'A,MIRROR' } })).code,
    ).toBe(0);
    const { stderr } = await inProcess(['validate', '--allow-env', 'OTHER'], { cwd, env });
    expect(stderr).toContain('allow it with --allow-env MIRROR');
    const token = folderWith({ 'vdcsync.yaml': spec.replace('MIRROR', 'TOKEN_MIRROR') });
    const both = ['validate', '--allow-env', 'TOKEN_MIRROR', '--token-env-prefix', 'TOKEN_'];
    expect((await inProcess(both, { cwd: token, env })).stderr).toContain('holds a token');
  });
});
