import { connect, createServer, type Socket } from 'node:net';

/** A way to a server that can be broken at a chosen moment. */
export interface Way extends AsyncDisposable {
  /** The same URL, by this way. */
  url(direct: string): string;
  /** Cuts the connection when the client sends `words`: before the server has it, or before its answer. */
  breakAt(words: string, when: 'before' | 'after'): void;
  /** Nothing gets through any more, and nobody is told. */
  fallSilent(): void;
}

export async function wayTo(port: number): Promise<Way> {
  let cut: { readonly words: string; readonly when: 'before' | 'after' } | undefined;
  let silent = false;
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(port, '127.0.0.1');
    const both = [client, server];
    for (const socket of both) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        for (const other of both) other.destroy();
      });
    }
    let deaf = false;
    client.on('data', (chunk) => {
      if (silent) return;
      if (cut !== undefined && chunk.includes(cut.words)) {
        if (cut.when === 'before') return void client.destroy();
        deaf = true;
      }
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (deaf) client.destroy();
      else if (!silent) client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const address = proxy.address();
  const own = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: (direct) => direct.replace(`:${port}/`, `:${own}/`),
    breakAt(words, when) {
      cut = { words, when };
    },
    fallSilent() {
      silent = true;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
