import type { HttpRequest } from '../core/transport.ts';

/** Its body is made invalid, so that the answer shows whether its key is in use and nothing can be carried out. */
export function isProbe({ body }: HttpRequest): boolean {
  return body?.includes('"vdcsync_probe":') === true;
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
