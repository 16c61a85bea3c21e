import { test as base, expect, onTestFinished } from 'vitest';
import type { HttpRequest, HttpResponse } from '../../src/core/transport.ts';
import { OpenApiDocument } from './document.ts';
import { Seen } from './seen.ts';
import { type Service, type ServiceOptions, startService } from './service.ts';
import { violations } from './violations.ts';
import type {
  Backup,
  ImageEntry,
  Ip,
  Iso,
  Network,
  NetworkInterface,
  Problem,
  Server,
  ServerType,
  Task,
} from './wire.ts';

export const document = OpenApiDocument.read();
export const seen = new Seen();

/** How long background work may take at most before a test calls it stuck, in virtual time. */
const PATIENCE_MS = 30 * 60_000;
const POLL_MS = 5_000;

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

/** An answer that has been checked against the document. */
export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: T;
  /** Undefined: the answer has no such member. */
  readonly task: Task | null | undefined;
  readonly problem: Problem | undefined;
  readonly code: string | undefined;
  /** The names of `invalid_params`. */
  readonly invalidParams: readonly string[];
  readonly replayed: boolean;
}

/** Serves a fresh world for the running test, over HTTP and on a clock that only the test moves. */
export async function open(options: ServiceOptions = {}): Promise<Contract> {
  const service = await startService(options);
  onTestFinished(() => service.close());
  return new Contract(service);
}

/** A test of a fresh world, and of a finished server in it. */
export const test = base.extend<{ readonly api: Contract; readonly server: Server }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from this pattern which fixtures it needs
  api: async ({}, use) => {
    const service = await startService();
    await use(new Contract(service));
    await service.close();
  },
  server: async ({ api }, use) => use(await api.server()),
});

/** Plain HTTP to one service, in which every answer is checked and noted. */
export class Contract {
  readonly baseUrl: string;
  readonly tokens: Service['tokens'];
  private readonly service: Service;

  constructor(service: Service) {
    this.service = service;
    this.baseUrl = service.baseUrl;
    this.tokens = service.tokens;
  }

  get<T = unknown>(path: string, options: SendOptions = {}): Promise<Answer<T>> {
    return this.send('GET', path, options);
  }

  post<T = unknown>(path: string, json?: unknown, options: SendOptions = {}): Promise<Answer<T>> {
    return this.send('POST', path, json === undefined ? options : { ...options, json });
  }

  put<T = unknown>(path: string, json: unknown, options: SendOptions = {}): Promise<Answer<T>> {
    return this.send('PUT', path, { ...options, json });
  }

  delete<T = unknown>(path: string, options: SendOptions = {}): Promise<Answer<T>> {
    return this.send('DELETE', path, options);
  }

  async send<T = unknown>(method: string, path: string, options: SendOptions = {}): Promise<Answer<T>> {
    const request = this.request(method, `${this.baseUrl}${path}`, options);
    const answer = await exchange(request);
    const found = violations(document, this.baseUrl, request, answer);
    if (found.length > 0)
      throw new Error(`Against schemas/openapi.yaml:\n${found.join('\n')}\n${answer.body}`);
    const read = readAnswer<T>(answer);
    const documented = document.pathOf(path.split('?', 1)[0] ?? '');
    seen.note(documented === undefined ? `${method} ?` : `${method} ${documented}`, read.status, read.code);
    return read;
  }

  /** A request beside the base path, which the document does not cover. */
  async outside(path: string): Promise<Answer> {
    return readAnswer(await exchange(this.request('GET', `${new URL(this.baseUrl).origin}${path}`, {})));
  }

  /** An operation that the document names without showing it, and so cannot check. */
  async undocumented<T = unknown>(method: string, path: string, json?: unknown): Promise<Answer<T>> {
    return readAnswer(await exchange(this.request(method, `${this.baseUrl}${path}`, { json })));
  }

