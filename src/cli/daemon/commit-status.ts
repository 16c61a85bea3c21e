import { ConfigError } from '../../core/errors.ts';
import { isLoopbackHost } from '../../core/text.ts';
import { type Forge, forges, type StatusTarget } from '../../daemon/commit-status/forge.ts';
import { usageError } from '../exit.ts';
import { gitDefaults } from '../flags.ts';
import { secretOf } from '../settings/secret.ts';
import type { Io } from '../terminal.ts';

export interface CommitStatusFlags {
  readonly gitUrl?: string;
  readonly commitStatus?: Forge;
  readonly commitStatusUrl?: string;
  readonly commitStatusName?: string;
}

/** The receiver of commit statuses. `undefined` without `--commit-status`. Specs cannot change the receiver. */
export function statusTargetOf(
  flags: CommitStatusFlags,
  io: Io,
  pageUrl: string | undefined,
): StatusTarget | undefined {
  const { commitStatus: forge, commitStatusUrl: address } = flags;
  const name = flags.commitStatusName ?? gitDefaults.statusName;
  if (forge === undefined) {
    if (address === undefined) return undefined;
    throw usageError(`--commit-status-url needs --commit-status: ${forges.join(', ')}`);
  }
  if (flags.gitUrl === undefined) {
    throw usageError('--commit-status needs --git-url: only specs from Git have commits');
  }
  const token = secretOf('VDCSYNC_COMMIT_STATUS_TOKEN', io);
  if (token === undefined) {
    throw new ConfigError(
      '--commit-status needs a token that may write statuses: set VDCSYNC_COMMIT_STATUS_TOKEN_FILE',
    );
  }
  return { forge, url: checked(address ?? derived(forge, flags.gitUrl)), name, token, pageUrl };
}

/** vdcsync sends the token to this address, so the address must be https, as for notifications. */
function checked(text: string): string {
  const url = URL.parse(text);
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (url === null || !isSafe || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new ConfigError(
      '--commit-status-url must be the https URL of a repository in the API of the forge, such as https://api.github.com/repos/OWNER/REPO',
    );
  }
  return url.href.replace(/\/+$/, '');
}

/** The repository in the API of its forge, from the address that git fetches. */
function derived(forge: Forge, gitUrl: string): string {
  const [, sshHost, sshPath] = /^[^@/]+@([^:/]+):(.+)$/.exec(gitUrl) ?? [];
  const url = sshHost === undefined ? URL.parse(gitUrl) : URL.parse(`ssh://${sshHost}/${sshPath}`);
  const path = (url?.pathname ?? '').replace(/^\/+|\/+$|\.git\/*$/g, '');
  const isKnown = url !== null && url.hostname !== '' && /^[\w.-]+(\/[\w.-]+)+$/.test(path);
  if (!isKnown) {
    throw usageError(
      `--commit-status ${forge} needs --commit-status-url: vdcsync cannot derive the URL from --git-url`,
    );
  }
  // The port of ssh is not the port of the API.
  const origin = /^https?:$/.test(url.protocol) ? url.origin : `https://${url.hostname}`;
  switch (forge) {
    case 'github':
      return url.hostname === 'github.com'
        ? `https://api.github.com/repos/${path}`
        : `${origin}/api/v3/repos/${path}`;
    case 'gitlab':
      return `${origin}/api/v4/projects/${encodeURIComponent(path)}`;
    case 'gitea':
      return `${origin}/api/v1/repos/${path}`;
  }
}
