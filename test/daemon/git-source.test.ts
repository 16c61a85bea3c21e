import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type GitSourceOptions, gitSource } from '../../src/daemon/sources/git-source.ts';
import { parseGitUrl } from '../../src/daemon/sources/git-url.ts';
import { systemClock, systemRandom } from '../../src/platform/system.ts';
import { folderWith, oneNetwork } from '../cli/run.ts';
import { lacks } from '../support/programs.ts';
import { quiet } from '../support/project.ts';
import { createRepository, type Repository, serveFiles, serveGit, serveRefusal } from './git-server.ts';
import { program } from './support.ts';

const token = 'git-token-canary';
const { signal } = new AbortController();

function source(
  url: string,
  {
    access,
    ...options
  }: Partial<Omit<GitSourceOptions, 'access'>> & { access?: Partial<GitSourceOptions['access']> } = {},
  token?: string,
) {
  return gitSource({
    access: {
      url: parseGitUrl(url, true),
      token: token === undefined ? undefined : () => token,
      user: 'x-access-token',
      sshKeyFile: undefined,
      sshKnownHostsFile: undefined,
      allowedSignersFile: undefined,
      environment: process.env,
      ...access,
    },
    ref: 'main',
    files: [{ path: 'infra/vdcsync.yaml' }],
    folder: join(folderWith(), 'git'),
    intervalMs: 60_000,
    allowRewind: false,
    clock: systemClock,
    random: systemRandom,
    log: quiet,
    ...options,
  });
}

/** A new key of this name, which signs the commits from now on, and its public half. */
async function signingKey({ git }: Pick<Repository, 'git'>, keys: string, name: string): Promise<string> {
  const key = join(keys, name);
  await program('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], keys);
  await git('config', 'gpg.format', 'ssh');
  await git('config', 'user.signingKey', `${key}.pub`);
  return readFileSync(`${key}.pub`, 'utf8');
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, each) => sum + (each.isFile() ? each.size : 0), 0);
}

