import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** Receives notifications over HTTP until the test ends. */
export async function receiver<Body>(): Promise<{ readonly url: string; readonly bodies: readonly Body[] }> {
  const bodies: Body[] = [];
  const server = createServer(async (incoming, outgoing) => {
    bodies.push(JSON.parse(await text(incoming)) as Body);
    outgoing.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, bodies };
}
