import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';

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
export function boundConnections(server: Server): void {
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
