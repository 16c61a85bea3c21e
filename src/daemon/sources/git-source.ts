import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import type { DaemonLogger } from '../ports.ts';
import { type GitAccess, GitProgram } from './git-program.ts';
import { decodeSpec, mostBytes } from './read-file.ts';
import {
  type Commit,
  type Snapshot,
  SourceError,
  type SpecSource,
  type SpecText,
  unreadable,
} from './source.ts';

/** The branch that a spec comes from. */
export interface GitSettings {
  readonly access: GitAccess;
  /** Branch or tag: `main`, `refs/heads/main`, `v1`. */
  readonly ref: string;
  /** In the repository; one that ends in a slash is a folder of specs, each a project of its own. */
  readonly path: string;
  /** Where the bare repository is kept. */
  readonly folder: string;
  /** How often its tip is asked for, of the API's pace. */
  readonly intervalMs: number;
  /** Follow the branch also where its history was rewritten. */
  readonly allowRewind: boolean;
}

export interface GitSourceOptions extends GitSettings {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: DaemonLogger;
}

/** The commit that was taken last; kept in the repository, so that a restart knows it too. */
const currentRef = 'refs/vdcsync/current';
const fetchedRef = 'refs/vdcsync/fetched';
/** How deep a history is fetched to find the last commit in it; at last all of it. */
const depths = [50, 1_000, 2_147_483_647];
/** New commits between two cleanings of the repository. */
const commitsPerCleaning = 50;

/** @throws SourceError for what git would take for an option, or for something else than one ref or path. */
export function checkGitNames(ref: string, path: string): void {
  if (!/^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$/.test(ref) || ref.includes('..') || ref.endsWith('/')) {
    throw new SourceError(`the Git ref ${JSON.stringify(ref)} is no name of a branch or tag`);
  }
  const parts = path.replace(/\/$/, '').split('/');
  if (
    path.startsWith('/') ||
    parts.some((part) => part === '' || part === '.' || part === '..') ||
    /[\p{Cc}\\:]/u.test(path)
  ) {
    throw new SourceError(
      `the Git path ${JSON.stringify(path)} is no path inside the repository, such as infra/vdcsync.yaml`,
    );
  }
}

/**
 * Specs in a branch. The tip is asked for often, which costs one small request; only a new
 * one is fetched, as shallow as can be, checked, and read straight from its objects.
 */
export function gitSource(options: GitSourceOptions): SpecSource {
  const { access, ref, path, clock, random } = options;
  checkGitNames(ref, path);
  const git = new GitProgram(options.folder, access);
  const name = `${access.url.shown}#${ref}:${path}`;
  let prepared = false;
  let taken: Snapshot | undefined;
  let commits = 0;

  async function read(signal: AbortSignal, last?: Commit): Promise<Snapshot> {
    if (!prepared) await git.prepare(signal);
    prepared = true;
    const tip = await findTip(git, access.url.text, ref, signal);
    const follows = last?.id ?? (await currentCommit(git, signal));
    if (taken?.commit?.id === tip.commit && follows === tip.commit) return taken;
    await fetchTip(git, options, tip, follows, signal);
    const commit = await describe(git, tip.commit, ref, signal);
    const specs = await readSpecs(git, commit.id, path, signal);
    // Only what could be read is what the next one has to follow on.
    await git.run(['update-ref', currentRef, commit.id], signal);
    commits += 1;
    if (commits % commitsPerCleaning === 0) await git.run(['gc', '--quiet', '--prune=now'], signal);
    taken = { specs, commit };
    return taken;
  }

  async function watch(hint: (trigger: 'git') => void, signal: AbortSignal): Promise<void> {
    for (;;) {
      await clock.sleep(options.intervalMs * (0.9 + random.next() / 5), signal);
      hint('git');
    }
  }

  return { name, read, watch };
}

interface Tip {
  /** What the remote calls it in full. */
  readonly ref: string;
  readonly commit: string;
}

/** A branch before a tag of the same name. */
async function findTip(git: GitProgram, url: string, ref: string, signal: AbortSignal): Promise<Tip> {
  const names = ref.startsWith('refs/') ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
  const wanted = names.flatMap((name) => [name, `${name}^{}`]);
  const lines = (await git.run(['ls-remote', '--quiet', url, ...wanted], signal)).split('\n');
  const found = new Map(lines.map((line) => line.split('\t').reverse() as [string, string]));
  for (const name of names) {
    const commit = found.get(`${name}^{}`) ?? found.get(name);
    if (commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit)) return { ref: name, commit };
  }
  throw new SourceError(`the repository has no branch or tag ${ref}`);
}

