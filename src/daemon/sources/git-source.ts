import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Diagnostic } from '../../core/errors.ts';
import { decodeSpec, mostBytes, type Source, unreadable } from '../../spec/load.ts';
import type { Commit } from '../../view/facts.ts';
import type { DaemonDeps } from '../ports.ts';
import { type FolderBounds, type SizedFile, withinBounds } from './bounds.ts';
import { type GitAccess, GitProgram, TooLargeError } from './git-program.ts';
import { checkGitNames, commitPage, type GitFile, type GitUrl } from './git-url.ts';
import {
  type Snapshot,
  SourceError,
  type SpecSource,
  type SpecText,
  specOf,
  withOverlays,
} from './source.ts';

/** The branch that a spec comes from. */
export interface GitSettings {
  readonly access: GitAccess;
  /** Branch or tag: `main`, `refs/heads/main`, `v1`. */
  readonly ref: string;
  /** The files of the spec in the repository, or one folder of specs, each for a project of its own. */
  readonly files: readonly GitFile[];
  /** The folder of the bare repository, and of the file that names the last taken commit. */
  readonly folder: string;
  /** Time between two requests for the tip. */
  readonly intervalMs: number;
  /** Follow the branch even if its history was rewritten. */
  readonly allowRewind: boolean;
}

/** How much the bare repository may take on the disk. */
const usualMostFolderBytes = 512 * 1024 * 1024;

export interface GitSourceOptions extends GitSettings, Pick<DaemonDeps, 'clock' | 'random' | 'log'> {
  /** Default: 512 MiB. */
  readonly mostFolderBytes?: number;
  /** How much a folder of specs may hold. */
  readonly most?: FolderBounds;
}

const fetchedRef = 'refs/vdcsync/fetched';
/** The depths at which the history is fetched to find the last commit in it. The last depth is the whole history. */
const depths = [50, 1_000, 2_147_483_647];

/**
 * Specs in a branch. The source asks for the tip often, which costs one small request. Only a new tip is fetched, as
 * shallow as possible, then checked, and read directly from its objects.
 */
export function gitSource(options: GitSourceOptions): SpecSource {
  const { access, ref, files, clock, random, mostFolderBytes = usualMostFolderBytes, most } = options;
  checkGitNames(ref, files);
  const name = `${access.url.shown}#${ref}:${files.map(({ path }) => path).join(', ')}`;
  let prepared = false;
  let taken: Snapshot | undefined;
  /** The specs that were read last, by blob and path: a commit seldom changes more than a few of them. */
  let blobs: ReadonlyMap<string, SpecText> = new Map();
  /** The last tip that did not fit. The source does not fetch it again. */
  let tooLarge: { readonly commit: string; readonly error: TooLargeError } | undefined;

  async function read(signal: AbortSignal, last?: Commit): Promise<Snapshot> {
    const git = new GitProgram(join(options.folder, 'repository'), access, mostFolderBytes, signal);
    if (!prepared) await git.prepare();
    prepared = true;
    const before = await readTaken(options.folder);
    const follows = last?.id ?? before?.commit;
    const tip = await findTip(git, access.url.text, ref, last?.fullRef ?? before?.ref);
    if (taken?.commit?.id === tip.commit && follows === tip.commit) return taken;
    if (tooLarge?.commit === tip.commit) throw tooLarge.error;
    await fetchWithRoom(git, tip, follows);
    const commit = await describe(git, { tip, ref, url: access.url });
    const read = await readSpecs(git, commit.id, files, { before: blobs, most });
    blobs = read.blobs;
    // The next commit must follow the last readable commit, so the tip is recorded only now.
    await writeTaken(options.folder, tip);
    taken = { specs: withOverlays(read.specs, read.overlays), commit };
    return taken;
  }

  /** If there is no room, deletes the objects of earlier commits, and fetches again. */
  async function fetchWithRoom(git: GitProgram, tip: Tip, follows: string | undefined): Promise<void> {
    try {
      await fetchTip(git, options, tip, follows);
      return;
    } catch (error) {
      if (!(error instanceof TooLargeError)) throw error;
    }
    await git.empty();
    try {
      await fetchTip(git, options, tip, follows);
    } catch (error) {
      if (error instanceof TooLargeError) tooLarge = { commit: tip.commit, error };
      await git.empty();
      throw error;
    }
  }

  async function watch(hint: (trigger: 'git') => void, signal: AbortSignal): Promise<void> {
    for (;;) {
      await clock.sleep(options.intervalMs * (0.9 + random.next() / 5), signal);
      hint('git');
    }
  }

  return { name, read, watch };
}

/** `ref`: the full name at the remote. */
const tipSchema = z.object({ ref: z.string(), commit: z.string() }).readonly();

type Tip = z.infer<typeof tipSchema>;

/** The possible meanings of a configured ref: a branch before a tag of the same name. */
function meaningsOf(ref: string): readonly string[] {
  return ref.startsWith('refs/') ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
}

