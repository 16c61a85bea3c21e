import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { builtCommand } from '../support/built.ts';
import { type Call, contentsOf, folderWith, inProcess, mainFile, oneNetwork, shop, vdcsync } from './run.ts';
import { emulated } from './workspace.ts';

/** What a wrong call is made with, besides its arguments. */
type Wrong = Omit<Call, 'cwd'> & { readonly files?: Readonly<Record<string, string>> };

describe('src/cli/program.ts: wrong usage', () => {
  const spec = { files: { 'vdcsync.yaml': oneNetwork } };
  // test/golden/mistakes.txt and scripts.txt have further ones.
  test.each<[string, readonly string[], RegExp, Wrong?]>([
    ['flags without a command', ['-f', 'vdcsync.yaml', '--emulator'], /no command is given.*plan -f/],
    ['--yes without a command', ['--yes'], /no command is given.*plan --yes/],
    ['an unknown flag without a command', ['--frobnicate'], /unknown option '--frobnicate'/],
    ['an unknown command after help', ['help', 'foo'], /^vdcsync: unknown command 'foo'/],
    ['an unknown command with --help', ['foo', '--help'], /unknown command 'foo'/],
    ['an unknown format', ['plan', '--format', 'xml'], /text, json, markdown/],
    ['apply with the format markdown', ['apply', '--format', 'markdown'], /text, json/],
    ['an argument too many', ['plan', 'extra'], /too many arguments/],
    ['a file without -f', ['plan', 'vdcsync.yaml'], /Name the spec with -f/],
    ['a flag without its value', ['plan', '--state'], /argument missing/],
    ['no spec', ['plan', '--emulator'], /-f FILE/],
    ['one file twice', ['validate', '-f', 'a.yaml', '-f', 'a.yaml'], /given twice/],
    ['no key', ['adopt'], /missing required argument 'key'/],
    ['an invalid key', ['adopt', 'web-1', '17'], /is not a key: examples of keys/],
    ['a misspelled key', ['adopt', 'server.web-1', '17'], /is not a key; did you mean servers\.web-1\?/],
    ['history of a misspelled key', ['history', 'network.a'], /did you mean networks\.a\?/],
    ['an invalid id', ['adopt', 'servers.web-1', '../17'], /is not an id/],
    ['resolve without a decision', ['resolve', 'servers.web-1'], /exactly one of/],
    ['resolve with two decisions', ['resolve', 'servers.web-1', '--absent', '--abandon'], /exactly one of/],
    ['a limit of zero', ['history', '--limit', '0'], /whole number from 1/],
    ['history of an invalid key', ['history', 'web'], /is not a key/],
    ['a port out of range', ['emulator', '--port', '70000'], /whole number from 0 to 65535/],
    ['a port that is not a number', ['emulator', '--port', 'http'], /whole number/],
    ['a speed of zero', ['emulator', '--speed', '0'], /number over 0/],
    ['a speed that is not a number', ['emulator', '--speed', 'fast'], /number over 0/],
    ['a token as a flag', ['plan', '--token', 'x'], /unknown option '--token'/],
    ['apply without a terminal and without --yes', ['apply', '--emulator'], /no terminal.*--yes/, spec],
    ['destroy without a terminal and without --yes', ['destroy', '--emulator'], /no terminal.*--yes/, spec],
    [
      'a spec on standard input without --yes',
      ['apply', '--emulator', '-f', '-'],
      /standard input is the spec.*--yes/,
      { input: oneNetwork, terminal: true },
    ],
    [
      'an unknown LOG_LEVEL',
      ['plan', '--emulator'],
      /silent, fatal, error, warn, info, debug, trace/,
      { ...spec, env: { LOG_LEVEL: 'loud' } },
    ],
  ])('exits with 64: %s', async (_name, args, message, { files, ...call } = {}) => {
    const { code, stdout, stderr } = await inProcess(args, { cwd: folderWith(files), ...call });
    expect(stderr).toMatch(message);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  });

  test('without a command, prints the help and changes nothing', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const before = contentsOf(cwd);
    const [bare, help] = await Promise.all([[], ['--help']].map((args) => vdcsync(args, { cwd })));
    expect(bare).toEqual({ code: 0, stderr: '', stdout: help?.stdout });
    expect(bare?.stdout).toContain('Plan and apply:');
    expect(contentsOf(cwd)).toEqual(before);
  });

  test('--dry-run without a command is plan, and writes nothing', async () => {
    const place = emulated(oneNetwork);
    const before = contentsOf(place.cwd);
    const [dry, plan] = await Promise.all([place.json('--dry-run'), place.json('plan')]);
    expect({ ...dry, observed_at: null }).toEqual({ ...plan, observed_at: null });
    expect(contentsOf(place.cwd)).toEqual(before);
  });

  test('every command accepts the common flags, also flags without effect', async () => {
    const place = emulated(oneNetwork, { 'p.yaml': 'time_scale: 2\n' });
    for (const words of [
      'validate',
      'history',
      'export',
      'schema',
      'completion bash',
      'init --out new.yaml',
      'rehearse --trials 1',
    ])
      await place.out(`${words} -f vdcsync.yaml --state x/s.db --api-profile p.yaml`);
  });

  test.each(['export', 'history'])('%s refuses the spec of another project', async (command) => {
    const more = { 'other.yaml': oneNetwork.replace('4711', '4712'), 'broken.yaml': 'version: 1\n' };
    const place = emulated(oneNetwork, more);
    await place.out('apply --yes');
    await place.out(`${command} -f vdcsync.yaml`);
    expect(await place.run(`${command} -f other.yaml`)).toMatchObject({
      ...{ code: 1, stdout: '', stderr: expect.stringContaining('4712') },
    });
    expect(await place.refused(1, `${command} -f broken.yaml`)).toContain('broken.yaml:1:1: ');
  });

  test('a suggested command has the flags of the call in text, and no flags in JSON', async () => {
    const more = `${oneNetwork}  b: { cidr: 10.21.0.0/24 }\n  c: { cidr: 10.22.0.0/24 }\n`;
    const place = emulated(undefined, { 'my spec.yaml': more });
    const common = ['--state', 'x/s.db', '-f', 'my spec.yaml'];
    await place.out('apply --yes', ...common);
    const flags = "--emulator -f 'my spec.yaml' --state ";
    expect(await place.out('destroy --dry-run', ...common)).toMatch(
      new RegExp(`vdcsync destroy ${flags}.*x/s\\.db --max-deletions 3`),
    );
    const alone = 'vdcsync destroy --max-deletions 3';
    expect(await place.out('destroy --dry-run --format json', ...common)).toContain(alone);
    await place.out('plan --format markdown', ...common);
    const { stderr } = await place.run('forget servers.zzz-unlike-any', ...common);
    expect(stderr).toContain(`vdcsync status ${flags}`);
  });

  test('validates a folder file by file, as the daemon does', async () => {
    const place = emulated(undefined, {
      'fleet/a.yaml': oneNetwork,
      'fleet/b.yml': oneNetwork.replace('4711', '4712'),
      'fleet/notes.txt': 'no spec',
    });
    const [a, b] = ['a.yaml is valid: project 4711', 'b.yml is valid: project 4712'].map(
      (text) => `fleet/${text}, 1 resource.\n`,
    );
    expect(await place.run('validate -f fleet')).toEqual({ code: 0, stderr: '', stdout: `${a}${b}` });
    place.write('fleet/c.yaml', 'version: 1\nproject: {id: 1}\nserver: {}\n');
    expect(await place.refused(1, 'validate -f fleet')).toMatch(/^fleet\/c\.yaml:3:1: .*\n$/);
    const { stdout } = await place.run('validate -f fleet --format json');
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ valid: false, project_id: null, resources: 2, errors: { length: 1 } },
    });
    place.write('fleet/c.yaml', oneNetwork);
    const twice = await place.run('validate -f fleet');
    expect([twice.code, twice.stdout]).toEqual([1, b]);
    expect(twice.stderr).toContain(
      'these files are for the same project 4711, so vdcsync uses none of them: fleet/a.yaml, fleet/c.yaml',
    );
    await place.refused(64, 'validate -f fleet -f fleet/a.yaml');
    expect(await place.refused(64, 'plan -f fleet')).toMatch(
      /^vdcsync: fleet is a folder, which only run and validate accept/,
    );
  });

  test('--version prints to standard output and exits with 0', async () => {
    expect(await emulated().out('--version')).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('reports an outdated Node.js in one line', () => {
    const old = 'Object.defineProperty(process, "versions", { value: { node: "20.19.0" } })';
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(old)}`, mainFile, 'plan'],
      { encoding: 'utf8' },
    );
    expect(stderr).toMatch(/^vdcsync needs Node\.js 24 or newer, and this is v[\d.]+\n$/);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(JSON.parse(readFileSync('package.json', 'utf8')).engines.node).toBe('>=24');
  });
});

describe('src/cli/program.ts: commands without API', () => {
  test.each([
    'bash',
    'zsh',
    'fish',
    'powershell',
  ])('the completion script for %s calls the program', async (shell) => {
    const { code, stdout } = await vdcsync(['completion', shell], { cwd: folderWith() });
    expect(stdout).toMatch(/\bcomplete (?:-- |'--')/);
    expect(code).toBe(0);
  });

  test.each([
    [['plan', '--format', ''], ['text', 'json', 'markdown', 'svg'], 4],
    [['export', '--format', ''], ['yaml', 'json'], 4],
    [['completion', ''], ['bash', 'zsh', 'fish', 'powershell'], 4],
    [['va'], ['validate'], 4],
    [['adopt', 'net'], ['networks.backend'], 4],
    [['adopt', '-f', 'other.yaml', ''], ['ips.other'], 4],
    [['forget', '--state', 'none.db', ''], ['networks.backend'], 4],
    [['history', 'n'], ['networks.backend'], 4],
    // The shell completes names of files.
    [['plan', '-f', ''], [], 0],
    [['plan', '--out', 'a'], [], 0],
    [['adopt', '-f', 'broken.yaml', ''], [], 4],
  ])('completes %j', async (typed, expected, directive) => {
    const cwd = folderWith({
      'vdcsync.yaml': oneNetwork,
      'other.yaml': oneNetwork.replace(/networks:[\s\S]*/, 'ips: { other: {} }'),
      'broken.yaml': 'version: [',
    });
    const { stdout, stderr } = await vdcsync(['complete', '--', ...typed], { cwd });
    const lines = stdout.trimEnd().split('\n');
    expect({
      stderr,
      words: lines.slice(0, -1).map((line) => line.split('\t')[0]),
      end: lines.at(-1),
    }).toEqual({ stderr: '', words: expected, end: `:${directive}` });
  });

  test('completes the ids of the state, with their keys', async () => {
    const place = emulated(oneNetwork);
    const { cwd } = place;
    await place.out('apply --yes');
    const [{ id }] = (await place.json('status --offline')).resources;
    for (const typed of [
      ['ignore', '--emulator', ''],
      ['resolve', '--emulator', 'networks.backend', '--adopt', ''],
    ]) {
      const { stdout } = await vdcsync(['complete', '--', ...typed], { cwd });
      expect(stdout).toBe(`${id}\tnetworks.backend\n:4\n`);
    }
    const { stdout } = await vdcsync(['complete', '--', 'forget', '--emulator', ''], { cwd });
    expect(stdout).toBe(`networks.backend\tid ${id}\n:4\n`);
  });

  test('bash completes keys of the spec', async () => {
    const shim = `#!/bin/sh\nexec ${process.execPath} ${builtCommand()} "$@"\n`;
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork, vdcsync: shim });
    chmodSync(join(cwd, 'vdcsync'), 0o755);
    const { stdout } = await vdcsync(['completion', 'bash'], { cwd });
    const script = `${stdout}\nCOMP_WORDS=(vdcsync adopt net); COMP_CWORD=2; __vdcsync_complete; printf '%s\\n' "\${COMPREPLY[@]}"; complete -p vdcsync`;
    const env = { ...process.env, PATH: `${cwd}:${process.env.PATH ?? ''}` };
    const output = execFileSync('bash', ['-c', script], { encoding: 'utf8', cwd, env, stdio: 'pipe' });
    expect(output.trim().split('\n')).toEqual([
      'networks.backend',
      'complete -o default -F __vdcsync_complete vdcsync',
    ]);
  });

  const doubtful = `${oneNetwork}servers:
  web: { id: 2001, firewall: { policy_in: dorp } }
`;

  test('validate: a probable mistake is a warning, in text and JSON', async () => {
    const place = emulated(doubtful);
    const message = '`dorp` is an unusual `policy_in`; did you mean `drop`?';
    const told = await place.run('validate');
    expect(told).toMatchObject({ code: 0, stderr: `vdcsync.yaml:6:43: warning: ${message}\n` });
    const warnings = [{ file: 'vdcsync.yaml', line: 6, column: 43, message }];
    expect(await place.json('validate')).toMatchObject({ valid: true, errors: [], warnings });
  });

  test('validate: reports a probable mistake in one entry and an error in another', async () => {
    const told = await emulated(`${doubtful}  other: { id: 2002, max: 3 }\n`).refused(1, 'validate');
    expect(told).toMatch(/^vdcsync\.yaml:6:43: warning: `dorp`.*\nvdcsync\.yaml:7:22: unknown field `max`/);
  });

  test('plan: a probable mistake is a warning, and the value is sent unchanged', async () => {
    const place = emulated(shop.replace('policy_in: drop', 'policy_in: dorp'));
    const { warnings, operations } = await place.json('plan');
    expect(warnings).toMatchObject([
      { code: 'value_doubtful', message: expect.stringMatching(/^vdcsync\.yaml:\d+:\d+: `dorp`/) },
    ]);
    expect(JSON.stringify(operations)).toContain('"to":"dorp"');
  });

  test.each([
    ['does not exist', 1, 'gone.yaml', /^gone\.yaml:1:1: .*the file does not exist/],
    ['is an empty folder', 64, 'folder', /^vdcsync: the folder folder holds no spec/],
    ['is not text', 1, 'bytes.yaml', /^bytes\.yaml:1:1: .*UTF-8/],
    ['is empty', 1, 'empty.yaml', /^empty\.yaml:1:1: /],
  ])('validate: reports a file that %s', async (_name, code, file, message) => {
    const place = emulated(undefined, { 'folder/x': '', 'empty.yaml': '' });
    writeFileSync(`${place.cwd}/bytes.yaml`, Buffer.from([0x76, 0xff, 0xfe]));
    expect(await place.refused(code, `validate -f ${file}`)).toMatch(message);
  });

  test('two files form one spec', async () => {
    const place = emulated(undefined, { 'a.yaml': oneNetwork, 'b.yaml': 'version: 1\nips:\n  web: {}\n' });
    expect(await place.out('validate -f a.yaml -f b.yaml')).toContain('2 resources');
  });
});
