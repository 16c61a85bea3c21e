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

describe('src/daemon: calls that cannot be meant', () => {
  const misuse: readonly Refused[] = [
    ['no address', ['--listen', 'foo'], /--listen "foo"/],
    [
      'no duration',
      ['--interval', '5 minutes'],
      /--interval must be a duration of at least 1 s, such as 5m, not "5 minutes"/,
    ],
    [
      'a duration of nothing',
      ['--interval', '0s'],
      /--interval must be a duration of at least 1 s, such as 5m, not "0s"/,
    ],
    ['a history too short', ['--keep-history', '6d'], /keep at least 7d/],
    ['standard input', ['-f', '-'], /cannot be standard input/],
    ['two sources', ['-f', 'vdcsync.yaml', '--git-url', 'https://git.test/x'], /cannot be used together/],
    [
      'a path out of the repository',
      ['--git-url', 'https://git.example.com/x', '--git-path', '../x'],
      /not a path inside/,
    ],
    ['a secret twice', [], /both set/, { VDCSYNC_HTTP_TOKEN: 'a', VDCSYNC_HTTP_TOKEN_FILE: 'b' }],
    ['a mode of its own', ['--mode', 'magic'], /observe/],
  ];
  test.each<Refused>(misuse)('%s', (_, args, why, more) => expectRefused(64, args, why, more));

  const unusable: readonly Refused[] = [
    ['Git over plain http', ['--git-url', 'http://git.example.com/x'], /neither https nor ssh/],
    ['Git from a folder', ['--git-url', 'file:///srv/x.git'], /for a trial .*: --git-allow-insecure/],
    ['credentials in it', ['--git-url', 'https://me:canary@git.example.com/x'], /holds credentials/],
    ['none at all', ['--git-url', 'somewhere'], /the Git URL cannot be read/],
    [
      'notices in the clear',
      [],
      /VDCSYNC_SLACK_URL must be an https/,
      { VDCSYNC_SLACK_URL: 'http://hooks.example.com/canary' },
    ],
  ];
  test.each<Refused>(unusable)('a URL that cannot be used is no slip in the call: %s', (_, args, why, more) =>
    expectRefused(1, args, why, more));

  test('a damaged state ends it with an error, and is left as it was', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    writeFileSync(join(cwd, 'state.db'), 'something else');
    const before = contentsOf(cwd)['state.db'];
    const { code, stderr } = await vdcsync([...base, '--state', 'state.db'], { cwd, env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('it was left unchanged')]);
    expect(contentsOf(cwd)['state.db']).toBe(before);
  });
});

describe('src/cli/settings/secret.ts: secrets that others are checked by', () => {
  const long = 'a-webhook-secret-of-40-characters';
  test.each([
    ['an empty token', 'VDCSYNC_HTTP_TOKEN', '', /VDCSYNC_HTTP_TOKEN is set but empty/],
    ['a token of spaces', 'VDCSYNC_HTTP_TOKEN', '  ', /VDCSYNC_HTTP_TOKEN is set but empty/],
    ['an empty name of its file', 'VDCSYNC_HTTP_TOKEN_FILE', '', /VDCSYNC_HTTP_TOKEN_FILE is set but empty/],
    ['an empty webhook secret', 'VDCSYNC_WEBHOOK_SECRET', '', /VDCSYNC_WEBHOOK_SECRET is set but empty/],
    ['a short webhook secret', 'VDCSYNC_WEBHOOK_SECRET', 'canary', /less than 16 characters/],
    ['a short one beside a long one', 'VDCSYNC_WEBHOOK_SECRET', `${long},canary`, /less than 16 characters/],
  ])('%s is refused at start', (_, name, value, why) => expectRefused(1, [], why, { [name]: value }));
});
