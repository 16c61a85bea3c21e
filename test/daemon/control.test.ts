import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { result } from '../../src/core/remedy.ts';
import {
  giveCommand,
  listenForCommands,
  type OperatorCommand,
} from '../../src/daemon/operator-commands/control.ts';
import { folderWith } from '../cli/run.ts';

const forget: OperatorCommand = { command: 'forget', key: 'servers.web-1' as ResourceKey };

async function listening() {
  const path = join(folderWith(), 'control.sock');
  const taken: OperatorCommand[] = [];
  const control = await listenForCommands(path, async (order) => {
    taken.push(order);
    return { done: result('done') };
  });
  onTestFinished(() => control.close());
  return { path, taken };
}

async function send(socketPath: string, body: string) {
  const sending = request({ socketPath, method: 'POST', path: '/' }).end(body);
  const [incoming] = (await once(sending, 'response')) as [IncomingMessage];
  return { status: incoming.statusCode, answer: await json(incoming) };
}

describe('src/daemon/operator-commands/control.ts', () => {
  test.each([
    'null',
    '{bad',
    '',
    '[]',
    '{}',
    '"forget"',
    '{"command": "destroy"}',
    '{"command": "forget"}',
    '{"command": "forget", "key": "nonsense"}',
    '{"command": "adopt", "key": "servers.web-1", "id": {"a": 1}}',
    '{"command": "resolve", "key": "servers.web-1", "resolution": null}',
    '{"command": "ignore", "names": "all"}',
    '{"command": "ignore", "names": [null]}',
  ])('refuses %s, and accepts the next operator command', async (body) => {
    const { path, taken } = await listening();
    const { status, answer } = await send(path, body);
    expect(status).toBe(400);
    expect(answer).toMatchObject({ misuse: false, refused: expect.any(String) });
    expect(taken).toEqual([]);
    expect(await giveCommand(path, forget)).toEqual({ done: result('done') });
    expect(taken).toEqual([forget]);
  });

  test.each<OperatorCommand>([
    forget,
    { command: 'adopt', key: 'servers.web-1.network_interfaces.backend' as ResourceKey, id: 'net1' },
    { command: 'resolve', key: 'ips.web' as ResourceKey, resolution: { type: 'adopt', id: '3001' } },
    { command: 'resolve', key: 'ips.web' as ResourceKey, resolution: { type: 'absent' } },
    { command: 'resolve', key: 'ips.web' as ResourceKey, resolution: { type: 'abandon' } },
    { command: 'ignore', names: [] },
    { command: 'unignore', names: ['2001'] },
  ])('passes $order on unchanged', async (order) => {
    const { path, taken } = await listening();
    expect(await giveCommand(path, order)).toEqual({ done: result('done') });
    expect(taken).toEqual([order]);
  });

  test('a client that disconnects during a command or sends no HTTP affects no other client', async () => {
    const { path } = await listening();
    for (const text of [
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n{"command"',
      '\0\0\r\n\r\n',
    ]) {
      const socket = connect(path);
      socket.on('error', () => undefined);
      await new Promise<void>((resolve) => socket.write(text, () => resolve()));
      socket.destroy();
    }
    expect(await giveCommand(path, forget)).toEqual({ done: result('done') });
  });
});