/**
 * `bound`: the full ref that the configured ref has meant so far. The ref keeps that meaning. Otherwise a user who can
 * push could replace the branch by a tag of the same name, and a tag need not follow any commit.
 */
async function findTip(git: GitProgram, url: string, ref: string, bound: string | undefined): Promise<Tip> {
  const all = meaningsOf(ref);
  const names = bound !== undefined && all.includes(bound) ? [bound] : all;
  const wanted = all.flatMap((name) => [name, `${name}^{}`]);
  const lines = (await git.run('ls-remote', '--quiet', url, ...wanted)).split('\n');
  const found = new Map(
    lines.map((line) => {
      const [commit = '', name = ''] = line.split('\t');
      return [name, commit] as const;
    }),
  );
  const tips = all.flatMap((name) => {
    const commit = found.get(`${name}^{}`) ?? found.get(name);
    return commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit) ? [{ ref: name, commit }] : [];
  });
  const tip = tips.find((each) => names.includes(each.ref));
  if (tip !== undefined) return tip;
  const [other] = tips;
  if (other === undefined) throw new SourceError(`the repository has no branch or tag ${ref}`);
  throw new SourceError(
    `the repository has ${other.ref}, but no longer ${names[0]}, which vdcsync follows. ` +
      `The last valid commit, if there is one, stays in force. To follow ${other.ref} from now on, start with --git-ref ${other.ref}`,
  );
}

/** The last taken commit, and its ref, are in a file next to the repository, so that a restart knows both. */
const takenFile = 'taken.json';

async function readTaken(folder: string): Promise<Tip | undefined> {
  const path = join(folder, takenFile);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw unusable(path, error.message);
  });
  if (text === undefined) return undefined;
  try {
    return tipSchema.parse(JSON.parse(text));
  } catch {
    throw unusable(path, 'it is damaged');
  }
}

async function writeTaken(folder: string, { ref, commit }: Tip): Promise<void> {
  const path = join(folder, takenFile);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(`${path}.next`, `${JSON.stringify({ ref, commit })}\n`, { flush: true, mode: 0o600 });
  await rename(`${path}.next`, path);
}

function unusable(path: string, why: string): SourceError {
  return new SourceError(
    `${path} records the last commit, and cannot be read: ${why}. ` +
      'So vdcsync cannot see whether the history was rewritten. ' +
      'If the current branch is right, delete that file',
  );
}

async function fetchTip(
  git: GitProgram,
  options: GitSourceOptions,
  tip: Tip,
  last: string | undefined,
): Promise<void> {
  const fetchWith = (...limits: readonly string[]) =>
    git.fetchBounded(
      ...['--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--force'],
      ...[...limits, options.access.url.text, `${tip.ref}:${fetchedRef}`],
    );
  const fetchTo = (depth: number) =>
    // A server that knows no filters sends everything, up to the bound on one fetch.
    fetchWith(`--depth=${depth}`, `--filter=blob:limit=${mostBytes + 1}`).catch((error: Error) => {
      // A server of plain files cannot cut a history short: it gives all of it.
      if (error.message.includes('dumb http transport')) return fetchWith();
      throw error;
    });
  await fetchTo(1);
  const fetched = (await git.run('rev-parse', '--verify', `${fetchedRef}^{commit}`)).trim();
  if (fetched !== tip.commit) throw new SourceError(`${options.ref} moved while it was fetched`);
  if (options.access.allowedSignersFile !== undefined) await verify(git, tip.commit);
  if (last === undefined || last === tip.commit || options.allowRewind || tip.ref.startsWith('refs/tags/'))
    return;
  for (const depth of depths) {
    if (depth !== depths[0] || !(await isAncestor(git, last, tip.commit))) await fetchTo(depth);
    if (await isAncestor(git, last, tip.commit)) return;
  }
  throw new SourceError(
    `the history of ${options.ref} was rewritten: ${tip.commit.slice(0, 12)} does not come after ${last.slice(0, 12)}. ` +
      'Check the pushed commits. --git-allow-rewind accepts them',
  );
}

async function verify(git: GitProgram, commit: string): Promise<void> {
  const refused = new SourceError(`commit ${commit.slice(0, 12)} has no ssh signature of an allowed signer`);
  const [headers = ''] = (await git.run('cat-file', 'commit', commit)).split('\n\n', 1);
  const signatures = headers.split('\n').filter((line) => line.startsWith('gpgsig'));
  if (signatures.length !== 1 || signatures[0] !== 'gpgsig -----BEGIN SSH SIGNATURE-----') throw refused;
  try {
    // Git compares the times of the keys with the date in the commit, which its author chooses.
    await git.run('verify-commit', commit);
    await git.checkSignerNow(signatureOf(headers));
  } catch (error) {
    throw error instanceof SourceError ? refused : error;
  }
}

