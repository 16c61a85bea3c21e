import type { BudgetWait } from '../../src/api/budget.ts';
import type { ApiLogger } from '../../src/api/call.ts';
import { createClient } from '../../src/api/client.ts';
import type { UseMemory } from '../../src/api/token-record.ts';
import type { Clock } from '../../src/core/clock.ts';
import { type ApiProfile, documentedProfile } from '../../src/core/profile.ts';
import type { HttpRequest, HttpResponse, SendOptions, Transport } from '../../src/core/transport.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';

export interface Memory extends UseMemory {
  readonly uses: { readonly bucket: string; readonly at: number }[];
  readonly notes: Map<string, unknown>;
}

/** `notes` has those that are no record of requests. */
export function memory(): Memory {
  const notes = new Map<string, unknown>();
  const used = new Map<string, number[]>();
  return {
    get uses() {
      return [...used].flatMap(([name, times]) =>
        times.map((at) => ({ bucket: name.slice(prefix.length), at })),
      );
    },
    notes,
    note: async (name) => used.get(name) ?? notes.get(name),
    putNote: async (name, value) => {
      if (name.startsWith(prefix)) used.set(name, value as number[]);
      else notes.set(name, value);
    },
  };
}

const prefix = 'used:';

export type Handler = (
  request: HttpRequest,
  index: number,
  options: SendOptions,
) => HttpResponse | Promise<HttpResponse>;

export interface Sent extends HttpRequest {
  readonly at: number;
}

export interface Rig {
  readonly clock: VirtualClock;
  readonly memory: Memory;
  readonly sent: Sent[];
  readonly client: ReturnType<typeof createClient>;
}

export interface RigOptions {
  readonly profile?: Partial<ApiProfile>;
  readonly memory?: Memory;
  readonly clock?: VirtualClock;
  readonly scaled?: Clock;
  readonly token?: () => string | readonly string[];
  readonly projectId?: number;
  readonly random?: () => number;
  readonly logger?: ApiLogger;
  readonly onWait?: (wait: BudgetWait) => void;
}

export const baseUrl = 'https://api.example.test/v1';

/** A client on a transport that is one function, under a virtual clock. */
export function rig(handler: Handler, options: RigOptions = {}): Rig {
  const clock = options.clock ?? virtualClock();
  const memo = options.memory ?? memory();
  const sent: Sent[] = [];
  const transport: Transport = {
    send: async (request, sendOptions) => {
      sent.push({ ...request, at: clock.monotonic() });
      return handler(request, sent.length - 1, sendOptions);
    },
    close: async () => {},
  };
  const client = createClient({
    baseUrl,
    token: options.token ?? (() => 'secret-token'),
    ...(options.projectId === undefined ? {} : { projectId: options.projectId }),
    transport,
    clock: options.scaled ?? clock,
    random: { next: options.random ?? (() => 0.5) },
    profile: { ...documentedProfile, ...options.profile },
    uses: memo,
    version: '1.2.3',
    ...(options.logger === undefined ? {} : { logger: options.logger }),
    ...(options.onWait === undefined ? {} : { onWait: options.onWait }),
  });
  return { clock, memory: memo, sent, client };
}

let requestNumber = 0;

export function answer(status: number, body: unknown, headers: Record<string, string> = {}): HttpResponse {
  requestNumber += 1;
  return {
    status,
    headers: { 'content-type': 'application/json', 'x-request-id': `req-${requestNumber}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

export function ok(data: unknown, headers: Record<string, string> = {}): HttpResponse {
  return answer(200, { data }, headers);
}

export function problem(status: number, code: string, headers: Record<string, string> = {}): HttpResponse {
  return answer(
    status,
    { type: `https://docs.example.test/errors/${code}`, title: 'No', status, code, request_id: 'x' },
    { 'content-type': 'application/problem+json', ...headers },
  );
}

/** What a proxy in front of the API says. */
export function proxyPage(status: number): HttpResponse {
  return { status, headers: { 'content-type': 'text/html' }, body: '<h1>Bad gateway</h1>' };
}

export const aProject = { id: 4711, name: 'shop', status: 'Active' };
