import { test as base, expect, onTestFinished } from 'vitest';
import type { HttpRequest, HttpResponse } from '../../src/core/transport.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';
import { OpenApiDocument } from './document.ts';
import { Seen } from './seen.ts';
import { type ServiceOptions, startService } from './service.ts';
import { violations } from './violations.ts';

export const document = OpenApiDocument.read();
export const reads = document.operations.filter(({ method }) => method === 'GET');
export const writes = document.operations.filter(({ method }) => method !== 'GET');
export const seen = new Seen();

/** How long background work may take at most before a test calls it stuck, in virtual time. */
const PATIENCE_MS = 30 * 60_000;
const POLL_MS = 5_000;
const STEP_MS = 100;

export interface SendOptions {
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is, under `type`. */
  readonly raw?: string;
  readonly type?: string;
  /** The Idempotency-Key. */
  readonly key?: string;
  /** The secret; the read-and-write token when left out, none at all for null. */
  readonly token?: string | null;
}

/** A resource, or a list of them. Its shape is that of schemas/openapi.yaml, which the answer was checked against. */
// biome-ignore lint/suspicious/noExplicitAny: the document declares the shapes, and no test declares them again
export interface Data extends ReadonlyArray<any> {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly [field: string]: any;
}

/** An answer that has been checked against the document. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Data;
  /** Undefined: the answer has no such member. */
  readonly task: Data | null | undefined;
  readonly problem: Data | undefined;
  readonly code: string | undefined;
  /** The names of `invalid_params`. */
  readonly invalidParams: readonly string[];
  readonly replayed: boolean;
}

/** Serves a fresh world for the running test, over HTTP and on a clock that only the test moves. */
export async function open(options: ServiceOptions = {}): Promise<Contract> {
  const api = await Contract.start(options);
  onTestFinished(() => api.close());
  return api;
}

/** A test of a fresh world, and of a finished server in it. */
export const test = base
  .extend('api', () => open())
  .extend('server', ({ api }): Promise<Data> => api.server());

const START_MS = Date.parse('2026-03-02T08:00:00Z');

/** Plain HTTP to one service, in which every answer is checked and noted. */
export class Contract {
  readonly baseUrl: string;
  /** For what happens other than through the API. */
  readonly emulator: Emulator;
  readonly tokens: ReturnType<Emulator['tokens']>;
  /** A token of another project of the same account. */
  readonly otherProjectToken: string;
  readonly close: () => Promise<void>;
  private readonly clock: VirtualClock;

  private constructor({ baseUrl, emulator, close }: RunningEmulator, clock: VirtualClock) {
    this.baseUrl = baseUrl;
    this.emulator = emulator;
    this.tokens = emulator.tokens(4711);
    this.otherProjectToken = emulator.tokens(4712).readWrite;
    this.close = close;
    this.clock = clock;
  }

  static async start(options: ServiceOptions): Promise<Contract> {
    const clock = virtualClock(START_MS);
    return new Contract(await startService(clock, options), clock);
  }

  get(path: string, options: SendOptions = {}): Promise<Answer> {
    return this.send('GET', path, options);
  }

  post(path: string, json?: unknown, options: SendOptions = {}): Promise<Answer> {
    return this.send('POST', path, json === undefined ? options : { ...options, json });
  }

  put(path: string, json: unknown, options: SendOptions = {}): Promise<Answer> {
    return this.send('PUT', path, { ...options, json });
  }

  delete(path: string, options: SendOptions = {}): Promise<Answer> {
    return this.send('DELETE', path, options);
  }

