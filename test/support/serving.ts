import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { onTestFinished } from 'vitest';

/** Answers over HTTP on loopback until the test ends. Returns the origin. */
export async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  const port = await portOf(server);
  onTestFinished(() => server.closeAllConnections());
  return `http://127.0.0.1:${port}`;
}

/** The port on loopback at which a server listens until the test ends. */
export async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
