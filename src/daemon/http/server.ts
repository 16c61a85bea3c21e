import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6, type Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { isLoopbackAddress } from '../../core/text.ts';
import type { App } from './app.ts';

/** The limits of one connection, in ms of real time and bytes. */
const bounds = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16 * 1024,
  connectionsCheckingInterval: 5_000,
} as const;

/** Serves the app; rejects with the system's error where the address cannot be used. */
export async function startServer(app: App, { host, port }: Listen) {
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions: bounds }) as Server;
  boundConnections(server);
  server.listen(port, host);
  await once(server, 'listening');
  const { address, port: chosen } = server.address() as AddressInfo;
  return {
    address,
    port: chosen,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      // Pages that watch would hold the process for ever.
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Open connections. One address can hold only a part of them, so that others still get in. */
const most = { all: 400, ofOneAddress: 100 } as const;

interface Connection {
  readonly address: string;
  /** The request that is being answered. */
  request?: IncomingMessage;
}

/**
 * Bounds the open connections of a server. A new connection is always accepted: where there are too many, the
 * oldest one whose request is still incomplete is closed for it. So connections that send slowly, or nothing,
 * cannot keep a health check out, which is answered as soon as its request has arrived.
 */
function boundConnections(server: Server): void {
  // In the order of their arrival.
  const open = new Map<Socket, Connection>();

  function makeRoom(mostOpen: number, isCounted: (connection: Connection) => boolean): void {
    const counted = [...open].filter(([, connection]) => isCounted(connection));
    if (counted.length < mostOpen) return;
    const [socket] = counted.find(([, connection]) => isWaiting(connection)) ?? counted[0] ?? [];
    if (socket === undefined) return;
    open.delete(socket);
    socket.destroy();
  }

  server.on('connection', (socket: Socket) => {
    const address = networkOf(socket.remoteAddress ?? '');
    makeRoom(most.ofOneAddress, (each) => each.address === address);
    makeRoom(most.all, () => true);
    open.set(socket, { address });
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = open.get(request.socket);
    if (connection === undefined) return;
    connection.request = request;
    response.once('close', () => {
      delete connection.request;
    });
  });
}

/** Nothing is being answered: the connection is idle, or its request has not arrived in full. */
function isWaiting({ request }: Connection): boolean {
  return request === undefined || !request.complete;
}

/** One customer of a network has one IPv4 address, or the 2^64 IPv6 addresses that begin with the same 64 bits. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length);
  const all = [...groups, ...Array<string>(missing).fill('0'), ...(tail ?? '').split(':')];
  return all.slice(0, 4).join(':');
}

/** Where the daemon listens. */
export interface Listen {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** `127.0.0.1:9464`, `[::1]:9464`, `:9464` (every address), `9464` (loopback); `undefined` where it is none of them. */
export function parseListen(text: string): Listen | undefined {
  const parts = /^(?:(?:\[([0-9a-fA-F:]+)\]|([^\s:[\]/]*)):)?(\d{1,5})$/.exec(text);
  if (parts === null) return undefined;
  const [, six, name, digits] = parts;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (six !== undefined) return { host: six, port };
  if (name === '') return { host: '::', port };
  return { host: name ?? '127.0.0.1', port };
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: Listen): boolean {
  return isLoopbackAddress(host);
}
