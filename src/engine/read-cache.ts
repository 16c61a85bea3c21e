import equal from 'fast-deep-equal';
import type { Clock } from '../core/clock.ts';
import { type ReadName, type ReadPort, type StaleReads, serverReads } from '../core/ports.ts';

/**
 * Shares reads between callers that may use the same answer. A caller names a time, and gets an answer whose request
 * *started* at that time or later. An answer under another token may be from another project, so the cache does not
 * use that answer any more.
 */
export interface ReadCache {
  /**
   * A port whose answers come only from requests that started at `time` or later, on the monotonic clock. `inside`: the
   * port for new requests about one server; requests that many callers share go through the port of the cache.
   */
  since(time: number, inside?: ReadPort): ReadPort;
  /** Drops the answers that a write has made untrue. */
  forget(stale: StaleReads): void;
  /** Keeps only the types on sale, and the answers about the inside of servers. Lists are cheap, and other programs change lists the most. */
  forgetLists(): void;
  /** Drops the answers about one server. */
  forgetServer(id: string): void;
  /** The kept answers about servers, the oldest first. */
  aboutServers(): readonly KeptAnswer[];
  /**
   * Sends the request of a kept answer again, through `port`. Returns whether the new answer differs. If the answer
   * was forgotten or replaced meanwhile, returns `false`.
   */
  refresh(name: string, port: ReadPort): Promise<boolean>;
}

export interface KeptAnswer {
  readonly name: string;
  /** The server's live id. */
  readonly server: string;
  /** When it was asked for, wall ms. */
  readonly startedAt: number;
}

interface Entry {
  /** On the monotonic clock, and wall ms. */
  readonly startedAt: number;
  readonly wallAt: number;
  readonly token: string;
  readonly answer: Promise<unknown>;
  readonly ask: Ask;
}

type Ask = (port: ReadPort) => Promise<unknown>;

const ofServer: ReadonlySet<string> = new Set(serverReads);
const serverOf = /^server (\d+) /;

/** The types on sale change rarely, so a run reads them once. */
const keptList: ReadName = 'serverTypes';

/** The name of a kept answer: `ips`, `findIp 5001`, `server 2001 findFirewall`. */
function nameOf(read: string, id?: string | number): string {
  if (id === undefined) return read;
  return ofServer.has(read) ? `server ${id} ${read}` : `${read} ${id}`;
}

/** `tokenNow` names the token that requests go out under. */
export function createReadCache(read: ReadPort, clock: Clock, tokenNow: () => string): ReadCache {
  const entries = new Map<string, Entry>();

  function shared(name: string, time: number, ask: Ask, port: ReadPort): Promise<unknown> {
    const entry = entries.get(name);
    const token = tokenNow();
    if (entry !== undefined && entry.startedAt >= time && entry.token === token) return entry.answer;
    const answer = ask(port);
    const fresh = { startedAt: clock.monotonic(), wallAt: clock.now(), token, answer, ask };
    entries.set(name, fresh);
    answer.catch(() => {
      if (entries.get(name) === fresh) entries.delete(name);
    });
    return answer;
  }

  function forgetServer(id: string): void {
    for (const name of entries.keys()) {
      if (name.startsWith(`server ${id} `)) entries.delete(name);
    }
  }

  const uncached = { findTask: read.findTask, apiNow: read.apiNow, now: read.now };
  /** The cache has an undocumented read only if the port has this read. */
  const cached = Object.keys(read).filter((each) => !(each in uncached)) as ReadName[];
  const asking =
    (method: ReadName, id: never): Ask =>
    (port) =>
      port[method]?.(id) ?? Promise.resolve(undefined);

  return {
    since: (time, inside = read) => {
      const shares = cached.map((method) => {
        const port = ofServer.has(method) ? inside : read;
        const answer = (id: never) => shared(nameOf(method, id), time, asking(method, id), port);
        return [method, answer] as const;
      });
      return { ...Object.fromEntries(shares), ...uncached } as unknown as ReadPort;
    },
    forgetLists() {
      for (const name of entries.keys()) {
        if (!serverOf.test(name) && name !== keptList) entries.delete(name);
      }
    },
    forget({ lists = [], server, inside = [] }) {
      const all = new Set<string>(lists);
      const its = new Set(inside.map((each) => nameOf(each, server)));
      for (const name of entries.keys()) {
        if (all.has(name.split(' ', 1)[0] ?? '') || its.has(name)) entries.delete(name);
      }
      if (server !== undefined && inside.length === 0) forgetServer(String(server));
    },
    forgetServer,
    aboutServers: () =>
      [...entries]
        .flatMap(([name, { wallAt }]) => {
          const server = serverOf.exec(name)?.[1];
          return server === undefined ? [] : [{ name, server, startedAt: wallAt }];
        })
        .sort((a, b) => a.startedAt - b.startedAt),
    async refresh(name, port) {
      const entry = entries.get(name);
      if (entry === undefined) return false;
      const now = { startedAt: clock.monotonic(), wallAt: clock.now(), token: tokenNow() };
      const fresh = await entry.ask(port);
      if (entries.get(name) !== entry) return false;
      const differs = !equal(fresh, await entry.answer);
      // Check the entry again: a caller may have replaced the old answer while this call waited for it.
      if (entries.get(name) !== entry) return false;
      // If a part of a server is gone, the server is gone. The other kept answers would still show the server.
      const [, server] = serverOf.exec(name) ?? [];
      if (differs && fresh === undefined && server !== undefined) forgetServer(server);
      else entries.set(name, { ...entry, ...now, answer: Promise.resolve(fresh) });
      return differs;
    },
  };
}
