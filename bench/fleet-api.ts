import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { createEmulator, type Emulator } from '../src/emulator/emulator.ts';
import { systemClock } from '../src/platform/system.ts';

// The API of `bench:fleet`, in a process of its own: its CPU time is no part of a replica's. Each project has an emulator of
// its own, because an emulator lets the time of its whole world pass at each request.

interface Watch {
  readonly project: number;
  readonly text: string;
}

const { projects, speed } = JSON.parse(process.argv[2] ?? '') as {
  projects: readonly number[];
  speed: number;
};
const emulators = new Map<number, Emulator>();
const byToken = new Map<string | undefined, Emulator>();
const tokens = projects.map((id) => {
  const seeds = [{ id, name: `project ${id}` }];
  const emulator = createEmulator({ clock: systemClock, seed: 'vdcsync', speed, projects: seeds });
  const { readWrite } = emulator.tokens();
  emulators.set(id, emulator);
  byToken.set(`Bearer ${readWrite}`, emulator);
  return [id, readWrite] as const;
});

async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { method = 'GET', url, headers } = incoming;
  const body = await textOf(incoming);
  const request = { method, url: `http://emulator${url}`, headers: headers as Record<string, string> };
  const exchange = await byToken.get(headers.authorization)?.handle({ ...request, ...(body && { body }) });
  if (exchange?.kind !== 'answer') return void outgoing.destroy();
  outgoing.writeHead(exchange.response.status, exchange.response.headers).end(exchange.response.body);
}

const server = createServer((incoming, outgoing) => void serve(incoming, outgoing)).listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
process.send?.({ baseUrl: `http://127.0.0.1:${port}/v1`, tokens });

/** Gives each project the resources of the first one. */
function copyFirst(): void {
  const [template, ...others] = emulators.values();
  const [first] = template?.snapshot().projects ?? [];
  if (first === undefined) return;
  for (const emulator of others) {
    const world = emulator.snapshot();
    world.projects = world.projects.map(({ id, name }) => ({ ...first, tasks: [], answers: [], id, name }));
    emulator.restore(world);
  }
  process.send?.({ copied: projects.length });
}

/** `copy`, or a watch: answers when the project was sent a POST with this text. */
process.on('message', (message: Watch | 'copy') => {
  if (message === 'copy') return copyFirst();
  const { project, text } = message;
  const timer = setInterval(() => {
    const requests = emulators.get(project)?.requests ?? [];
    if (!requests.some(({ method, body }) => method === 'POST' && body?.includes(text))) return;
    clearInterval(timer);
    process.send?.({ sent: text });
  }, 5);
});
process.on('disconnect', () => process.exit());
