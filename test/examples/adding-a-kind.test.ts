import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { programEnv } from '../support/program-env.ts';

const root = join(import.meta.dirname, '../..');
/** The kind that docs/contributing/adding-a-kind.md explains. */
const patch = join(root, 'test/examples/dns-record.patch');
const files = [...readFileSync(patch, 'utf8').matchAll(/^\+\+\+ b\/(\S+)$/gm)].map(([, file = '']) => file);
/** The most source files that a new kind may change. */
const most = 12;

/** A copy of the sources with the kind. */
function follow(folder: string): void {
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  execFileSync('git', ['apply', '-C1', patch], { cwd: folder });
}

interface DnsRecord {
  readonly id: string;
  readonly name: string;
  readonly value: string;
}

/** The emulator with DNS records beside its own resources. */
class ApiWithDns {
  readonly records: DnsRecord[] = [];
  readonly writes: string[] = [];
  readonly server = createServer((request, response) => void this.#answer(request, response));
  #requests = 0;
  readonly #emulator: string;

  constructor(emulator: string) {
    this.#emulator = emulator;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '' } = request;
    const [, id] = /^\/v1\/dns-records(?:\/(.*))?$/.exec(url) ?? [undefined, null];
    if (id === null) return this.#forward(request, response);
    this.#requests += 1;
    const requestId = `dns-${this.#requests}`;
    response.setHeader('x-request-id', requestId);
    const body = method === 'POST' ? ((await json(request)) as Omit<DnsRecord, 'id'>) : undefined;
    const unknown = Object.keys(body ?? {}).filter((name) => name !== 'name' && name !== 'value');
    if (unknown.length > 0) {
      const invalid_params = unknown.map((name) => ({ name, reason: 'unknown field' }));
      const problem = { status: 422, code: 'invalid_request', request_id: requestId, invalid_params };
      response.writeHead(422, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
      return;
    }
    if (method !== 'GET') this.writes.push(`${method} ${url}`);
    const data = this.#handle(method, id, body);
    response.writeHead(method === 'POST' ? 201 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data, task: null }));
  }

  #handle(method: string, id: string | undefined, body: Omit<DnsRecord, 'id'> | undefined): unknown {
    if (method === 'GET') return this.records;
    if (body !== undefined) {
      const record = { id: `rec-${this.#requests}`, ...body };
      this.records.push(record);
      return record;
    }
    this.records.splice(0, Infinity, ...this.records.filter((each) => each.id !== id));
    return { deleted: id };
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host: _host, connection: _connection, ...headers } = request.headers;
    const body = await text(request);
    const answer = await fetch(`${this.#emulator}${request.url?.replace('/v1', '')}`, {
      method: request.method ?? 'GET',
      headers: headers as Record<string, string>,
      ...(body === '' ? {} : { body }),
    });
    for (const [name, value] of answer.headers) response.setHeader(name, value);
    response.writeHead(answer.status).end(await answer.text());
  }
}

describe('docs/contributing/adding-a-kind.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-kind-'));
  let emulator: RunningEmulator;
  let api: ApiWithDns;

  beforeAll(async () => {
    emulator = await startEmulator({ speed: 60 });
    api = new ApiWithDns(emulator.baseUrl);
    await new Promise<void>((resolve) => api.server.listen(0, '127.0.0.1', resolve));
    follow(folder);
  });

  afterAll(async () => {
    api.server.close();
    await emulator.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs the command of the copy. */
  async function vdcsync(...args: readonly string[]) {
    const [project] = emulator.projects;
    const env = {
      ...programEnv(),
      VDC_BASE_URL: `http://127.0.0.1:${(api.server.address() as AddressInfo).port}/v1`,
      VDC_TOKEN: project?.tokens.readWrite ?? '',
    };
    const child = spawn(process.execPath, ['src/cli/main.ts', ...args, '-f', 'project.yaml'], {
      ...{ cwd: folder, env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { code, stdout, stderr };
  }

  function declare(records: Readonly<Record<string, object>>): void {
    const project = { id: emulator.projects[0]?.id };
    const settings = { prune: true };
    const spec = { version: 1, project, settings, dns_records: records };
    writeFileSync(join(folder, 'project.yaml'), JSON.stringify(spec));
  }

  test(`the guide changes at most ${most} source files`, () => {
    expect(files.length).toBeGreaterThan(5);
    expect(files.length).toBeLessThanOrEqual(most);
  });

  test('the compiler accepts the code', async () => {
    const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as {
      compilerOptions: object;
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    const child = spawn(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], { cwd: folder });
    expect(await text(child.stdout)).toBe('');
  });

  test('the kind is planned, created once, replaced and deleted', async () => {
    declare({ www: { value: '203.0.113.10' } });
    const { stdout } = await vdcsync('plan', '--format', 'json');
    expect(JSON.parse(stdout).operations).toMatchObject([{ verb: 'create', key: 'dns_records.www' }]);

    expect(await vdcsync('apply', '--yes')).toMatchObject({ code: 0 });
    expect(api.records).toMatchObject([{ name: 'www', value: '203.0.113.10' }]);

    expect(await vdcsync('apply', '--yes')).toMatchObject({ code: 0 });
    expect(api.writes).toEqual(['POST /v1/dns-records']);

    declare({ www: { value: '203.0.113.11' } });
    expect(await vdcsync('apply', '--yes')).toMatchObject({ code: 0 });
    expect(api.records).toMatchObject([{ name: 'www', value: '203.0.113.11' }]);

    declare({});
    expect(await vdcsync('apply', '--yes')).toMatchObject({ code: 0 });
    expect(api.records).toEqual([]);
  });
});