  /** Reads what `Location` names. */
  follow<T>(answer: Answer): Promise<Answer<T>> {
    const location = answer.headers.location ?? '';
    const path = new URL(location, this.baseUrl).pathname;
    expect(path).toMatch(/^\/v1\//);
    return this.get<T>(path.slice('/v1'.length));
  }

  // ---- time ------------------------------------------------------------------------------------------------------

  now(): number {
    return this.service.clock.now();
  }

  advance(ms: number): void {
    this.service.clock.advance(ms);
  }

  /** Runs what may wait inside the service, moving time on whenever the service sleeps. */
  async waiting<T>(run: () => Promise<T>): Promise<T> {
    let settled = false;
    const result = run().finally(() => {
      settled = true;
    });
    while (!settled) {
      await new Promise((resolve) => setImmediate(resolve));
      this.service.clock.advanceToNext();
    }
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
  async ended(answer: Answer): Promise<Task> {
    const id = answer.task?.id;
    if (id === undefined) throw new Error(`An answer of ${answer.status} (${answer.code}) without a task`);
    let task = answer.task as Task;
    await this.until(async () => {
      task = (await this.get<Task>(`/tasks/${id}`)).data;
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
    this.service.mutate({ do: 'set_standing', standing });
  }

  failNextTask(): void {
    this.service.mutate({ do: 'fail_next_task' });
  }

  failNextRequest(status: number, effect: 'none' | 'done' = 'none'): void {
    this.service.failNext(status, effect);
  }

  /** What costs money now: `ip 5001`, `server 2001`, `backup 2001/<id>`. */
  billed(): readonly string[] {
    return this.service.billed();
  }

  memory(): string {
    return this.service.memory();
  }

  /** Sets how many hosts have the cards of a package free. */
  gpuCapacity(key: unknown, capacity: number): void {
    this.service.mutate({ do: 'set_capacity', package: key, capacity });
  }

  withdraw(key: unknown): void {
    this.service.mutate({ do: 'withdraw_package', package: key });
  }

  revoke(token: string): void {
    this.service.mutate({ do: 'revoke_token', token });
  }

  /** A token of another project of the same account. */
  get otherProjectToken(): string {
    return this.service.otherProject.readWrite;
  }

  // ---- a world to test in ----------------------------------------------------------------------------------------

  async serverType(pricingMode: string): Promise<ServerType> {
    const types = (await this.get<ServerType[]>('/server-types')).data;
    const type = types.find((candidate) => candidate.pricing_mode === pricingMode);
    if (type === undefined) throw new Error(`The catalogue has no type of pricing mode ${pricingMode}`);
    return type;
  }

  async osImage(typeId: number): Promise<string> {
    const entries = (await this.get<ImageEntry[]>(`/server-types/${typeId}/images`)).data;
    const image = entries.find((entry) => entry.type === 'os');
    if (image === undefined) throw new Error(`Server type ${typeId} has no image`);
    return image.id;
  }

  /** The body of an ordinary creation, of a slider type. */
  async serverBody(over: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const type = await this.serverType('sliders');
    const image = await this.osImage(type.id);
    return {
      name: 'server',
      server_type_id: type.id,
      image,
      cores: 2,
      memory_mb: 2048,
      disk_gb: 40,
      ...over,
    };
  }

  async planBody(over: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const type = await this.serverType('plans');
    const image = await this.osImage(type.id);
    // The fields of a plan type's pricing are not shown (A39); the emulator lists its plans there.
    const pricing = (await this.get<{ plans: { id: number }[] }>(`/server-types/${type.id}/pricing`)).data;
    return { name: 'server', server_type_id: type.id, image, plan_id: pricing.plans[0]?.id, ...over };
  }

  async gpuBody(over: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const type = await this.serverType('fixed');
    const image = await this.osImage(type.id);
    const pricing = (await this.get<{ gpu_packages: { key: string }[] }>(`/server-types/${type.id}/pricing`))
      .data;
    return {
      name: 'server',
      server_type_id: type.id,
      image,
      gpu_package: pricing.gpu_packages[0]?.key,
      ...over,
    };
  }

  /** A finished server. */
  async server(over: Record<string, unknown> = {}): Promise<Server> {
    return this.created(await this.post<Server>('/servers', await this.serverBody(over)));
  }

  async gpuServer(over: Record<string, unknown> = {}): Promise<Server> {
    return this.created(await this.post<Server>('/servers', await this.gpuBody(over)));
  }

  async network(name: string): Promise<Network> {
    await this.finish(await this.post('/networks', { name, cidr: '10.20.0.0/24' }));
    const network = await this.networkNamed(name);
    if (network === undefined) throw new Error(`The network ${name} was not created`);
    return network;
  }

  async networkNamed(name: string): Promise<Network | undefined> {
    return (await this.get<Network[]>('/networks')).data.find((network) => network.name === name);
  }

  async attach(serverId: number, networkId: number): Promise<NetworkInterface> {
    const answer = await this.post<NetworkInterface>(`/servers/${serverId}/network-interfaces`, {
      network_id: networkId,
    });
    return this.created(answer);
  }

  async iso(): Promise<Iso> {
    return this.created(
      await this.post<Iso>('/isos', { url: 'https://images.example/rescue.iso', name: 'rescue' }),
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

  async backups(serverId: number): Promise<readonly Backup[]> {
    return (await this.get<Backup[]>(`/servers/${serverId}/backups`)).data;
  }

  /** A path of the document with the id of something that exists. */
  async existing(path: string): Promise<string> {
    if (!path.includes('{id}')) return path;
    return path.replace('{id}', String(await this.someId(path)));
  }

  private async someId(path: string): Promise<string | number> {
    if (path.startsWith('/ips/')) return (await this.post<Ip>('/ips', {})).data.id;
    if (path.startsWith('/isos/')) return (await this.iso()).id;
    if (path.startsWith('/networks/')) return (await this.network('some')).id;
    if (path.startsWith('/servers/')) return (await this.server()).id;
    if (path.startsWith('/server-types/')) return (await this.serverType('sliders')).id;
    const answer = await this.post('/networks', { name: 'for its task', cidr: '10.30.0.0/24' });
    return answer.task?.id ?? '';
  }

  private async created<T>(answer: Answer<T>): Promise<T> {
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

function readAnswer<T>(answer: HttpResponse): Answer<T> {
  const body = parsed(answer.body);
  const problem = answer.status >= 400 ? (body as unknown as Problem) : undefined;
  return {
    status: answer.status,
    headers: answer.headers,
    data: body.data as T,
    task: body.task as Task | null | undefined,
    problem,
    code: problem?.code,
    invalidParams: problem?.invalid_params?.map((param) => param.name) ?? [],
    replayed: answer.headers['idempotency-replayed'] === 'true',
  };
}

function parsed(text: string): { readonly [member: string]: unknown } {
  try {
    return JSON.parse(text) as { readonly [member: string]: unknown };
  } catch {
    return {};
  }
}
