// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { describe, expect, test } from 'vitest';
import { serving } from '../support/serving.ts';
import { emulated, Workspace } from './workspace.ts';

const canary = 'canary-of-the-pipeline';
/** The variables that a pipeline has, and that belong to nobody who writes a spec. */
const secrets = {
  ...{ VDCSYNC_HTTP_TOKEN: canary, VDCSYNC_WEBHOOK_SECRET: canary, VDC_TOKEN: 'token-of-the-project' },
  ...{ PGPASSWORD: canary, CI_JOB_TOKEN: canary, GITHUB_TOKEN: canary, ACTIONS_RUNTIME_TOKEN: canary },
  ...{ TOKEN_OTHER: canary, NPM_TOKEN: canary },
};
const commands = [
  ...['validate', 'plan', 'apply --yes', 'destroy --yes', 'status', 'doctor', 'rehearse --trials 1'],
];

/** An API that only remembers the requests. */
async function listener() {
  const requests: string[] = [];
  const origin = await serving((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.writeHead(500).end();
  });
  return { requests, url: `${origin}/v1` };
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
    const env = { ...secrets, VDC_BASE_URL: api.url, LOG_LEVEL: 'error' };
    const place = new Workspace({ 'vdcsync.yaml': spec }, env);
    for (const command of commands) {
      const { code, stdout, stderr } = await place.run(command);
      if (command !== 'status') expect([command, code]).not.toEqual([command, 0]);
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
  ])('%s is never allowed as a value or as a token', async (name) => {
    const iso = `version: 1\nproject: { id: 4711 }\nisos: { a: { url: "https://e.example/?\${env:${name}}" } }\n`;
    await emulated(iso, {}, secrets).refused(64, `validate --allow-env ${name}`);
    const token = emulated(`version: 1\nproject: { id: 4711, token_env: ${name} }\n`, {}, secrets);
    await token.refused(1, `validate --token-env-prefix ${name.slice(0, 2)}`);
  });

  test('reads a value if the operator allows its variable', async () => {
    const spec =
      'version: 1\nproject: { id: 4711 }\nisos: { a: { url: "https://e.example/${env:MIRROR}" } }\n';
    const env = { MIRROR: 'x', TOKEN_MIRROR: 'y' };
    const place = emulated(spec, { 'token.yaml': spec.replace('MIRROR', 'TOKEN_MIRROR') }, env);
    await place.out('validate --allow-env MIRROR');
    await emulated(spec, {}, { ...env, VDCSYNC_ALLOW_ENV: 'A,MIRROR' }).out('validate');
    const refused = await place.refused(1, 'validate --allow-env OTHER');
    expect(refused).toContain('allow it with --allow-env MIRROR');
    const both = 'validate -f token.yaml --allow-env TOKEN_MIRROR --token-env-prefix TOKEN_';
    expect(await place.refused(1, both)).toContain('holds a token');
  });
});