describe('src/daemon/sources/git-source.ts: specs from Git', () => {
  test('reads the file at the tip of the branch, without a work tree', async () => {
    const { url, push } = await createRepository();
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork, 'other.txt': 'x' });
    const folder = join(folderWith(), 'git');
    const specs = source(url, { folder });
    const seen = await specs.read(signal);
    expect(seen.commit).toMatchObject({ id: first, ref: 'main', subject: 'a change' });
    expect(seen.specs).toEqual([
      { name: 'infra/vdcsync.yaml', sources: [{ file: 'infra/vdcsync.yaml', text: oneNetwork }] },
    ]);
    expect(readdirSync(folder, { recursive: true }).map(String).join()).not.toContain('other.txt');
    expect(readdirSync(join(folder, 'repository'))).not.toContain('hooks');
    const second = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# more\n` });
    expect((await specs.read(signal)).commit?.id).toBe(second);
  });

  test('follows a branch forward only, also over many commits and a restart, unless rewinds are allowed', async () => {
    const { url, push, git, commitOften } = await createRepository();
    const folder = join(folderWith(), 'git');
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    await source(url, { folder }).read(signal);
    await commitOften(60);
    const later = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# later\n` });
    expect((await source(url, { folder }).read(signal)).commit?.id).toBe(later);
    await git('reset', '--quiet', '--hard', first);
    const rewritten = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# rewritten\n` });
    await expect(source(url, { folder }).read(signal)).rejects.toThrow(/the history of .* was rewritten/);
    const notified = await source(url, { folder, allowRewind: true }).read(signal);
    expect(notified.commit?.id).toBe(rewritten);
  });

  test('refuses a rewritten branch, also if only another replica has read the later commit', async () => {
    const { url, push, git } = await createRepository();
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    const here = source(url);
    await here.read(signal);
    const { commit } = await source(url).read(signal);
    expect(commit?.id).toBe(first);
    await push({ 'infra/vdcsync.yaml': `${oneNetwork}# later\n` });
    const elsewhere = await source(url).read(signal, commit);
    await git('reset', '--quiet', '--hard', first);
    await git('push', '--quiet', '--force', 'origin', 'HEAD:main');
    for (const replica of [here, source(url)])
      await expect(replica.read(signal, elsewhere.commit)).rejects.toThrow(/the history of .* was rewritten/);
  });

  test('reads a repository that is served as plain files, and follows its branch forward only', async () => {
    const { bare, push, git } = await createRepository();
    const update = () => program('git', ['update-server-info'], bare);
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    await update();
    const specs = source(await serveFiles(bare));
    expect((await specs.read(signal)).commit?.id).toBe(first);
    const second = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# more\n` });
    await update();
    expect((await specs.read(signal)).commit?.id).toBe(second);
    await git('reset', '--quiet', '--hard', first);
    await push({ 'infra/vdcsync.yaml': `${oneNetwork}# rewritten\n` });
    await update();
    await expect(specs.read(signal)).rejects.toThrow(/the history of .* was rewritten/);
  });

  test('refuses a symbolic link, a missing file and a huge file', async () => {
    const { url, push, git } = await createRepository();
    await push({ 'infra/big.yaml': '#'.repeat(1024 * 1024 + 1) });
    const clone = (await git('rev-parse', '--show-toplevel')).trim();
    symlinkSync('/etc/passwd', join(clone, 'infra/vdcsync.yaml'));
    await push({ 'infra/x.txt': 'x' });
    const [link] = (await source(url).read(signal)).specs;
    expect(JSON.stringify(link)).toMatch(/symbolic link/);
    await expect(source(url, { files: [{ path: 'nothing.yaml' }] }).read(signal)).rejects.toThrow(
      /has no nothing.yaml/,
    );
    const [big] = (await source(url, { files: [{ path: 'infra/big.yaml' }] }).read(signal)).specs;
    expect(JSON.stringify(big)).toMatch(/longer than 1 MiB/);
  });

  test('several files and an overlay of the repository are one spec', async () => {
    const { url, push } = await createRepository();
    const text = 'networks: {backend: {cidr: 10.99.0.0/24}}\n';
    await push({ 'vdcsync.yaml': oneNetwork, 'common.yaml': 'version: 1\n', 'prod.yaml': text });
    const files = [
      { path: 'common.yaml' },
      { path: 'vdcsync.yaml' },
      { path: 'prod.yaml', overlay: true as const },
    ];
    expect((await source(url, { files }).read(signal)).specs).toEqual([
      {
        name: 'common.yaml, vdcsync.yaml, prod.yaml',
        sources: [
          { file: 'common.yaml', text: 'version: 1\n' },
          { file: 'vdcsync.yaml', text: oneNetwork },
          { file: 'prod.yaml', text, overlay: true },
        ],
      },
    ]);
  });

  test('a path that ends in a slash is a folder of specs', async () => {
    const { url, push } = await createRepository();
    await push({
      'infra/a.yaml': oneNetwork,
      'infra/b.yml': oneNetwork,
      'infra/.hidden.yaml': 'x',
      'infra/c.txt': 'x',
    });
    const { specs } = await source(url, { files: [{ path: 'infra/' }] }).read(signal);
    expect(specs.map(({ name }) => name)).toEqual(['infra/a.yaml', 'infra/b.yml']);
    await expect(source(url, { files: [{ path: 'infra' }] }).read(signal)).rejects.toThrow(
      /write infra\/ for a folder/,
    );
  });

  test('in a folder, a spec that a commit does not change stays the same value', async () => {
    const { url, push } = await createRepository();
    await push({ 'specs/a.yaml': 'a', 'specs/b.yaml': 'b' });
    const specs = source(url, { files: [{ path: 'specs/' }] });
    const first = await specs.read(signal);
    await push({ 'specs/a.yaml': 'a', 'specs/b.yaml': 'other' });
    const second = await specs.read(signal);
    expect(second.specs.map((spec, index) => spec === first.specs[index])).toEqual([true, false]);
    expect(second.specs[1]).toMatchObject({ sources: [{ text: 'other' }] });
  });

  test('reads over http with a token, which no file of the local repository contains', async () => {
    const { bare, push } = await createRepository();
    await push({ 'infra/vdcsync.yaml': oneNetwork });
    const served = await serveGit(bare, 'canary-token');
    const folder = join(folderWith(), 'git');
    const seen = await source(served.url, { folder }, 'canary-token').read(signal);
    expect(seen.specs).toHaveLength(1);
    const kept = readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
      .filter((each) => each.isFile())
      .map((each) => readFileSync(join(each.parentPath, each.name), 'latin1'));
    expect(kept.join('\n')).not.toContain('canary-token');
    const refused = source(served.url, {}, 'wrong-canary').read(signal);
    await expect(refused).rejects.toThrow(/git ls-remote/);
    await refused.catch((error: Error) => expect(error.message).not.toContain('canary'));
  });

  test('reads over ssh with its own key, checks host keys, and never prompts', async () => {
    const { bare, push } = await createRepository();
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    // In the place of ssh: does what the other side would, and writes down how it was called.
    const bin = folderWith({
      ssh: '#!/bin/sh\necho "$@" >> "$0.calls"\nfor last; do :; done\nexec sh -c "$last"\n',
    });
    chmodSync(join(bin, 'ssh'), 0o755);
    const access = {
      sshKeyFile: '/keys/my key',
      sshKnownHostsFile: '/keys/known_hosts',
      environment: { PATH: `${bin}:${process.env.PATH}` },
    };
    expect((await source(`ssh://git@git.example.com${bare}`, { access }).read(signal)).commit?.id).toBe(
      first,
    );
    expect((await source(`git@git.example.com:${bare}`, { access }).read(signal)).commit?.id).toBe(first);
    const calls = readFileSync(join(bin, 'ssh.calls'), 'utf8');
    for (const option of [
      'BatchMode=yes',
      'StrictHostKeyChecking=yes',
      'IdentityFile=/keys/my key',
      'IdentitiesOnly=yes',
    ]) {
      expect(calls).toContain(`-o ${option}`);
    }
  });

  test.skipIf(lacks('ssh-keygen'))(
    'with allowed signers, refuses an unsigned commit and another key, and accepts a signed commit',
    async () => {
      const { url, push, git } = await createRepository();
      const keys = folderWith();
      await push({ 'infra/vdcsync.yaml': oneNetwork });
      writeFileSync(join(keys, 'allowed'), `test@example.com ${await signingKey({ git }, keys, 'key')}`);
      const access = { allowedSignersFile: join(keys, 'allowed') };
      const refused = () =>
        expect(source(url, { access }).read(signal)).rejects.toThrow(/no ssh signature of an allowed signer/);
      await refused();
      await signingKey({ git }, keys, 'other');
      await push({ 'infra/vdcsync.yaml': `${oneNetwork}# other\n` }, ['--gpg-sign']);
      await refused();
      await git('config', 'user.signingKey', join(keys, 'key.pub'));
      const signed = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# signed\n` }, ['--gpg-sign']);
      expect((await source(url, { access }).read(signal)).commit?.id).toBe(signed);
    },
  );

  test.skipIf(lacks('ssh-keygen'))('refuses an expired key with any date of the commit', async () => {
    const { url, push, git } = await createRepository();
    const keys = folderWith();
    const key = await signingKey({ git }, keys, 'key');
    const allow = (options: string) =>
      writeFileSync(join(keys, 'allowed'), `test@example.com ${options} ${key}`);
    const access = { allowedSignersFile: join(keys, 'allowed') };
    vi.stubEnv('GIT_COMMITTER_DATE', '2021-06-01T00:00:00Z');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const signed = await push({ 'infra/vdcsync.yaml': oneNetwork }, ['--gpg-sign']);
    allow('valid-after="20210101",valid-before="20220101"');
    // Git alone takes the signature: the key was valid at the date in the commit.
    await git('-c', `gpg.ssh.allowedSignersFile=${join(keys, 'allowed')}`, 'verify-commit', signed);
    await expect(source(url, { access }).read(signal)).rejects.toThrow(/no ssh signature of an allowed/);
    allow('valid-after="20210101"');
    expect((await source(url, { access }).read(signal)).commit?.id).toBe(signed);
    allow('valid-after="20220101"');
    await expect(source(url, { access }).read(signal)).rejects.toThrow(/no ssh signature of an allowed/);
  });

  test('with allowed signers, refuses an OpenPGP signature with any keyring', async () => {
    const { url, push, git } = await createRepository();
    const keys = folderWith({
      // In the place of gpg: makes a signature of the right form, and knows and trusts the key of every one.
      gpg:
        '#!/bin/sh\ncat > /dev/null\necho called >> "$0.calls"\n' +
        'case "$*" in *--verify*) printf "\\n[GNUPG:] GOODSIG 1 x\\n[GNUPG:] VALIDSIG 1\\n[GNUPG:] TRUST_ULTIMATE 0\\n";;\n' +
        '*) printf "[GNUPG:] SIG_CREATED \\n" >&2; printf -- "-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n";; esac\n',
      allowed: '',
    });
    chmodSync(join(keys, 'gpg'), 0o755);
    await git('config', 'gpg.program', join(keys, 'gpg'));
    const signed = await push({ 'infra/vdcsync.yaml': oneNetwork }, ['--gpg-sign=anybody']);
    await git('verify-commit', signed);
    const calls = readFileSync(join(keys, 'gpg.calls'), 'utf8');
    const access = {
      allowedSignersFile: join(keys, 'allowed'),
      environment: { ...process.env, PATH: `${keys}:${process.env.PATH}` },
    };
    await expect(source(url, { access }).read(signal)).rejects.toThrow(
      /no ssh signature of an allowed signer/,
    );
    expect(readFileSync(join(keys, 'gpg.calls'), 'utf8')).toBe(calls);
  });

  test('refuses a tag with the name of the branch, also after a restart and in another replica', async () => {
    const { url, push, git } = await createRepository();
    const folder = join(folderWith(), 'git');
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    const second = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# second\n` });
    const here = source(url, { folder });
    const { commit } = await here.read(signal);
    expect(commit).toMatchObject({ id: second, ref: 'main', fullRef: 'refs/heads/main' });
    await git('tag', 'main', first);
    await git('push', '--quiet', 'origin', 'refs/tags/main');
    expect((await here.read(signal)).commit?.id).toBe(second);
    await program('git', ['update-ref', '-d', 'refs/heads/main'], new URL(url).pathname);
    for (const each of [here, source(url, { folder })])
      await expect(each.read(signal)).rejects.toThrow(/no longer refs\/heads\/main/);
    await expect(source(url).read(signal, commit)).rejects.toThrow(/no longer refs\/heads\/main/);
    // The operator may choose the tag.
    const notified = await source(url, { folder, ref: 'refs/tags/main' }).read(signal);
    expect(notified.commit).toMatchObject({ id: first, fullRef: 'refs/tags/main' });
  });

  test('follows a tag although a branch has the same name, in one replica after the other', async () => {
    const { url, push, git } = await createRepository();
    const folder = join(folderWith(), 'git');
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    await git('tag', 'release/v1', first);
    await git('push', '--quiet', 'origin', 'refs/tags/release/v1');
    const at = { folder, ref: 'release/v1' };
    const { commit } = await source(url, at).read(signal);
    await push({ 'infra/vdcsync.yaml': `${oneNetwork}# other\n` });
    await git('push', '--quiet', 'origin', 'HEAD:refs/heads/release/v1');
    expect((await source(url, at).read(signal)).commit?.id).toBe(first);
    expect((await source(url, { ref: 'release/v1' }).read(signal, commit)).commit?.id).toBe(first);
    // A folder that belongs to another ref is no hindrance.
    expect((await source(url, { folder, ref: 'main' }).read(signal)).commit?.fullRef).toBe('refs/heads/main');
  });

  test('does not fetch files over 1 MiB if the server can filter, and git works without these files', async () => {
    const { bare, push, git, commitOften } = await createRepository();
    await program('git', ['config', 'uploadpack.allowFilter', 'true'], bare);
    const big = () => randomBytes(1_500_000).toString('base64');
    const first = await push({ 'infra/a.yaml': oneNetwork, 'infra/big.yaml': big(), 'x.bin': big() });
    const folder = join(folderWith(), 'git');
    const { url } = await serveGit(bare);
    const specs = source(url, { folder, files: [{ path: 'infra/' }] });
    const seen = await specs.read(signal);
    expect(seen.specs).toMatchObject([
      { name: 'infra/a.yaml', sources: [{ text: oneNetwork }] },
      { name: 'infra/big.yaml', problem: [{ message: expect.stringMatching(/longer than 1 MiB/) }] },
    ]);
    expect(sizeOf(folder)).toBeLessThan(200_000);
    await commitOften(55);
    const later = await push({ 'infra/a.yaml': `${oneNetwork}# later\n`, 'x.bin': big() });
    expect((await source(url, { folder, files: [{ path: 'infra/' }] }).read(signal)).commit?.id).toBe(later);
    expect(sizeOf(folder)).toBeLessThan(200_000);
    await git('reset', '--quiet', '--hard', first);
    await push({ 'infra/a.yaml': `${oneNetwork}# rewritten\n` });
    await expect(specs.read(signal, seen.commit && { ...seen.commit, id: later })).rejects.toThrow(
      /rewritten/,
    );
  });

  test('does not fetch a pack of zeros, which is small on the wire and large on the disk', async () => {
    const { bare, push } = await createRepository();
    await program('git', ['config', 'uploadpack.allowFilter', 'true'], bare);
    const zeros = 50_000_000;
    await push({ 'infra/vdcsync.yaml': oneNetwork, 'zeros.bin': '\0'.repeat(zeros) });
    const { url } = await serveGit(bare);
    const folder = join(folderWith(), 'git');
    const specs = source(url, { folder });

    expect((await specs.read(signal)).specs).toMatchObject([{ sources: [{ text: oneNetwork }] }]);

    const check = ['cat-file', '--batch-all-objects', '--batch-check=%(objectsize)'];
    const unpacked = async (repository: string) => {
      const sizes = (await program('git', [`--git-dir=${repository}`, ...check], repository))
        .trim()
        .split('\n')
        .map(Number);
      return sizes.reduce((sum, size) => sum + size, 0);
    };
    expect(sizeOf(bare)).toBeLessThan(1_000_000);
    expect(await unpacked(bare)).toBeGreaterThan(zeros);
    expect(await unpacked(join(folder, 'repository'))).toBeLessThan(10_000);
  });

  test('limits a fetch, and a commit over the limit leaves no files and the last commit in force', async () => {
    const { url, push, git } = await createRepository();
    const folder = join(folderWith(), 'git');
    const first = await push({ 'infra/vdcsync.yaml': oneNetwork });
    const specs = source(url, { folder, mostFolderBytes: 4_000_000 });
    await specs.read(signal);
    await push({
      'infra/vdcsync.yaml': `${oneNetwork}# big\n`,
      'x.bin': randomBytes(4_000_000).toString('base64'),
    });
    for (const each of [specs, specs, source(url, { folder, mostFolderBytes: 4_000_000 })])
      await expect(each.read(signal)).rejects.toThrow(/takes more than the 4 MiB/);
    expect(sizeOf(folder)).toBeLessThan(200_000);
    await git('reset', '--quiet', '--hard', first);
    const small = await push({ 'infra/vdcsync.yaml': `${oneNetwork}# small\n` });
    expect((await specs.read(signal)).commit?.id).toBe(small);
  });

  test('limits the folder over many fetches: removes unneeded commits, and refuses a commit over the limit', async () => {
    const { url, push } = await createRepository();
    const folder = join(folderWith(), 'git');
    const mostFolderBytes = 2_000_000;
    const specs = source(url, { folder, mostFolderBytes, allowRewind: true });
    const push450kB = async (name: string) => {
      await push({ 'infra/vdcsync.yaml': oneNetwork, [name]: randomBytes(340_000).toString('base64') });
      return specs.read(signal);
    };
    for (let commit = 0; commit < 3; commit += 1) await push450kB('x.bin');
    let error: unknown;
    for (let file = 0; file < 8 && error === undefined; file += 1) {
      error = await push450kB(`y${file}.bin`).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(sizeOf(folder)).toBeLessThan(mostFolderBytes);
    }
    expect(error).toMatchObject({ message: expect.stringMatching(/takes more than the 2 MiB/) });
    await expect(specs.read(signal)).rejects.toBe(error);
    expect(sizeOf(folder)).toBeLessThan(mostFolderBytes);
  });

  test.each([
    ['http://git.example.com/infra.git', /neither https nor ssh/],
    ['https://me:secret@git.example.com/infra.git', /holds credentials/],
    ['ext::sh -c true', /neither https nor ssh|cannot be read/],
    ['--upload-pack=true', /cannot be read/],
    ['file:///srv/infra.git', /--git-allow-insecure/],
  ])('refuses the address %s', (url, reason) => {
    expect(() => parseGitUrl(url, false)).toThrow(reason);
  });

  test.each([
    ['--force', 'a.yaml'],
    ['a..b', 'a.yaml'],
    ['main', '../a.yaml'],
    ['main', '/etc/a.yaml'],
    ['main', ':(top)a.yaml'],
  ])('refuses the ref %s with the path %s', (ref, path) => {
    expect(() => source('file:///srv/infra.git', { ref, files: [{ path }] })).toThrow(/is no/);
  });

  test('no message contains a credential that a remote repeats, also not in Base64', async () => {
    const url = await serveRefusal(({ authorization = '' }) => `who is ${authorization}, or ${token}?`);
    const said = await source(url, {}, token)
      .read(signal)
      .catch((error: Error) => error.message);
    expect(said).toContain('who is Basic');
    expect(said).toContain('***');
    for (const form of [token, Buffer.from(token).toString('base64').slice(0, 8)]) {
      expect(said).not.toContain(form);
    }
    const words = String(said).split(/[^\w+/=]+/);
    expect(words.map((word) => Buffer.from(word, 'base64').toString()).join(' ')).not.toContain('canary');
  });
});
