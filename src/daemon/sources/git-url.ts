import { isLoopbackAddress } from '../../core/text.ts';
import { SourceError } from './source.ts';

/** A checked address of a repository. `shown` is the form for messages. */
export interface GitUrl {
  readonly text: string;
  readonly shown: string;
  readonly protocol: 'https' | 'ssh' | 'http' | 'file';
  /** Scheme, host and port of http and https, for a credential that goes nowhere else. */
  readonly origin: string | undefined;
}

/**
 * Takes https and ssh, `git@host:path` included; with `allowInsecure` also `file://` and
 * http of this machine, for trials.
 *
 * @throws SourceError for anything else, and for credentials in the address: the address is in
 * argv, which every user of the machine can read.
 */
export function parseGitUrl(text: string, allowInsecure: boolean): GitUrl {
  if (/^[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:(?!\/\/)[^\s]+$/.test(text)) {
    return { text, shown: text, protocol: 'ssh', origin: undefined };
  }
  const url = URL.parse(text);
  if (url === null || text.startsWith('-'))
    throw new SourceError('the Git URL cannot be read: write https://host/path.git or git@host:path.git');
  const protocol = url.protocol.slice(0, -1);
  const shown = `${url.protocol}//${url.host}${url.pathname}`;
  if (url.password !== '' || (url.username !== '' && protocol !== 'ssh')) {
    throw new SourceError(
      `the Git URL ${shown} holds credentials: use VDCSYNC_GIT_TOKEN_FILE, or ssh with a key of its own`,
    );
  }
  if (protocol === 'https') return { text, shown, protocol, origin: url.origin };
  if (protocol === 'ssh') return { text, shown, protocol, origin: undefined };
  const local = protocol === 'file' || (protocol === 'http' && isLoopbackAddress(url.hostname));
  if (local && allowInsecure)
    return protocol === 'file'
      ? { text, shown, protocol, origin: undefined }
      : { text, shown, protocol: 'http', origin: url.origin };
  const hint = local ? ' (for a trial on this machine: --git-allow-insecure)' : '';
  throw new SourceError(`the Git URL ${shown} is neither https nor ssh${hint}`);
}

/** The paths of a commit's page, by a part of the host's name. The others have the path of GitHub. */
const commitPaths = { gitlab: '/-/commit/', bitbucket: '/commits/' } as const;

/** The page of a commit at the forge. `undefined`: the repository has no forge, or the address does not show it. */
export function commitPage({ text, protocol }: GitUrl, commit: string): string | undefined {
  const [, host, path] =
    /^(?:https:\/\/|ssh:\/\/(?:[^@/]+@)?|[^@/]+@)([^/:]+(?::\d+(?=\/))?)[:/](.+?)(?:\.git)?\/?$/.exec(text) ??
    [];
  if (protocol === 'file' || protocol === 'http' || host === undefined || path === undefined)
    return undefined;
  // The port of ssh is not the port of the page.
  const site = protocol === 'ssh' ? host.replace(/:\d+$/, '') : host;
  const forge = Object.entries(commitPaths).find(([name]) => site.includes(name));
  return `https://${site}/${path}${forge?.[1] ?? '/commit/'}${commit}`;
}

/** A path in the repository; a folder ends in a slash. */
export interface GitFile {
  readonly path: string;
  readonly overlay?: true;
}

/** @throws SourceError for a text that git would take for an option, or that is not exactly one ref or path. */
export function checkGitNames(ref: string, files: readonly GitFile[]): void {
  if (!/^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$/.test(ref) || ref.includes('..') || ref.endsWith('/')) {
    throw new SourceError(`the Git ref ${JSON.stringify(ref)} is not the name of a branch or tag`);
  }
  for (const [at, { path }] of files.entries()) {
    const parts = path.replace(/\/$/, '').split('/');
    if (
      path.startsWith('/') ||
      parts.some((part) => part === '' || part === '.' || part === '..') ||
      /[\p{Cc}\\:]/u.test(path)
    ) {
      throw new SourceError(
        `the Git path ${JSON.stringify(path)} is not a path inside the repository, such as infra/vdcsync.yaml`,
      );
    }
    if (files.findIndex((each) => each.path === path) !== at)
      throw new SourceError(`the Git path ${JSON.stringify(path)} is given twice`);
    if (path.endsWith('/') && files.some(({ overlay }, other) => other !== at && overlay !== true))
      throw new SourceError(
        `the Git path ${JSON.stringify(path)} is a folder of projects: give no other path but overlays`,
      );
  }
}
