import { connect, createServer, type Socket } from 'node:net';

/** A way to a server that can be broken at a chosen moment. */
export interface Way extends AsyncDisposable {
  /** The same URL, by this way. */
  url(direct: string): string;
  /** Cuts the connection when the client sends `words`: before the server has it, before its answer, or ends it right behind that, as an administrator would. */
  breakAt(words: string, when: 'before' | 'after' | 'behind'): void;
  /** Nothing gets through any more, and nobody is told. */
  fallSilent(): void;
}

/** What the server says to a connection that it ends. */
const said = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
const terminated = Buffer.from(`E\0\0\0${String.fromCharCode(said.length + 4)}${said}`, 'latin1');

export async function wayTo(port: number): Promise<Way> {
  let cut: { readonly words: string; readonly when: 'before' | 'after' | 'behind' } | undefined;
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
    let last: 'after' | 'behind' | undefined;
    client.on('data', (chunk) => {
      if (silent) return;
      if (cut !== undefined && chunk.includes(cut.words)) {
        if (cut.when === 'before') return void client.destroy();
        last = cut.when;
      }
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (last === 'after') client.destroy();
      else if (last === 'behind') client.end(Buffer.concat([chunk, terminated]));
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
