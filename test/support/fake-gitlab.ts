import { buffer } from 'node:stream/consumers';
import { serving } from './serving.ts';

/** The user of {@link noteToken}. */
const author = 42;
export const noteToken = 'note-token';
export const jobToken = 'job-token';

export interface Note {
  readonly id: number;
  readonly author: { readonly id: number };
  body: string;
}

/** The part of GitLab that the component calls: the notes of a merge request, one a page, and the generic package registry. */
export async function fakeGitlab() {
  const notes: Note[] = [];
  let state: Buffer | undefined;
  let status = 200;
  // A storage of objects refuses a request with two authorizations: the header, and the signature in the address.
  const storage = await serving((incoming, outgoing) => {
    const isSigned = incoming.url === '/state?signature=1';
    if (!isSigned || incoming.headers.authorization !== undefined) return void outgoing.writeHead(400).end();
    outgoing.end(state);
  });
  const write = (id: number | undefined, body: string): Note | undefined => {
    const note = notes.find((each) => each.id === id);
    if (note !== undefined) note.body = body;
    else if (id === undefined) notes.push({ id: notes.length + 1, author: { id: author }, body });
    return note ?? (id === undefined ? notes.at(-1) : undefined);
  };
  const url = await serving(async (incoming, outgoing) => {
    const sent = await buffer(incoming);
    const { pathname, searchParams } = new URL(incoming.url ?? '', 'http://gitlab');
    const json = (value: unknown, headers = {}) =>
      outgoing.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
    if (pathname.startsWith('/api/v4/projects/7/packages/generic/')) {
      const basic = `Basic ${btoa(`gitlab-ci-token:${jobToken}`)}`;
      if (incoming.headers.authorization !== basic) return outgoing.writeHead(401).end();
      if (status !== 200) return outgoing.writeHead(status).end();
      if (incoming.method === 'PUT') {
        state = sent;
        return outgoing.writeHead(201).end('{}');
      }
      if (state === undefined) return outgoing.writeHead(404).end('{}');
      return outgoing.writeHead(302, { location: `${storage}/state?signature=1` }).end();
    }
    if (incoming.headers.authorization !== `Bearer ${noteToken}`) return outgoing.writeHead(401).end();
    if (pathname === '/api/v4/user') return json({ id: author });
    const note = /^\/api\/v4\/projects\/7\/merge_requests\/3\/notes(?:\/(\d+))?$/.exec(pathname);
    if (note === null) return outgoing.writeHead(404).end();
    if (incoming.method === 'GET') {
      const page = Number(searchParams.get('page') ?? 1);
      return json(notes.slice(page - 1, page), {
        'x-next-page': page < notes.length ? String(page + 1) : '',
      });
    }
    const { body } = JSON.parse(sent.toString()) as { body: string };
    return json(write(note[1] === undefined ? undefined : Number(note[1]), body));
  });
  return {
    notes,
    url: `${url}/api/v4`,
    state: () => state,
    /** From now on the registry answers with this status. */
    answer: (next: number) => {
      status = next;
    },
  };
}
