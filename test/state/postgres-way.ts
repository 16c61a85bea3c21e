import { connect, createServer, type Socket } from 'node:net';
import { portOf } from '../support/serving.ts';

/** What the server says to a connection that it ends. */
const said = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
const terminated = Buffer.from(`E\0\0\0${String.fromCharCode(said.length + 4)}${said}`, 'latin1');

/** A way to a server that can be broken at a chosen moment. */
export async function wayTo(port: number) {
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
  const own = await portOf(proxy);
  return {
    /** The same URL, by this way. */
    url: (direct: string) => direct.replace(`:${port}/`, `:${own}/`),
    /** Cuts the connection when the client sends `words`: before the server has it, before its answer, or ends it right behind that, as an administrator would. */
    breakAt(words: string, when: 'before' | 'after' | 'behind') {
      cut = { words, when };
    },
    /** Nothing gets through any more, and nobody is told. */
    fallSilent() {
      silent = true;
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