  async send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    const request = this.request(method, `${this.baseUrl}${path}`, options);
    const answer = await exchange(request);
    const found = violations(document, this.baseUrl, request, answer);
    if (found.length > 0)
      throw new Error(`Against schemas/openapi.yaml:\n${found.join('\n')}\n${answer.body}`);
    const read = readAnswer(answer);
    const documented = document.pathOf(path.split('?', 1)[0] ?? '');
    seen.note(documented === undefined ? `${method} ?` : `${method} ${documented}`, read.status, read.code);
    return read;
  }

  /** A request that the document does not cover: beside the base path, or an operation that it names without showing it. */
  async unchecked(method: string, url: string, json?: unknown): Promise<Answer> {
    return readAnswer(await exchange(this.request(method, new URL(url, this.baseUrl).href, { json })));
  }

  /** Reads what `Location` names. */
  follow(answer: Answer): Promise<Answer> {
    const location = answer.headers.location ?? '';
    const path = new URL(location, this.baseUrl).pathname;
    expect(path).toMatch(/^\/v1\//);
    return this.get(path.slice('/v1'.length));
  }

  // ---- time ------------------------------------------------------------------------------------------------------

  now(): number {
    return this.clock.now();
  }

  /** Moves time on while nothing waits inside the service. */
  advance(ms: number): void {
    this.clock.jump(ms);
  }

  /** Runs what may wait inside the service, moving time on whenever the service sleeps. */
  async waiting<T>(run: () => Promise<T>): Promise<T> {
    let settled = false;
    const result = run().finally(() => {
      settled = true;
    });
    while (!settled) await this.clock.advance(this.clock.sleeping > 0 ? STEP_MS : 0);
    return result;
  }

  async until(holds: () => Promise<boolean>): Promise<void> {
    for (let waitedMs = 0; !(await holds()); waitedMs += POLL_MS) {
      if (waitedMs > PATIENCE_MS)
        throw new Error('It did not come about within half an hour of virtual time');
      this.advance(POLL_MS);
    }
  }

  /** Polls the task of an answer until it is terminal. */
  async ended(answer: Answer): Promise<Data> {
    const id = answer.task?.id;
    if (id === undefined) throw new Error(`An answer of ${answer.status} (${answer.code}) without a task`);
    let task = answer.task as Data;
    await this.until(async () => {
      task = (await this.get(`/tasks/${id}`)).data;
      return task.is_terminal;
    });
    return task;
  }

  /** The same, for work that has to succeed. */
  async finish(answer: Answer): Promise<void> {
    expect((await this.ended(answer)).status).toBe('succeeded');
  }

  // ---- what happens other than through the API -------------------------------------------------------------------

  standing(standing: 'active' | 'suspended' | 'unpaid'): void {
    this.emulator.mutate({ do: 'set_standing', standing });
  }

  failNextTask(): void {
    this.emulator.mutate({ do: 'fail_next_task' });
  }

  failNextRequest(status: number, effect: 'none' | 'done' = 'none'): void {
    this.emulator.setFaults([faultRule({ nth: 1 }, { do: 'answer', status, effect })]);
  }

  /** What costs money now: `ip 5001`, `server 2001`, `backup 2001/<id>`. */
  billed(): readonly string[] {
    return this.emulator.billed().map(({ kind, id }) => `${kind} ${id}`);
  }

  /** Sets how many hosts have the cards of a package free. */
  gpuCapacity(key: string, capacity: number): void {
    this.emulator.mutate({ do: 'set_capacity', package: key, capacity });
  }

  // ---- a world to test in ----------------------------------------------------------------------------------------

  async serverType(pricingMode: string): Promise<Data> {
    const types = (await this.get('/server-types')).data;
    const type = types.find((candidate) => candidate.pricing_mode === pricingMode);
    if (type === undefined) throw new Error(`The catalogue has no type of pricing mode ${pricingMode}`);
    return type;
  }

  async osImage(typeId: number): Promise<string> {
    const entries = (await this.get(`/server-types/${typeId}/images`)).data;
    const image = entries.find((entry) => entry.type === 'os');
    if (image === undefined) throw new Error(`Server type ${typeId} has no image`);
    return image.id;
  }

  /** The body of an ordinary creation, of a slider type. */
  serverBody(over: object = {}): Promise<Data> {
    return this.body('sliders', () => ({ cores: 2, memory_mb: 2048, disk_gb: 40 }), over);
  }

  planBody(over: object = {}): Promise<Data> {
    // The fields of a plan type's pricing are not shown (A39); the emulator lists its plans there.
    return this.body('plans', ({ plans }) => ({ plan_id: plans[0].id }), over);
  }

  gpuBody(over: object = {}): Promise<Data> {
    return this.body('fixed', ({ gpu_packages }) => ({ gpu_package: gpu_packages[0].key }), over);
  }

  private async body(mode: string, size: (pricing: Data) => object, over: object): Promise<Data> {
    const type = await this.serverType(mode);
    const image = await this.osImage(type.id);
    const pricing = (await this.get(`/server-types/${type.id}/pricing`)).data;
    return { name: 'server', server_type_id: type.id, image, ...size(pricing), ...over } as unknown as Data;
  }

  /** A finished server. */
  async server(over: object = {}): Promise<Data> {
    return this.created(await this.post('/servers', await this.serverBody(over)));
  }

  async gpuServer(over: object = {}): Promise<Data> {
    return this.created(await this.post('/servers', await this.gpuBody(over)));
  }

  async network(name: string): Promise<Data> {
    await this.finish(await this.post('/networks', { name, cidr: '10.20.0.0/24' }));
    const network = await this.networkNamed(name);
    if (network === undefined) throw new Error(`The network ${name} was not created`);
    return network;
  }

  async networkNamed(name: string): Promise<Data | undefined> {
    return (await this.get('/networks')).data.find((network) => network.name === name);
  }

  async attach(serverId: number, networkId: number): Promise<Data> {
    const path = `/servers/${serverId}/network-interfaces`;
    return this.created(await this.post(path, { network_id: networkId }));
  }

  async iso(): Promise<Data> {
    return this.created(
      await this.post('/isos', { url: 'https://images.example/rescue.iso', name: 'rescue' }),
    );
  }

  /** Its payload is not shown (A30); this is the one the emulator takes. */
  insertIso(serverId: number, isoId: string): Promise<Answer> {
    return this.put(`/servers/${serverId}/iso`, { iso_id: isoId });
  }

  /** Its payload is not shown (A30); this is the one the emulator takes. */
  takeImage(serverId: number): Promise<Answer> {
    return this.post('/server-images', { server_id: serverId, name: 'image' });
  }

  async backups(serverId: number): Promise<Data> {
    return (await this.get(`/servers/${serverId}/backups`)).data;
  }

  /** A path of the document with the id of something that exists. */
  async existing(path: string): Promise<string> {
    if (!path.includes('{id}')) return path;
    return path.replace('{id}', String(await this.someId(path)));
  }

  private async someId(path: string): Promise<string | number> {
    if (path.startsWith('/ips/')) return (await this.post('/ips', {})).data.id;
    if (path.startsWith('/isos/')) return (await this.iso()).id;
    if (path.startsWith('/networks/')) return (await this.network('some')).id;
    if (path.startsWith('/servers/')) return (await this.server()).id;
    if (path.startsWith('/server-types/')) return (await this.serverType('sliders')).id;
    const answer = await this.post('/networks', { name: 'for its task', cidr: '10.30.0.0/24' });
    return answer.task?.id ?? '';
  }

  private async created(answer: Answer): Promise<Data> {
    expect([answer.status, answer.code]).toEqual([expect.toBeOneOf([200, 201, 202]), undefined]);
    if (answer.task) await this.finish(answer);
    return answer.data;
  }

  private request(method: string, url: string, options: SendOptions): HttpRequest {
    const token = options.token === undefined ? this.tokens.readWrite : options.token;
    const body = options.raw ?? (options.json === undefined ? undefined : JSON.stringify(options.json));
    const type = options.type ?? (body === undefined ? undefined : 'application/json');
    return {
      method,
      url,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(options.key === undefined ? {} : { 'idempotency-key': options.key }),
      },
      ...(body === undefined ? {} : { body }),
    };
  }
}

async function exchange(request: HttpRequest): Promise<HttpResponse> {
  const response = await fetch(request.url, {
    method: request.method,
    headers: { ...request.headers },
    redirect: 'manual',
    ...(request.body === undefined ? {} : { body: request.body }),
  });
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  };
}

function readAnswer({ status, headers, body }: HttpResponse): Answer {
  const { data, task, ...others } = parsed(body);
  const problem = status >= 400 ? (others as unknown as Data) : undefined;
  return {
    status,
    headers,
    data,
    task,
    problem,
    code: problem?.code,
    invalidParams: problem?.invalid_params?.map(({ name }: Data) => name) ?? [],
    replayed: headers['idempotency-replayed'] === 'true',
  };
}

function parsed(text: string): Data {
  try {
    return JSON.parse(text) as Data;
  } catch {
    return {} as Data;
  }
}
