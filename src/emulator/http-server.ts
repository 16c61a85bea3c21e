import { once } from 'node:events';
// node:http and not a framework: a reset or a body cut in two needs the raw socket.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpRequest } from '../core/transport.ts';
import { systemClock } from '../platform/system.ts';
import { createEmulator, type Emulator } from './emulator.ts';
import type { FaultRule } from './faults.ts';
import { loadFaults } from './faults-file.ts';
import type { EmulatorOptions } from './options.ts';
import { DataFileError, readWorldFile, writeWorldFile } from './persistence.ts';
import { MOST_BODY_BYTES } from './pipeline.ts';
import { DEFAULT_PROJECTS } from './seed.ts';
import type { ProjectTokens } from './tokens.ts';
import type { World } from './world.ts';

/** The default clock is the system's, and the default seed `vdcsync`. */
export interface ServeOptions extends Partial<Omit<EmulatorOptions, 'faults' | 'random' | 'world'>> {
  /** 0, the default, picks a free one. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Keeps the world: read at the start, replaced after each change. */
  readonly dataFile?: string;
  /** Takes the place of the first project's id, 4711. */
  readonly projectId?: number;
  /** Rules, or the text of a faults file. */
  readonly faults?: readonly FaultRule[] | string;
}

/** An emulator that listens. The caller must close it. `tokens`: the secrets, which the world does not keep. */
export interface RunningEmulator {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly projects: readonly {
    readonly id: number;
    readonly name: string;
    readonly tokens: ProjectTokens;
  }[];
  readonly emulator: Emulator;
  /** Keeps the world, ends every connection. */
  close(): Promise<void>;
}

/**
 * Serves an emulator over HTTP. Throws `DataFileError` for an unusable data file,
 * `EmulatorInputError` for wrong options, and the errors of `listen`.
 */
export async function startEmulator(options: ServeOptions = {}): Promise<RunningEmulator> {
  const { port = 0, host = '127.0.0.1', dataFile } = options;
  const saved = dataFile === undefined ? null : readWorldFile(dataFile);
  if (saved !== null) refuseOtherProject(saved, options);
  const emulator = buildEmulator(options, saved);
  const keep = () => {
    if (dataFile !== undefined) writeWorldFile(dataFile, emulator.snapshot());
  };
  keep();
  const server = createServer({ requireHostHeader: false }, (incoming, outgoing) => {
    serve(emulator, incoming, outgoing, keep).catch((error: unknown) => {
      // A bug of the emulator: the answer names the emulator, so that the bug is not taken for behaviour of the service.
      if (outgoing.headersSent) return outgoing.destroy();
      outgoing.writeHead(500, { 'content-type': 'text/plain' });
      outgoing.end(`emulator: ${error instanceof Error ? error.stack : String(error)}\n`);
    });
  });
  // Bytes that are not HTTP are no request. An answer to them would lack a request id. `@source API §4 rule 2`
  server.on('clientError', (_error, socket) => socket.destroy());
  server.listen(port, host);
  await once(server, 'listening');
  const { port: chosen } = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    baseUrl: `http://${name}:${chosen}/v1`,
    projects: emulator.world.projects.map(({ id, name: title }) => ({
      id,
      name: title,
      tokens: emulator.tokens(id),
    })),
    emulator,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      keep();
    },
  };
}

function buildEmulator(options: ServeOptions, saved: World | null): Emulator {
  const { projects = DEFAULT_PROJECTS, projectId, faults = [], readings, durations } = options;
  const file = typeof faults === 'string' ? loadFaults(faults) : { faults, readings: {}, durations: {} };
  return createEmulator({
    ...{ clock: systemClock, seed: 'vdcsync', ...options },
    projects: projects.map((project, index) =>
      index === 0 ? { ...project, id: projectId ?? project.id } : project,
    ),
    faults: file.faults,
    readings: { ...file.readings, ...readings },
    durations: { ...file.durations, ...durations },
    ...(saved === null ? {} : { world: saved }),
  });
}

function refuseOtherProject(saved: World, { projectId, dataFile }: ServeOptions): void {
  if (projectId === undefined || saved.projects.some((project) => project.id === projectId)) return;
  const projectIds = saved.projects.map((project) => project.id).join(', ');
  throw new DataFileError(
    `${dataFile} holds project ${projectIds}, not ${projectId}. Name another data file.`,
  );
}

async function serve(
  emulator: Emulator,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  keep: () => void,
): Promise<void> {
  const body = await readBody(incoming);
  if (body === null) return;
  const request: HttpRequest = {
    method: incoming.method ?? 'GET',
    // `OPTIONS *` and proxies' absolute addresses name no path of this service.
    url: `http://emulator${incoming.url?.startsWith('/') ? incoming.url : '/'}`,
    headers: flatHeaders(incoming),
    ...(body.text === '' ? {} : { body: body.text }),
  };
  const remote = incoming.socket.remoteAddress;
  const options = { tooLarge: body.tooLarge, ...(remote === undefined ? {} : { remote }) };
  const exchange = await emulator.handle(request, options);
  if (request.method !== 'GET') keep();
  if (exchange.kind === 'reset' || exchange.kind === 'refused') return void incoming.socket.resetAndDestroy();
  const { response } = exchange;
  const bytes = Buffer.from(response.body);
  outgoing.sendDate = false;
  if (body.tooLarge) outgoing.shouldKeepAlive = false;
  outgoing.writeHead(response.status, { ...response.headers, 'content-length': bytes.length });
  if (exchange.kind === 'answer') return void outgoing.end(bytes);
  outgoing.flushHeaders();
  outgoing.write(bytes.subarray(0, exchange.sentBytes), () => incoming.socket.destroy());
}

/** The body up to its bound; null when the client went away before it was whole. */
async function readBody(incoming: IncomingMessage): Promise<{ text: string; tooLarge: boolean } | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      length += chunk.length;
      // Read on but keep nothing, so that the client gets to read its 413.
      if (length <= MOST_BODY_BYTES) chunks.push(chunk);
      if (length > 16 * MOST_BODY_BYTES) break;
    }
  } catch {
    return null;
  }
  const tooLarge = length > MOST_BODY_BYTES;
  return { text: tooLarge ? '' : Buffer.concat(chunks).toString('utf8'), tooLarge };
}

function flatHeaders(incoming: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(incoming.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}
