import type { HttpRequest } from '../../core/transport.ts';

export const forges = ['github', 'gitlab', 'gitea'] as const;
export type Forge = (typeof forges)[number];

/** The result of a commit, in the words of vdcsync. */
export interface CommitStatus {
  readonly commit: string;
  readonly state: 'pending' | 'success' | 'failure';
  /** One line. */
  readonly text: string;
}

/** The repository whose commits get a status. */
export interface StatusTarget {
  readonly forge: Forge;
  /** The repository in the API of the forge, without a slash at the end. */
  readonly url: string;
  /** Distinguishes the status from those of other programs, and of another vdcsync. */
  readonly name: string;
  readonly token: () => string;
  /** The status links to it. */
  readonly pageUrl: string | undefined;
}

/** GitHub accepts no longer text. */
const mostCharacters = 140;

/**
 * The request that sets the status of a commit. All three forges take it at the same path, and name its parts differently:
 * - [GitHub](https://docs.github.com/en/rest/commits/statuses#create-a-commit-status)
 * - [GitLab](https://docs.gitlab.com/api/commits/#set-commit-pipeline-status)
 * - [Gitea](https://docs.gitea.com/api/#tag/repository/operation/repoCreateStatus), and Forgejo
 */
export function statusRequest(
  { forge, url, name, token, pageUrl }: StatusTarget,
  { commit, state, text }: CommitStatus,
): HttpRequest {
  const description = text.length > mostCharacters ? `${text.slice(0, mostCharacters - 1)}…` : text;
  const common = { description, ...(pageUrl === undefined ? {} : { target_url: pageUrl }) };
  const [headers, body] = {
    github: [
      {
        accept: 'application/vnd.github+json',
        authorization: `Bearer ${token()}`,
        'x-github-api-version': '2022-11-28',
      },
      { state, context: name, ...common },
    ],
    gitlab: [
      { 'private-token': token() },
      { state: state === 'failure' ? 'failed' : state, name, ...common },
    ],
    gitea: [{ authorization: `token ${token()}` }, { state, context: name, ...common }],
  }[forge];
  return {
    method: 'POST',
    url: `${url}/statuses/${commit}`,
    headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'vdcsync' },
    body: JSON.stringify(body),
  };
}

/** GitLab refuses to set a status to pending that is pending: the status is set. */
export function isAlreadySet({ forge }: StatusTarget, { state }: CommitStatus, status: number): boolean {
  return forge === 'gitlab' && state === 'pending' && status === 400;
}
