import type { HttpRequest, HttpResponse } from '../core/transport.ts';
import { parseDurations } from './durations.ts';
import { loadFaults, parseFaults } from './faults-file.ts';
import { parseMutation } from './mutations.ts';
import { problemResponse, Refusal } from './problem.ts';
import { parseText } from './profile.ts';
import { EmulatorInputError, parseReadings } from './readings.ts';
import type { Service } from './service.ts';

/** Is this a request to the emulator itself, not to the service it plays? */
export function isControl(url: string): boolean {
  const { pathname } = new URL(url, 'http://emulator');
  return pathname === '/_emulator' || pathname.startsWith('/_emulator/');
}

/**
 * Control over HTTP, without a token and for loopback only. A web page in a browser on the same
 * machine uses loopback too, so a request with a foreign `Origin` is refused.
 */
export function control(emulator: Service, request: HttpRequest, remote: string | undefined): HttpResponse {
  const requestId = 'control';
  try {
    const { pathname } = new URL(request.url, 'http://emulator');
    if (!isLoopback(remote) || isForeign(request)) {
      throw new Refusal(403, 'loopback_only', 'The emulator is controlled from its own machine only.');
    }
    const route = ROUTES[`${request.method.toUpperCase()} ${pathname}`];
    if (route === undefined) {
      throw new Refusal(404, 'not_found', `Known: ${Object.keys(ROUTES).join(', ')}.`);
    }
    const headers = { 'content-type': 'application/json', 'x-request-id': requestId };
    return {
      status: 200,
      headers,
      body: JSON.stringify({ data: route(emulator, request.body ?? '') ?? null }),
    };
  } catch (error) {
    const refusal =
      error instanceof EmulatorInputError ? new Refusal(422, 'invalid_request', error.message) : error;
    if (refusal instanceof Refusal) return problemResponse(refusal, requestId);
    throw error;
  }
}

type ControlRoute = (emulator: Service, body: string) => unknown;

const ROUTES: Readonly<Record<string, ControlRoute>> = {
  'GET /_emulator/world': (emulator) => ({
    ...emulator.world,
    now: new Date(emulator.now()).toISOString(),
    billed: emulator.billed(),
  }),
  'GET /_emulator/requests': (emulator) => emulator.requests,
  'GET /_emulator/tokens': (emulator) =>
    emulator.world.projects.map((project) => {
      const { readWrite, read, member } = emulator.tokens(project.id);
      return {
        project: { id: project.id, name: project.name },
        tokens: { read_write: readWrite, read, member },
      };
    }),
  'GET /_emulator/faults': (emulator) => ({ faults: emulator.faults, hits: emulator.world.faultHits }),
  'PUT /_emulator/faults': (emulator, body) => {
    const { faults, readings, durations } = loadFaults(body);
    emulator.setDurations(durations);
    emulator.setReadings(readings);
    emulator.setFaults(faults);
  },
  'POST /_emulator/faults': (emulator, body) => {
    const given = parseText(body, 'faults');
    emulator.setFaults([...emulator.faults, ...parseFaults(Array.isArray(given) ? given : [given])]);
  },
  'DELETE /_emulator/faults': (emulator) => emulator.setFaults([]),
  'GET /_emulator/readings': (emulator) => emulator.readings,
  'PATCH /_emulator/readings': (emulator, body) => {
    emulator.setReadings(parseReadings(parseText(body, 'readings')));
    return emulator.readings;
  },
  'GET /_emulator/durations': (emulator) => emulator.durations,
  'PATCH /_emulator/durations': (emulator, body) => {
    emulator.setDurations(parseDurations(parseText(body, 'durations')));
    return emulator.durations;
  },
  'POST /_emulator/mutations': (emulator, body) =>
    emulator.mutate(parseMutation(parseText(body, 'mutation'))),
};

/** A request in process has no remote address and is always allowed. */
function isLoopback(remote: string | undefined): boolean {
  return remote === undefined || remote === '::1' || /^(::ffff:)?127\./.test(remote);
}

function isForeign({ headers }: HttpRequest): boolean {
  const origin = headers.origin;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || !['127.0.0.1', 'localhost', '[::1]'].includes(new URL(origin).hostname);
}
