import equal from 'fast-deep-equal';
import type { Clock } from '../core/clock.ts';
import type { ReadPort, WriteRequest } from '../core/ports.ts';

/**
 * Shares reads between callers that may use the same answer. A caller names a time, and gets an answer whose request
 * *started* at that time or later. An answer under another token may be from another project, so the cache does not
 * use that answer any more.
 */
export interface ReadCache {
  /** A port whose answers come only from requests that started at `time` or later, on the monotonic clock. */
  since(time: number): ReadPort;
  /** Drops the answers that a write has made untrue. */
  forget(request: WriteRequest): void;
  /** Keeps only the answers about the inside of servers. Lists are cheap, and other programs change lists the most. */
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
  readonly ask: (port: ReadPort) => Promise<unknown>;
}

const serverOf = /^server (\d+) /;

/** `tokenNow` names the token that requests go out under. */
export function createReadCache(read: ReadPort, clock: Clock, tokenNow: () => string = () => ''): ReadCache {
  const entries = new Map<string, Entry>();

  function shared<Answer>(
    name: string,
    time: number,
    ask: (port: ReadPort) => Promise<Answer>,
  ): Promise<Answer> {
    const entry = entries.get(name);
    const token = tokenNow();
    if (entry !== undefined && entry.startedAt >= time && entry.token === token) {
      return entry.answer as Promise<Answer>;
    }
    const answer = ask(read);
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

  /** The cache has an undocumented read only if the port has this read. */
  const ofServers = (time: number): Pick<ReadPort, 'servers' | 'findServer'> => ({
    ...(read.servers === undefined
      ? {}
      : { servers: () => shared('servers', time, async (port) => (await port.servers?.()) ?? []) }),
    ...(read.findServer === undefined
      ? {}
      : { findServer: (id) => shared(`server ${id} self`, time, async (port) => port.findServer?.(id)) }),
  });

  return {
    since: (time) => ({
      ...ofServers(time),
      project: () => shared('project', time, (port) => port.project()),
      ips: () => shared('ips', time, (port) => port.ips()),
      findIp: (id) => shared(`ip ${id}`, time, (port) => port.findIp(id)),
      networks: () => shared('networks', time, (port) => port.networks()),
      isos: () => shared('isos', time, (port) => port.isos()),
      findIso: (id) => shared(`iso ${id}`, time, (port) => port.findIso(id)),
      findNetworkInterfaces: (id) =>
        shared(`server ${id} cards`, time, (port) => port.findNetworkInterfaces(id)),
      findFirewall: (id) => shared(`server ${id} firewall`, time, (port) => port.findFirewall(id)),
      findBackups: (id) => shared(`server ${id} backups`, time, (port) => port.findBackups(id)),
      findBackupPolicy: (id) => shared(`server ${id} policy`, time, (port) => port.findBackupPolicy(id)),
      serverTypes: () => shared('server types', time, (port) => port.serverTypes()),
      pricing: (id) => shared(`pricing ${id}`, time, (port) => port.pricing(id)),
      images: (id) => shared(`images ${id}`, time, (port) => port.images(id)),
      findTask: (id) => read.findTask(id),
      apiNow: () => read.apiNow(),
      now: () => read.now(),
    }),
    forgetLists() {
      for (const name of entries.keys()) {
        if (!name.startsWith('server ')) entries.delete(name);
      }
    },
    forget(request) {
      for (const name of entries.keys()) {
        if (touches(request, name)) entries.delete(name);
      }
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

/** Whether a cached answer may be untrue after the write. */
function touches({ name, path, body }: WriteRequest, entry: string): boolean {
  const server = path.server_id ?? path.id;
  switch (name) {
    case 'allocate_ip':
    case 'release_ip':
      return entry.startsWith('ip');
    case 'add_iso':
    case 'delete_iso':
      return entry.startsWith('iso');
    case 'create_network':
    case 'delete_network':
      return entry === 'networks';
    case 'create_server':
      // A server that asks for no address may get an address. @assumption A22
      return entry === 'servers' || (entry.startsWith('ip') && !takesNew(body));
    case 'delete_server':
      return (
        entry.startsWith('ip') ||
        entry === 'networks' ||
        entry === 'servers' ||
        entry.startsWith(`server ${server} `)
      );
    case 'resize_server':
    case 'insert_iso':
    case 'eject_iso':
      return entry === 'servers' || entry === `server ${server} self`;
    case 'add_network_interface':
      return entry === `server ${server} cards`;
    case 'remove_network_interface':
      return entry === `server ${server} cards` || entry === 'networks';
    case 'put_firewall':
      return entry === `server ${server} firewall`;
    case 'take_backup':
    case 'delete_backup':
      return entry === `server ${server} backups`;
    case 'update_backup_policy':
      return entry === `server ${server} policy`;
    case 'take_server_image':
      return false;
  }
}

/** A newly created address does not change the free addresses. */
function takesNew(body: unknown): boolean {
  return (body as { readonly public_ipv4?: { readonly new?: unknown } }).public_ipv4?.new === true;
}
