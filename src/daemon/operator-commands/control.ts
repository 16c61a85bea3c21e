import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import type { CommandResult, Remedy } from '../../core/remedy.ts';

const key = z.custom<ResourceKey>((text) => typeof text === 'string' && parseKey(text) !== undefined);
const id = z.string().min(1);
const names = z.array(z.string()).readonly();
const operatorCommandSchema = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('adopt'), key, id }),
  z.strictObject({
    command: z.literal('resolve'),
    key,
    resolution: z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('adopt'), id }),
      z.strictObject({ type: z.enum(['absent', 'retry', 'abandon']) }),
    ]),
  }),
  z.strictObject({ command: z.literal('forget'), key }),
  z.strictObject({ command: z.enum(['ignore', 'unignore']), names }),
  z.strictObject({ command: z.literal('approve'), digest: z.string().min(1).max(100) }),
]);

/** A command of the operator to a daemon that owns the state. */
export type OperatorCommand = z.infer<typeof operatorCommandSchema>;

/** The result of a command, in a sentence. */
export type CommandAnswer =
  | { readonly done: CommandResult }
  | { readonly refused: string; readonly misuse: boolean; readonly remedies?: readonly Remedy[] };

/** The longest name that a socket can have on Linux is 107 bytes, elsewhere less. */
const longestPath = 100;
const mostCommandBytes = 64 * 1024;

/**
 * The socket of the daemon for operator commands, next to its state. Only users who may write that folder can connect.
 * `undefined` if the name is too long for a socket.
 */
export function controlPath(state: string): string | undefined {
  if (/^\w+:\/\//.test(state)) return undefined;
  const path = posix.join(posix.dirname(state), 'control.sock');
  return Buffer.byteLength(path) > longestPath ? undefined : path;
}

/**
 * Listens at the socket until `close`. The caller owns the lock of the state, so an existing socket belongs to a dead
 * process.
 */
export async function listenForCommands(
  path: string,
  take: (command: OperatorCommand) => Promise<CommandAnswer>,
): Promise<{ close(): Promise<void> }> {
  rmSync(path, { force: true });
  const server = createServer((incoming, outgoing) => {
    const answered = bodyOf(incoming).then(async (body) => {
      const command = readCommand(body);
      const answer = command === undefined ? notUnderstood : await take(command);
      outgoing.writeHead(command === undefined ? 400 : 200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify(answer));
    });
    // The client has gone, or sends too much.
    answered.catch(() => incoming.destroy());
  });
  server.listen(path);
  await once(server, 'listening');
  chmodSync(path, 0o600);
  return {
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    length += chunk.length;
    if (length > mostCommandBytes) throw new Error('the command is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const notUnderstood: CommandAnswer = {
  refused: 'the daemon does not understand this command: use the vdcsync of the same version as the daemon',
  misuse: false,
};

/** The request from the socket, which any program may have sent. `undefined` if the request is no operator command. */
function readCommand(text: string): OperatorCommand | undefined {
  try {
    return operatorCommandSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Hands a command to the daemon that listens at this socket. `undefined` if no daemon listens. */
export function giveCommand(path: string, command: OperatorCommand): Promise<CommandAnswer | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ socketPath: path, method: 'POST', path: '/' }, (incoming) => {
      json(incoming).then((answer) => resolve(answer as CommandAnswer), reject);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
      else reject(error);
    });
    request.end(JSON.stringify(command));
  });
}
