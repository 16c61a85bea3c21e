import type { Clock } from '../core/clock.ts';
import type { ReadPort, WriteRequest } from '../core/ports.ts';

/**
 * Shares reads between those who may use the same answer. An answer serves everyone who
 * asks for one no older than the moment that its request *started*, and nobody else.
 */
export interface ReadCache {
  /** A port whose answers all come from requests that started at `time` or later (wall ms). */
  since(time: number): ReadPort;
  /** Drops what a write has made untrue. */
  forget(request: WriteRequest): void;
  /** Drops all but what belongs to one server: lists are cheap, and change behind our back the most. */
  forgetLists(): void;
}

export function createReadCache(read: ReadPort, clock: Clock): ReadCache {
  const entries = new Map<string, { readonly startedAt: number; readonly answer: Promise<unknown> }>();

  function shared<Answer>(name: string, time: number, ask: () => Promise<Answer>): Promise<Answer> {
    const entry = entries.get(name);
    if (entry !== undefined && entry.startedAt >= time) return entry.answer as Promise<Answer>;
    const answer = ask();
    const fresh = { startedAt: clock.now(), answer };
    entries.set(name, fresh);
    answer.catch(() => {
      if (entries.get(name) === fresh) entries.delete(name);
    });
    return answer;
  }

  return {
    since: (time) => ({
      project: () => shared('project', time, () => read.project()),
      ips: () => shared('ips', time, () => read.ips()),
      findIp: (id) => shared(`ip ${id}`, time, () => read.findIp(id)),
      networks: () => shared('networks', time, () => read.networks()),
      isos: () => shared('isos', time, () => read.isos()),
      findIso: (id) => shared(`iso ${id}`, time, () => read.findIso(id)),
      findNetworkInterfaces: (id) => shared(`server ${id} cards`, time, () => read.findNetworkInterfaces(id)),
      findFirewall: (id) => shared(`server ${id} firewall`, time, () => read.findFirewall(id)),
      findBackups: (id) => shared(`server ${id} backups`, time, () => read.findBackups(id)),
      findBackupPolicy: (id) => shared(`server ${id} policy`, time, () => read.findBackupPolicy(id)),
      serverTypes: () => shared('server types', time, () => read.serverTypes()),
      pricing: (id) => shared(`pricing ${id}`, time, () => read.pricing(id)),
      images: (id) => shared(`images ${id}`, time, () => read.images(id)),
      findTask: (id) => read.findTask(id),
      apiNow: () => read.apiNow(),
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
      return entry.startsWith('ip') && JSON.stringify(body).includes('public_ipv4') && !takesNew(body);
    case 'delete_server':
      return entry.startsWith('ip') || entry === 'networks' || entry.startsWith(`server ${server} `);
    case 'add_network_interface':
    case 'remove_network_interface':
      return entry === `server ${server} cards`;
    case 'put_firewall':
      return entry === `server ${server} firewall`;
    case 'take_backup':
      return entry === `server ${server} backups`;
    case 'update_backup_policy':
      return entry === `server ${server} policy`;
  }
}

/** A fresh address changes nothing about the addresses that are free. */
function takesNew(body: unknown): boolean {
  return (body as { readonly public_ipv4?: { readonly new?: unknown } }).public_ipv4?.new === true;
}
