import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Forge } from '../../src/daemon/commit-status/forge.ts';
import { serving } from './serving.ts';

export const forgeToken = 'canary-of-the-forge';

/** A status as its forge keeps it. */
export interface Kept {
  readonly commit: string;
  readonly state: string;
  readonly description: string;
  readonly context: string;
  readonly target: string | undefined;
}

interface Documented {
  /** The repository in the API, as the documentation writes it. */
  readonly path: string;
  readonly isAuthorized: (headers: IncomingHttpHeaders) => boolean;
  readonly states: readonly string[];
  readonly context: 'context' | 'name';
  readonly mostCharacters: number;
}

/** What the documentation of each forge says about the request that creates a commit status. */
const documented: Readonly<Record<Forge, Documented>> = {
  // docs.github.com: "Create a commit status", POST /repos/{owner}/{repo}/statuses/{sha}
  github: {
    path: '/api/v3/repos/group/infra',
    isAuthorized: (headers) =>
      headers.authorization === `Bearer ${forgeToken}` &&
      headers.accept === 'application/vnd.github+json' &&
      headers['x-github-api-version'] === '2022-11-28' &&
      headers['user-agent'] !== undefined,
    states: ['error', 'failure', 'pending', 'success'],
    context: 'context',
    mostCharacters: 140,
  },
  // docs.gitlab.com: "Set commit pipeline status", POST /projects/:id/statuses/:sha
  gitlab: {
    path: '/api/v4/projects/group%2Finfra',
    isAuthorized: (headers) => headers['private-token'] === forgeToken,
    states: ['pending', 'running', 'success', 'failed', 'canceled', 'skipped'],
    context: 'name',
    mostCharacters: 255,
  },
  // The swagger document of Gitea: "repoCreateStatus", POST /repos/{owner}/{repo}/statuses/{sha}
  gitea: {
    path: '/api/v1/repos/group/infra',
    isAuthorized: (headers) => headers.authorization === `token ${forgeToken}`,
    states: ['pending', 'success', 'error', 'failure', 'warning'],
    context: 'context',
    mostCharacters: 255,
  },
};

/** The part of a forge that keeps commit statuses. It refuses requests that its documentation does not show. */
export async function fakeForge(forge: Forge) {
  const { path, isAuthorized, states, context: nameOfContext, mostCharacters } = documented[forge];
  const kept: Kept[] = [];
  let requests = 0;
  let status: number | undefined;
  const url = await serving(async (incoming, outgoing) => {
    requests += 1;
    const sent = JSON.parse(await text(incoming)) as Record<string, string>;
    const answer = (code: number) =>
      outgoing.writeHead(code, { 'content-type': 'application/json' }).end('{}');
    if (status !== undefined) return answer(status);
    if (!isAuthorized(incoming.headers)) return answer(401);
    const {
      state = '',
      description = '',
      [nameOfContext]: context = '',
      target_url: target,
      ...others
    } = sent;
    const [, commit] = new RegExp(`^${path}/statuses/([0-9a-f]{40})$`).exec(incoming.url ?? '') ?? [];
    if (incoming.method !== 'POST' || commit === undefined) return answer(404);
    const isShown = states.includes(state) && Object.keys(others).length === 0 && context !== '';
    if (!isShown || description.length > mostCharacters) return answer(422);
    const before = kept.findLast((each) => each.commit === commit && each.context === context);
    if (forge === 'gitlab' && state === 'pending' && before?.state === 'pending') return answer(400);
    kept.push({ commit, state, description, context, target });
    return answer(201);
  });
  return {
    kept,
    url: `${url}${path}`,
    requests: () => requests,
    /** From now on every request gets this status; `undefined`: none does. */
    answer: (next: number | undefined) => {
      status = next;
    },
  };
}
