import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { folderWith } from '../cli/run.ts';
import { serving } from '../support/serving.ts';
import { program } from './support.ts';

export type Repository = Awaited<ReturnType<typeof createRepository>>;

/** A repository on this machine: a bare one that is pushed to, with its `file://` URL, and a clone to push from. */
export async function createRepository() {
  const folder = folderWith();
  const bare = join(folder, 'infra.git');
  const clone = join(folder, 'clone');
  await program('git', ['init', '--quiet', '--bare', '--initial-branch=main', bare], folder);
  await program('git', ['init', '--quiet', '--initial-branch=main', clone], folder);
  const git = (...args: readonly string[]) => program('git', args, clone);
  await git('remote', 'add', 'origin', bare);
  return {
    ...{ bare, url: `file://${bare}`, git },
    /** Commits files and pushes them; gives the commit's id. */
    async push(files: Readonly<Record<string, string>>, args: readonly string[] = []) {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(clone, name)), { recursive: true });
        writeFileSync(join(clone, name), text);
      }
      await git('add', '--all');
      await git('commit', '--quiet', '--message', 'a change', ...args);
      await git('push', '--quiet', '--force', 'origin', 'HEAD:main');
      return git('rev-parse', 'HEAD');
    },
    /** Commits so many times on the branch of the clone, without a change. One process is quicker than one a commit. */
    commitOften(times: number) {
      const commit = 'commit refs/heads/main\ncommitter Test <test@example.com> now\ndata 4\nstep\n';
      const [first, ...others] = Array.from({ length: times }, () => commit);
      const stream = [`${first}from refs/heads/main^0\n`, ...others].join('\n');
      return program('git', ['fast-import', '--quiet', '--date-format=now'], clone, stream);
    },
  };
}

/** Serves bare repositories by git's own HTTP backend, as forges do; asks for the password, where one is given. */
export async function serveGit(
  bare: string,
  password?: string,
): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const url = await serve(bare, (incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    const given = incoming.headers.authorization?.replace(/^Basic /, '') ?? '';
    if (password !== undefined && !Buffer.from(given, 'base64').toString().endsWith(`:${password}`)) {
      outgoing.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    void backend(incoming, outgoing, dirname(bare));
  });
  return { url, requests };
}

/** Serves a bare repository as the plain files that it is, which `git update-server-info` has prepared. */
export async function serveFiles(bare: string): Promise<string> {
  return serve(bare, (incoming, outgoing) => {
    const { pathname } = new URL(incoming.url ?? '/', 'http://git');
    const path = join(dirname(bare), pathname);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return outgoing.writeHead(404).end();
    return outgoing.end(readFileSync(path));
  });
}

/** Refuses everybody, with words that git shows to its user. */
export function serveRefusal(words: (headers: IncomingMessage['headers']) => string): Promise<string> {
  return serve('infra.git', ({ headers }, outgoing) =>
    outgoing.writeHead(403, { 'content-type': 'text/plain' }).end(words(headers)),
  );
}

async function serve(bare: string, answer: RequestListener): Promise<string> {
  return `${await serving(answer)}/${bare.split('/').at(-1)}`;
}

/** One request by `git http-backend`, which speaks CGI. */
async function backend(incoming: IncomingMessage, outgoing: ServerResponse, root: string): Promise<void> {
  const { pathname, search } = new URL(incoming.url ?? '/', 'http://git');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH ?? '',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: incoming.method ?? 'GET',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: incoming.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: incoming.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(incoming.headers['git-protocol'] ?? ''),
    },
  });
  child.stdin.on('error', () => undefined);
  incoming.pipe(child.stdin);
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) chunks.push(chunk);
  const answer = Buffer.concat(chunks);
  const end = answer.indexOf('\r\n\r\n');
  const headers = answer
    .subarray(0, end)
    .toString()
    .split('\r\n')
    .map((line) => line.split(': ') as [string, string]);
  const status = Number.parseInt(headers.find(([name]) => name === 'Status')?.[1] ?? '200', 10);
  outgoing.writeHead(status, Object.fromEntries(headers.filter(([name]) => name !== 'Status')));
  outgoing.end(answer.subarray(end + 4));
}
