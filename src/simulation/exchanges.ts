import type { HttpRequest, HttpResponse } from '../core/transport.ts';

/** A proxy's page or a broken body proves nothing: the API did not write it. */
export function isConclusive(response: HttpResponse): boolean {
  const known = conclusive.get(response);
  if (known !== undefined) return known;
  const found = response.headers['x-request-id'] !== undefined && isJson(response.body);
  conclusive.set(response, found);
  return found;
}

/** Each answer is judged several times. */
const conclusive = new WeakMap<HttpResponse, boolean>();

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Its body is made invalid, so that the answer shows whether its key is in use and nothing can be carried out. */
export function isProbe({ body }: HttpRequest): boolean {
  return body?.includes('"vdcsync_probe":') === true;
}

export function isReplayed(response: HttpResponse | undefined): boolean {
  return response?.headers['idempotency-replayed'] !== undefined;
}

/** The names of the boundaries that a request crosses. */
export function boundariesOf(request: HttpRequest): readonly string[] {
  const path = new URL(request.url).pathname
    .slice(3)
    .replace(/\/(\d+|uiso-\d+|task-\w+|net\d+|\d{4}-\d\d-[^/]+)(?=\/|$)/g, '/{id}');
  const line = `${request.method} ${path}`;
  if (request.method === 'GET') return ['read', line];
  return ['write', line, ...(isProbe(request) ? ['probe', `probe ${line}`] : [])];
}

/** A request as a line of the trace. */
export function describe({ method, url, body, headers }: HttpRequest): string {
  const key = headers['idempotency-key'] ?? '';
  return `${method} ${new URL(url).pathname.slice(3)} ${body ?? ''} [${key.slice(-6)}]`;
}
