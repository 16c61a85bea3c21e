import type { HttpResponse } from '../core/transport.ts';
import type { Call } from './call.ts';
import type { World } from './world.ts';

/** Requests kept in the log. */
const MOST_LOGGED = 10_000;

/** One request as the log keeps it. Secrets are not in it: a token is named, not shown. */
export interface LoggedRequest {
  readonly atMs: number;
  readonly requestId: string;
  readonly method: string;
  readonly url: string;
  readonly operation: string | null;
  readonly project: number | null;
  readonly token: string | null;
  readonly key: string | null;
  readonly replayed: boolean;
  readonly body: string | null;
  /** The status that the service answered, whether or not the answer arrived; null if the service did not answer. */
  readonly status: number | null;
  readonly fault: string | null;
  /** `late`: had its effect after the client was gone. */
  readonly delivery: 'answer' | 'truncated' | 'reset' | 'refused' | 'late';
}

/** The last requests, oldest first. */
export class RequestLog {
  readonly requests: LoggedRequest[] = [];

  /** `response`: the answer of the service, even if it did not reach the client. */
  add(call: Call, atMs: number, response: HttpResponse | null, delivery: LoggedRequest['delivery']): void {
    this.requests.push({
      atMs,
      requestId: call.requestId,
      method: call.method,
      url: call.request.url,
      operation: call.operation,
      ...call.trace,
      body: call.request.body ?? null,
      status: response?.status ?? null,
      fault: call.fault?.do ?? null,
      delivery,
    });
    if (this.requests.length > MOST_LOGGED) this.requests.shift();
  }
}

/** Something that costs money now. `@source API §1` */
export interface Billed {
  readonly projectId: number;
  readonly kind: 'server' | 'ip' | 'backup';
  /** A backup's is `server/timestamp`. */
  readonly id: string;
  /** The server it belongs to, also when that is gone; null for a free address. */
  readonly serverId: number | null;
}

/** Everything that costs money: servers until their deletion, addresses attached or not, and all backups. */
export function billed(world: World): Billed[] {
  return world.projects.flatMap(({ id: projectId, servers, ips, backups }) => [
    ...servers.map(({ id }) => ({ projectId, kind: 'server' as const, id: String(id), serverId: id })),
    ...ips.map(({ id, serverId }) => ({ projectId, kind: 'ip' as const, id: String(id), serverId })),
    ...backups.map(({ id, serverId }) => {
      return { projectId, kind: 'backup' as const, id: `${serverId}/${id}`, serverId };
    }),
  ]);
}