async function fetchTip(
  git: GitProgram,
  options: GitSourceOptions,
  tip: Tip,
  last: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const fetchWith = (...limits: readonly string[]) =>
    git.run(
      [
        ...['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--force'],
        ...[...limits, options.access.url.text, `${tip.ref}:${fetchedRef}`],
      ],
      signal,
    );
  const fetchTo = (depth: number) =>
    fetchWith(`--depth=${depth}`).catch((error: Error) => {
      // A server of plain files cannot cut a history short: it gives all of it.
      if (error.message.includes('dumb http transport')) return fetchWith();
      throw error;
    });
  await fetchTo(1);
  const fetched = (await git.run(['rev-parse', '--verify', `${fetchedRef}^{commit}`], signal)).trim();
  if (fetched !== tip.commit) throw new SourceError(`${options.ref} moved while it was fetched`);
  if (options.access.allowedSignersFile !== undefined) await verify(git, tip.commit, signal);
  if (last === undefined || last === tip.commit || options.allowRewind || tip.ref.startsWith('refs/tags/'))
    return;
  for (const depth of depths) {
    if (depth !== depths[0] || !(await isAncestor(git, last, tip.commit, signal))) await fetchTo(depth);
    if (await isAncestor(git, last, tip.commit, signal)) return;
  }
  throw new SourceError(
    `${options.ref} is at ${tip.commit.slice(0, 12)}, which does not follow on ${last.slice(0, 12)}: its history was rewritten. ` +
      'Look at what was pushed; --git-allow-rewind takes it as it is',
  );
}

async function verify(git: GitProgram, commit: string, signal: AbortSignal): Promise<void> {
  try {
    await git.run(['verify-commit', commit], signal);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new SourceError(`commit ${commit.slice(0, 12)} carries no signature of an allowed signer`);
  }
}

async function currentCommit(git: GitProgram, signal: AbortSignal): Promise<string | undefined> {
  const text = await git.run(['for-each-ref', '--format=%(objectname)', currentRef], signal);
  return text.trim() || undefined;
}

async function isAncestor(
  git: GitProgram,
  last: string,
  commit: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await git.run(['merge-base', '--is-ancestor', last, commit], signal);
    return true;
  } catch (error) {
    if (error instanceof SourceError) return false;
    throw error;
  }
}

async function describe(git: GitProgram, id: string, ref: string, signal: AbortSignal): Promise<Commit> {
  const [seconds = '', subject = ''] = (
    await git.run(['log', '-1', '--format=%ct%n%s', '--no-show-signature', id], signal)
  ).split('\n');
  return { id, ref, subject: subject.slice(0, 200), at: Number(seconds) * 1000 };
}

/** One entry of a tree, as `git ls-tree` tells it. */
interface TreeEntry {
  readonly mode: string;
  readonly type: string;
  readonly sizeBytes: number;
  readonly path: string;
}

async function readSpecs(
  git: GitProgram,
  commit: string,
  path: string,
  signal: AbortSignal,
): Promise<readonly SpecText[]> {
  const entries = await listTree(git, commit, path, signal);
  if (!path.endsWith('/')) {
    const [entry] = entries;
    if (entry === undefined) throw new SourceError(`the commit ${commit.slice(0, 12)} has no ${path}`);
    if (entry.type === 'tree')
      throw new SourceError(`${path} is a folder: write ${path}/ for a folder of specs`);
    return [await readBlob(git, commit, entry, signal)];
  }
  const specs = entries.filter(
    ({ path: each, type }) => type === 'blob' && /(^|\/)[^./][^/]*\.ya?ml$/.test(each),
  );
  const read: SpecText[] = [];
  for (const entry of specs) read.push(await readBlob(git, commit, entry, signal));
  return read;
}

async function listTree(
  git: GitProgram,
  commit: string,
  path: string,
  signal: AbortSignal,
): Promise<TreeEntry[]> {
  const text = await git.run(['ls-tree', '-z', '--long', '--full-tree', commit, '--', path], signal);
  return text.split('\0').flatMap((line) => {
    const [, mode, type, size, name] = /^(\d+) (\w+) \S+ +(\S+)\t(.*)$/s.exec(line) ?? [];
    if (mode === undefined || type === undefined || name === undefined) return [];
    return [{ mode, type, sizeBytes: Number(size) || 0, path: name }];
  });
}

async function readBlob(
  git: GitProgram,
  commit: string,
  { mode, type, sizeBytes, path }: TreeEntry,
  signal: AbortSignal,
): Promise<SpecText> {
  // A link could name anything; what it names is a file that the spec should name itself.
  if (mode === '120000') return { name: path, problem: unreadable(path, 'it is a symbolic link') };
  if (type !== 'blob') return { name: path, problem: unreadable(path, 'it is no file') };
  if (sizeBytes > mostBytes) return { name: path, problem: unreadable(path, 'it is longer than 1 MiB') };
  const file = decodeSpec(await git.bytes(['cat-file', 'blob', `${commit}:${path}`], signal), path);
  return 'text' in file ? { name: path, sources: [file] } : { name: path, problem: file };
}
