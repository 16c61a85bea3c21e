import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { App } from './app.ts';
import { boundConnections } from './connections.ts';
import type { Listen } from './listen.ts';

/** The limits of one connection, in ms of real time and bytes. */
const bounds = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16 * 1024,
  connectionsCheckingInterval: 5_000,
} as const;

export interface RunningServer {
  readonly address: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the app; rejects with the system's error where the address cannot be used. */
export async function startServer(app: App, { host, port }: Listen): Promise<RunningServer> {
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
