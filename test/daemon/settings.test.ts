import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { contentsOf, folderWith, inProcess, oneNetwork, vdcsync } from '../cli/run.ts';

const env = { VDCSYNC_ALLOW_EPHEMERAL_STATE: '1' };
const base = ['run', '--emulator', '--listen', 'off'];

type Refused = [what: string, args: readonly string[], why: RegExp, env?: Record<string, string>];

async function expectRefused(
  code: number,
  args: readonly string[],
  why: RegExp,
  more: Record<string, string> = {},
) {
  const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
  const ended = await inProcess([...base, ...args], { cwd, env: { ...env, ...more } });
  expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(why)]);
  expect(ended.stderr).not.toContain('canary');
}

describe('src/daemon: invalid settings', () => {
  const misuse: readonly Refused[] = [
    ['an invalid listen address', ['--listen', 'foo'], /--listen "foo"/],
    [
      'an invalid duration',
      ['--interval', '5 minutes'],
      /--interval must be a duration of at least 1 s, such as 5m, not "5 minutes"/,
    ],
    [
      'a duration of zero',
      ['--interval', '0s'],
      /--interval must be a duration of at least 1 s, such as 5m, not "0s"/,
    ],
    ['a too short history', ['--keep-history', '6d'], /keep at least 7d/],
    ['standard input', ['-f', '-'], /cannot be standard input/],
    ['two sources', ['-f', 'vdcsync.yaml', '--git-url', 'https://git.test/x'], /cannot be used together/],
    [
      'a path outside the repository',
      ['--git-url', 'https://git.example.com/x', '--git-path', '../x'],
      /not a path inside/,
    ],
    [
      'a secret in a variable and a file',
      [],
      /both set/,
      { VDCSYNC_HTTP_TOKEN: 'a', VDCSYNC_HTTP_TOKEN_FILE: 'b' },
    ],
    ['an unknown mode', ['--mode', 'magic'], /observe/],
  ];
  test.each<Refused>(misuse)('exits with 64: %s', (_, args, why, more) => expectRefused(64, args, why, more));

  const unusable: readonly Refused[] = [
    ['Git over plain http', ['--git-url', 'http://git.example.com/x'], /neither https nor ssh/],
    ['Git from a folder', ['--git-url', 'file:///srv/x.git'], /for a trial .*: --git-allow-insecure/],
    ['credentials in the Git URL', ['--git-url', 'https://me:canary@git.example.com/x'], /holds credentials/],
    ['an invalid Git URL', ['--git-url', 'somewhere'], /the Git URL cannot be read/],
    [
      'a Slack URL without https',
      [],
      /VDCSYNC_SLACK_URL must be an https/,
      { VDCSYNC_SLACK_URL: 'http://hooks.example.com/canary' },
    ],
  ];
  test.each<Refused>(unusable)('exits with 1 for an unusable URL: %s', (_, args, why, more) =>
    expectRefused(1, args, why, more));

  test('a damaged state ends the daemon with an error, and stays unchanged', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    writeFileSync(join(cwd, 'state.db'), 'something else');
    const before = contentsOf(cwd)['state.db'];
    const { code, stderr } = await vdcsync([...base, '--state', 'state.db'], { cwd, env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('it was left unchanged')]);
    expect(contentsOf(cwd)['state.db']).toBe(before);
  });
});

describe('src/cli/settings/secret.ts: secrets that authenticate requests', () => {
  const long = 'a-webhook-secret-of-40-characters';
  test.each([
    ['an empty token', 'VDCSYNC_HTTP_TOKEN', '', /VDCSYNC_HTTP_TOKEN is set but empty/],
    ['a token of spaces', 'VDCSYNC_HTTP_TOKEN', '  ', /VDCSYNC_HTTP_TOKEN is set but empty/],
    [
      'an empty name of the token file',
      'VDCSYNC_HTTP_TOKEN_FILE',
      '',
      /VDCSYNC_HTTP_TOKEN_FILE is set but empty/,
    ],
    ['an empty webhook secret', 'VDCSYNC_WEBHOOK_SECRET', '', /VDCSYNC_WEBHOOK_SECRET is set but empty/],
    ['a short webhook secret', 'VDCSYNC_WEBHOOK_SECRET', 'canary', /less than 16 characters/],
    [
      'a short webhook secret beside a long webhook secret',
      'VDCSYNC_WEBHOOK_SECRET',
      `${long},canary`,
      /less than 16 characters/,
    ],
  ])('refuses %s at start', (_, name, value, why) => expectRefused(1, [], why, { [name]: value }));
});