/** The signature in the headers of a commit: further lines of a header begin with a space. */
function signatureOf(headers: string): string {
  const lines = headers.split('\n');
  const first = lines.findIndex((line) => line.startsWith('gpgsig '));
  const rest = lines.slice(first + 1);
  const end = rest.findIndex((line) => !line.startsWith(' '));
  const more = end === -1 ? rest : rest.slice(0, end);
  return `${[lines[first]?.slice('gpgsig '.length) ?? '', ...more.map((line) => line.slice(1))].join('\n')}\n`;
}

async function isAncestor(git: GitProgram, last: string, commit: string): Promise<boolean> {
  try {
    await git.run('merge-base', '--is-ancestor', last, commit);
    return true;
  } catch (error) {
    if (error instanceof SourceError) return false;
    throw error;
  }
}

async function describe(
  git: GitProgram,
  { tip, ref, url }: { readonly tip: Tip; readonly ref: string; readonly url: GitUrl },
): Promise<Commit> {
  const { commit: id, ref: fullRef } = tip;
  const [seconds = '', author = '', subject = ''] = (
    await git.run('log', '-1', '--format=%ct%n%an%n%s', '--no-show-signature', id)
  ).split('\n');
  const page = commitPage(url, id);
  return {
    ...{ id, ref, fullRef, author: author.slice(0, 100), subject: subject.slice(0, 200) },
    ...{ at: Number(seconds) * 1000, ...(page === undefined ? {} : { url: page }) },
  };
}

/** One entry of a tree, from the output of `git ls-tree`. */
interface TreeEntry extends SizedFile {
  readonly mode: string;
  readonly type: string;
  /** The id of its content. */
  readonly blob: string;
}

/**
 * Reads the specs, and the overlays of each spec in a folder: only the blobs that the last commit did not have, because
 * each blob takes a process.
 */
async function readSpecs(
  git: GitProgram,
  commit: string,
  files: readonly GitFile[],
  {
    before,
    most,
  }: { readonly before: ReadonlyMap<string, SpecText>; readonly most: FolderBounds | undefined },
) {
  const blobs = new Map<string, SpecText>();
  const take = async (entry: TreeEntry) => {
    const id = `${entry.mode} ${entry.blob} ${entry.name}`;
    const text = before.get(id) ?? specOf(entry.name, [await readBlob(git, commit, entry)]);
    blobs.set(id, text);
    return text;
  };
  const [{ path } = { path: '' }] = files;
  const isFolder = path.endsWith('/');
  const parts: (Source | readonly Diagnostic[])[] = [];
  for (const { path, ...flags } of isFolder ? files.slice(1) : files) {
    const [entry] = await listTree(git, commit, path);
    if (entry === undefined) throw new SourceError(`the commit ${commit.slice(0, 12)} has no ${path}`);
    if (entry.type === 'tree')
      throw new SourceError(`${path} is a folder: write ${path}/ for a folder of specs`);
    const read = await readBlob(git, commit, entry);
    parts.push('text' in read ? { ...read, ...flags } : read);
  }
  if (!isFolder) {
    const name = files.map((each) => each.path).join(', ');
    return { specs: [specOf(name, parts)], overlays: [], blobs };
  }
  const overlays = new Set(files.slice(1).map((each) => each.path));
  const specs = (await listTree(git, commit, path)).filter(
    ({ name, type }) => type === 'blob' && !overlays.has(name) && /(^|\/)[^./][^/]*\.ya?ml$/.test(name),
  );
  const { read, left } = withinBounds(specs, most);
  const texts: SpecText[] = [];
  for (const entry of read) texts.push(await take(entry));
  return { specs: [...texts, ...left], overlays: parts, blobs };
}

async function listTree(git: GitProgram, commit: string, path: string): Promise<TreeEntry[]> {
  const text = await git.run('ls-tree', '-z', '--long', '--full-tree', commit, '--', path);
  return text.split('\0').flatMap((line) => {
    const [, mode, type, blob, size, name] = /^(\d+) (\w+) (\S+) +(\S+)\t(.*)$/s.exec(line) ?? [];
    if (mode === undefined || type === undefined || blob === undefined || name === undefined) return [];
    // A file that the fetch has left out is listed without a size.
    const sizeBytes = type === 'blob' && !/^\d+$/.test(size ?? '') ? mostBytes + 1 : Number(size) || 0;
    return [{ mode, type, blob, sizeBytes, name }];
  });
}

async function readBlob(
  git: GitProgram,
  commit: string,
  { mode, type, sizeBytes, name }: TreeEntry,
): Promise<Source | readonly Diagnostic[]> {
  // A link could name any file. The spec should name the target itself.
  if (mode === '120000') return unreadable(name, 'it is a symbolic link');
  if (type !== 'blob') return unreadable(name, 'it is not a file');
  if (sizeBytes > mostBytes) return unreadable(name, 'it is longer than 1 MiB');
  return decodeSpec(await git.bytes('cat-file', 'blob', `${commit}:${name}`), name);
}
